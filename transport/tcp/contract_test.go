package tcp

import (
	"testing"
	"time"

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
	runContract(t, newPoller)
	transporttest.RunPerformance(t, start(newPoller))
}

func TestGoroutineStreamsKeepTheContractToo(t *testing.T) {
	runContract(t, newGoroutineStreams)
	transporttest.RunPerformance(t, start(newGoroutineStreams))
}

func TestARankLeavesInTheEnd(t *testing.T) {
	for name, poller := range map[string]func([]*link) (poller, error){"system": newPoller, "goroutines": newGoroutineStreams} {
		t.Run(name, func(t *testing.T) {
			transporttest.RunLingering(t, func(t *testing.T, n int) []transport.Endpoint {
				all := start(poller)(t, n)
				for _, e := range all {
					e.(*Endpoint).cfg.Linger = time.Millisecond
				}
				return all
			})
		})
	}
}

func runContract(t *testing.T, poller func([]*link) (poller, error)) {
	transporttest.Run(t, start(poller))
	transporttest.RunLost(t, func(t *testing.T, n int) []*Endpoint {
		ends, err := loopback(n, poller)
		return cluster.Job(t, ends, err)
	})
}
