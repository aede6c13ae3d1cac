package transporttest

import (
	"context"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

type startProcesses func(t *testing.T, n int) []transport.ProcessEndpoint

// lostClaims: ranks that a [transport.LossSink] is told are lost.
var lostClaims = []struct {
	name string
	test func(t *testing.T, start startProcesses)
}{
	{"WaitingForALostRankFails", testLost},
	{"WaitingForATaggedMessageOfALostRankFails", testLostTagged},
	{"CloseDoesNotWaitForALostRank", testLostDuringClose},
}

// RunLost tests that endpoints whose ranks can be lost alone keep the contract of
// [transport.LossSink]. Start makes the n endpoints of a fresh job, as
// [Start] does.
func RunLost[E transport.ProcessEndpoint](t *testing.T, start func(t *testing.T, n int) []E) {
	for _, c := range lostClaims {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, func(t *testing.T, n int) (all []transport.ProcessEndpoint) {
				for _, e := range start(t, n) {
					all = append(all, e)
				}
				return all
			})
		})
	}
}

// openProcesses starts a job of n ranks that ends with the test.
func openProcesses(t *testing.T, start startProcesses, n int) (*job, []transport.ProcessEndpoint) {
	t.Helper()
	ends := start(t, n)
	return open(t, func(*testing.T, int) []transport.Endpoint { return cluster.All(ends) }, n), ends
}

func testLost(t *testing.T, start startProcesses) {
	j, ends := openProcesses(t, start, 3)
	received := cluster.Begin(j.ctx, func(ctx context.Context) error { return recv(ctx, ends[0], sig, 1, nil) })
	ends[0].Lost(2, "does not concern the receive")
	ends[0].Lost(1, "killed by signal 9")
	checkReason(t, <-received, 1, transport.ErrLost, "killed by signal 9")

	ends[2].Lost(1, "killed by signal 9")
	checkReason(t, send(j.ctx, ends[2], sig, 1, nil), 1, transport.ErrLost, "killed by signal 9")
	for _, rank := range []int{-1, 2, 3} {
		ends[2].Lost(rank, "no such peer") // ignored
	}
}

func testLostTagged(t *testing.T, start startProcesses) {
	for name, wait := range map[string]rankFunc{
		"receive": func(ctx context.Context, e transport.Endpoint) error {
			return recvTagged(ctx, e, 2, match, nil)
		},
		"receive from any": func(ctx context.Context, e transport.Endpoint) error {
			return recvTagged(ctx, e, transport.Any, match, nil)
		},
		"send": func(ctx context.Context, e transport.Endpoint) error {
			return sendTagged(ctx, e, 2, match, make([]byte, 1<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, ends := openProcesses(t, start, 3)
			ended := cluster.Begin(j.ctx, func(ctx context.Context) error { return wait(ctx, ends[0]) })
			ends[0].Lost(2, "it was killed")
			checkReason(t, <-ended, 2, transport.ErrLost, "it was killed")
			// Only rank 2 is lost.
			j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
				return recvTagged(ctx, e, 1, match, tagged(1, 2))
			}, func(ctx context.Context, e transport.Endpoint) error {
				return sendTagged(ctx, e, 0, match, tagged(1, 2))
			})
		})
	}
}

func testLostDuringClose(t *testing.T, start startProcesses) {
	j, ends := openProcesses(t, start, 3)
	if err := sendList(j.ctx, ends[0], 1, leavingTagged); err != nil {
		t.Fatal(err)
	}
	closed := beginClose(j)
	ends[0].Lost(1, "killed by signal 9")
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}
