package transporttest

import (
	"context"
	"errors"
	"slices"
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
	{"ALostRankRevokesTheCommunicatorsThatItBelongsTo", testLostRevokes},
	{"ACommunicatorWithALostRankIsRevokedWhenItIsUsed", testLostBefore},
}

// RunLost tests that endpoints whose ranks can be lost alone keep the contract of
// [transport.LossSink]. Start makes the n endpoints of a fresh job, as
// [Start] does. RunLost skips the claims named in except, as [Run] does.
func RunLost[E transport.ProcessEndpoint](t *testing.T, start func(t *testing.T, n int) []E, except ...string) {
	for _, c := range lostClaims {
		if slices.Contains(except, c.name) {
			continue
		}
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
	ends[0].SetMembers(0, []int{0, 1})
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
			for _, e := range ends[:2] {
				e.SetMembers(sound, []int{0, 1})
			}
			j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
				return recvTagged(ctx, e, 1, matchIn(sound), tagged(1, 2))
			}, func(ctx context.Context, e transport.Endpoint) error {
				return sendTagged(ctx, e, 0, matchIn(sound), tagged(1, 2))
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

// testLostRevokes has a launcher tell rank 0 alone that rank 3 is lost. Rank 1 waits for
// rank 2, and both hear of it from rank 0.
func testLostRevokes(t *testing.T, start startProcesses) {
	j, ends := openProcesses(t, start, 4)
	for _, e := range ends {
		e.SetMembers(revoked, []int{0, 1, 2, 3})
	}
	for _, e := range ends[:3] {
		e.SetMembers(sound, []int{0, 1, 2})
	}
	j.connect()
	received := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recv(ctx, ends[1], inCommunicator(revoked), 2, make([]byte, 8))
	})
	going := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recv(ctx, ends[1], inCommunicator(sound), 2, make([]byte, 8))
	})
	resilient := startRecv(j.ctx, ends[1], 2, resilientMatch(revoked), 8)
	ends[0].Lost(3, "it was killed")
	want := &transport.PeerError{Peer: 3, Err: transport.ErrLost, Reason: "it was killed"}
	checkSame(t, "rank 0", ends[0].Revoked(revoked), want)
	checkSame(t, "rank 1", <-received, want)
	checkSame(t, "rank 2", recv(j.ctx, ends[2], inCommunicator(revoked), 1, make([]byte, 8)), want)
	checkSame(t, "a receive from the rank", recvTagged(j.ctx, ends[0], 3, resilientMatch(revoked), nil), want)
	if err := errors.Join(
		send(j.ctx, ends[2], inCommunicator(sound), 1, make([]byte, 8)), <-going,
		sendTagged(j.ctx, ends[2], 1, resilientMatch(revoked), tagged(1, 8)), waitFor(ends[1], resilient)); err != nil {
		t.Errorf("what goes on: %v", err)
	}
	stay := func(ctx context.Context, e transport.Endpoint) error {
		next, before := (e.Rank()+1)%3, (e.Rank()+2)%3
		return errors.Join(e.Revoked(sound), e.Exchange(ctx, transport.Step{
			Signature: inCommunicator(sound),
			Sends:     []transport.Send{{To: []int{next}, Data: make([]byte, 1<<20)}},
			Recvs:     []transport.Recv{{From: before, Into: make([]byte, 1<<20)}},
		}), sendTagged(ctx, e, next, resilientMatch(revoked), tagged(2, 1000)),
			recvTagged(ctx, e, before, resilientMatch(revoked), tagged(2, 1000)))
	}
	j.mustAll(stay, stay, stay, nil)
}

// testLostBefore has ranks 0 and 1 begin to use a communicator when rank 2, which belongs to
// it, is lost. Only rank 0 is told so.
func testLostBefore(t *testing.T, start startProcesses) {
	j, ends := openProcesses(t, start, 3)
	ends[0].Lost(2, "it was killed")
	for _, e := range ends[:2] {
		e.SetMembers(revoked, []int{0, 1, 2})
		e.SetMembers(sound, []int{0, 1})
	}
	received := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recv(ctx, ends[1], inCommunicator(revoked), 0, make([]byte, 8))
	})
	want := &transport.PeerError{Peer: 2, Err: transport.ErrLost, Reason: "it was killed"}
	checkSame(t, "rank 0", recv(j.ctx, ends[0], inCommunicator(revoked), 1, make([]byte, 8)), want)
	checkSame(t, "rank 1", <-received, want)
	stay := func(ctx context.Context, e transport.Endpoint) error {
		return swap(ctx, e, inCommunicator(sound), 1-e.Rank())
	}
	j.mustAll(stay, stay)
}
