package mixed

import (
	"context"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// start makes a job of n ranks. Rank r is on host r modulo hosts.
func start(t *testing.T, n, hosts int) []*Endpoint {
	local, err := shm.Loopback(n)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := tcp.Loopback(n)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]*Endpoint, n)
	for rank := range ends {
		ends[rank] = New(local[rank], remote[rank], func(_ context.Context, peer int) (bool, error) {
			return peer%hosts == rank%hosts, nil
		})
	}
	return ends
}

func TestTheContractIsKeptOverSeveralHosts(t *testing.T) {
	for _, hosts := range []int{1, 2, 3} {
		t.Run(fmt.Sprint("hosts=", hosts), func(t *testing.T) {
			asInterface := func(t *testing.T, n int) []transport.Endpoint { return cluster.All(start(t, n, hosts)) }
			transporttest.Run(t, asInterface)
			transporttest.RunPerformance(t, asInterface)
			transporttest.RunLost(t, func(t *testing.T, n int) []*Endpoint { return start(t, n, hosts) })
		})
	}
}
