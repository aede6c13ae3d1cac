package chorale_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
	mixedtransport "github.com/chorale-go/chorale/transport/mixed"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
)

// Between hosts, two ranks share a connection if a schedule has a message between them,
// and otherwise none.
func TestRanksConnectToThePeersOfTheirSchedulesAlone(t *testing.T) {
	const p = 8
	flat := map[sched.Collective]string{
		sched.AllReduce: "recursive-doubling", sched.AllGather: "ring", sched.Bcast: "binomial", sched.Barrier: "dissemination",
	}
	hierarchical := map[sched.Collective]string{
		sched.AllReduce: "hierarchical,hosts=2", sched.AllGather: "hierarchical,hosts=2,between=recursive-doubling",
		sched.Bcast: "hierarchical,hosts=2", sched.Barrier: "hierarchical,hosts=2",
	}
	for _, test := range []struct {
		name       string
		hosts      int
		algorithms map[sched.Collective]string
		want       int // connections
	}{
		{"flat, each rank on a host", p, flat, 20},
		{"flat, two hosts", 2, flat, 10},
		{"hierarchical, two hosts", 2, hierarchical, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			isLocal := func(a, b int) bool { return a*test.hosts/p == b*test.hosts/p }
			pairs := map[[2]int]bool{}
			for c, spec := range test.algorithms {
				s, err := algo.New(c, spec, p, 0, 8)
				if err != nil {
					t.Fatal(err)
				}
				for rank := range p {
					for _, step := range s.Program(rank) {
						for _, send := range step.Sends {
							for _, to := range send.To {
								if !isLocal(rank, to) {
									pairs[[2]int{min(rank, to), max(rank, to)}] = true
								}
							}
						}
					}
				}
			}
			if len(pairs) != test.want {
				t.Errorf("the schedules use %d connections, want %d", len(pairs), test.want)
			}
			ends := endpointsOnHosts(t, p, isLocal)
			before := sockets(t)
			var ranks sync.WaitGroup
			for _, e := range ends {
				ranks.Go(func() {
					c := chorale.NewComm(e, chorale.CommConfig{Transport: "tcp"})
					for range 2 {
						if err := callEach(t.Context(), c, test.algorithms); err != nil {
							t.Error(err)
						}
					}
				})
			}
			ranks.Wait()
			// Where two ranks have dialed each other at once, one connection is closed.
			deadline := time.Now().Add(10 * time.Second)
			open := sockets(t) - before
			for ; open != 2*len(pairs) && time.Now().Before(deadline); open = sockets(t) - before {
				time.Sleep(time.Millisecond)
			}
			if open != 2*len(pairs) {
				t.Errorf("%d sockets are open, want 2 for each of %d connections", open, len(pairs))
			}
		})
	}
}

// callEach makes one call of each collective that has an algorithm.
func callEach(ctx context.Context, c *chorale.Comm, algorithms map[sched.Collective]string) error {
	with := func(op sched.Collective) chorale.Option { return chorale.WithAlgorithm(algorithms[op]) }
	v, all := []int64{1}, make([]int64, c.Size())
	if err := chorale.AllReduce(ctx, c, v, v, chorale.Sum, with(sched.AllReduce)); err != nil {
		return err
	}
	if err := chorale.AllGather(ctx, c, all, v, with(sched.AllGather)); err != nil {
		return err
	}
	if err := chorale.Bcast(ctx, c, v, 0, with(sched.Bcast)); err != nil {
		return err
	}
	return chorale.Barrier(ctx, c, with(sched.Barrier))
}

// endpointsOnHosts returns the endpoints of a job that share memory on a host, and use
// TCP between hosts.
func endpointsOnHosts(t *testing.T, p int, isLocal func(a, b int) bool) []transport.Endpoint {
	t.Helper()
	local, err := shm.Loopback(p)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := tcp.Loopback(p)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]transport.Endpoint, p)
	for rank := range ends {
		e := mixedtransport.New(local[rank], remote[rank], func(_ context.Context, peer int) (bool, error) { return isLocal(rank, peer), nil })
		t.Cleanup(func() { e.Close() })
		ends[rank] = e
	}
	return ends
}

// sockets counts the open sockets of this process.
func sockets(t *testing.T) (n int) {
	t.Helper()
	const dir = "/proc/self/fd"
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, _ := os.Readlink(dir + "/" + f.Name()); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
