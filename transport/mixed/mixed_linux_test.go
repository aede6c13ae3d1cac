package mixed

import (
	"context"
	"fmt"
	"sync"
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
			if testing.Short() && hosts != 2 {
				t.Skip("the contract once more: on two hosts, ranks have both local and remote peers")
			}
			asInterface := func(t *testing.T, n int) []transport.Endpoint { return cluster.All(start(t, n, hosts)) }
			var fromBoth, goroutines []string
			if hosts > 1 {
				// A receive from any rank is in neither endpoint's list of posted receives, and
				// has a goroutine; so has what is in progress at the endpoint that does not wait.
				fromBoth = []string{"AReceiveFromAnyRankTakesItsTurnAmongTheOthers"}
				goroutines = []string{"TaggedMessagesAllocateNothing"}
				if transporttest.UnderRace { // it takes 3 s without, and longer than a claim may with
					fromBoth = append(fromBoth, "AnnouncementsWaitBeyondABoundAndKeepTheirOrder")
				}
			}
			transporttest.Run(t, asInterface, fromBoth...)
			transporttest.RunPerformance(t, asInterface, goroutines...)
			transporttest.RunLost(t, func(t *testing.T, n int) []*Endpoint { return start(t, n, hosts) })
		})
	}
}

// Of the peers of rank 0, rank 1 is remote and rank 2 local.
func TestACombineThatPanicsEndsBothEndpoints(t *testing.T) {
	for _, c := range []struct {
		name    string
		from    int // the rank whose message is combined
		ordered bool
	}{{"remote", 1, false}, {"local", 2, false}, {"after both", 2, true}} {
		t.Run(c.name, func(t *testing.T) {
			ends := cluster.Job(t, start(t, 3, 2), nil)
			sig := cluster.Sig
			cluster.Each(t, ends, func(e *Endpoint) error {
				if e.Rank() != 0 {
					_ = cluster.Send(e, sig, 0, make([]byte, 8)) // fails if the other message is there first
					return nil
				}
				recvs := []transport.Recv{{From: 3 - c.from, Into: make([]byte, 8)}}
				recvs = append(recvs, transport.Recv{
					From: c.from, Into: make([]byte, 8), Held: make([]byte, 8), Elem: 8, Ordered: c.ordered,
					Combine: func(_, _, _ []byte) { panic("no such sum") },
				})
				defer func() {
					if v := recover(); v != "no such sum" {
						t.Errorf("recovered %v", v)
					}
				}()
				err := e.Exchange(t.Context(), transport.Step{Signature: sig, Recvs: recvs})
				return fmt.Errorf("Exchange returned %v", err)
			})
			if err := cluster.Swap(t.Context(), ends[0], sig, 1); err != transport.ErrPanicked {
				t.Errorf("rank 0: got %v, want %v", err, transport.ErrPanicked)
			}
			for _, e := range ends[1:] {
				cluster.CheckPeer(t, cluster.Swap(t.Context(), e, sig, 0), 0, transport.ErrAborted, transport.ErrPanicked.Error())
			}
		})
	}
}

// Of the peers of rank 0, rank 1 is remote and rank 2 local.
func TestReceivesFromAnyRankAreFairToBothEndpoints(t *testing.T) {
	const each = 50
	ctx, match := t.Context(), transport.Match{Context: 1, Tag: 1}
	ends := cluster.Job(t, start(t, 3, 2), nil)
	last := transport.Match{Context: 1, Tag: 2}
	for _, e := range ends[1:] {
		for i := range each + 1 {
			m := match
			if i == each {
				m = last
			}
			if err := e.Send(ctx, 0, m, "bytes", nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := ends[0].Probe(ctx, e.Rank(), last, true); err != nil {
			t.Fatal(err)
		}
	}
	from := make([]int, 3)
	for range each {
		info, err := ends[0].Recv(ctx, transport.Any, match, "bytes", nil)
		if err != nil {
			t.Fatal(err)
		}
		from[info.From]++
	}
	if from[1] < each/3 || from[2] < each/3 {
		t.Errorf("of %d messages, %d are remote and %d local", each, from[1], from[2])
	}
}

// Rank 0 waits for one of two requests; the other endpoint's is driven meanwhile. Each serves
// a local and a remote peer by turns.
func TestARequestServesAgainWhenItWasWaitedFor(t *testing.T) {
	const rounds = 3000
	ends := start(t, 3, 2)
	var ranks sync.WaitGroup
	match := transport.Match{Tag: 1}
	for _, e := range ends[1:] {
		ranks.Go(func() {
			for range rounds {
				if err := e.Send(t.Context(), 0, match, "byte", make([]byte, 8)); err != nil {
					t.Error(err)
					return
				}
				if _, err := e.Recv(t.Context(), 0, match, "byte", make([]byte, 8)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var requests [2]transport.Request
	into := [2][]byte{make([]byte, 8), make([]byte, 8)}
	for round := range rounds {
		for i := range requests {
			requests[i].Reset()
			ends[0].StartRecv(t.Context(), &requests[i], 1+(round+i)%2, match, "byte", into[i])
		}
		for i := range requests {
			ends[0].Wait(&requests[i])
			if err := requests[i].Err; err != nil {
				t.Fatal(err)
			}
			if err := ends[0].Send(t.Context(), 1+(round+i)%2, match, "byte", into[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	ranks.Wait()
	for _, e := range ends {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
