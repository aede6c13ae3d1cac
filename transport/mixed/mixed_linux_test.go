package mixed

import (
	"context"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// hosts returns a Start for jobs whose ranks are spread over so many hosts by
// turns.
func hosts(hosts int) transporttest.Start {
	return func(t *testing.T, n int) []transport.Endpoint {
		near, err := shm.Loopback(n)
		if err != nil {
			t.Fatal(err)
		}
		far, err := tcp.Loopback(n)
		if err != nil {
			t.Fatal(err)
		}
		all := make([]transport.Endpoint, n)
		for rank := range all {
			all[rank] = New(near[rank], far[rank], func(_ context.Context, other int) (bool, error) {
				return other%hosts == rank%hosts, nil
			})
		}
		return all
	}
}

func TestTheContractIsKeptOverSeveralHosts(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprint("hosts=", n), func(t *testing.T) {
			transporttest.Run(t, hosts(n))
			transporttest.RunMail(t, hosts(n))
			transporttest.RunMember(t, hosts(n))
		})
	}
}
