package tcp

import (
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// start returns a Start for the contract suite.
func start(poller func([]*link) (poller, error)) transporttest.Start {
	return func(t *testing.T, n int) []transport.Endpoint {
		ends, err := loopback(n, poller)
		if err != nil {
			t.Fatal(err)
		}
		return cluster.All(ends)
	}
}

func TestTheContractIsKept(t *testing.T) {
	transporttest.Run(t, start(newPoller))
}

func TestGoroutineStreamsKeepTheContractToo(t *testing.T) {
	transporttest.Run(t, start(newGoroutineStreams))
}

func TestAMemberKeepsItsContract(t *testing.T) {
	transporttest.RunMember(t, start(newPoller))
}
