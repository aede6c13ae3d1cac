package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// revokeClaims: the failure of a communicator, and what it leaves alone.
var revokeClaims = []claim{
	{"RevokeEndsWhatIsInProgressInItsCommunicator", testRevokeInProgress},
	{"LaterOperationsOfARevokedCommunicatorFail", testRevokeBefore},
	{"ARevocationReachesRanksThatWaitForOneAnother", testRevokeChain},
	{"TheErrorOfARevocationNamesItsRankAndCause", testRevokeError},
	{"ACommunicatorIsRevokedOnce", testRevokeTwice},
	{"ARevocationLeavesOtherCommunicatorsAlone", testRevokeOthers},
	{"WhatIsSentBesideARevocationArrives", testRevokeBeside},
	{"ACanceledSendLeavesItsMemoryToTheCaller", testCanceledMemory},
	{"ACanceledReceiveLeavesItsMemoryToTheCaller", testCanceledInto},
	{"ARevocationIsForTheMembersOfItsCommunicator", testRevokeMembers},
	{"TheResilientContextOfARevokedCommunicatorGoesOn", testResilient},
	{"ARankThatGivesUpRevokesTheCommunicatorsThatItBelongsTo", testGivesUp},
	{"ARankThatLeavesRevokesTheCommunicatorsThatWaitForIt", testLeavesCommunicator},
	{"AReceiveFromAnyWaitsForMembersAlone", testAnyOfMembers},
	{"ARevocationReturnsAllCredits", testRevokeCredits},
	{"ManyRevocationsLeaveNothingBehind", testManyRevocations},
}

// IsolationClaims returns the names of the claims of [Run] that an endpoint does not keep
// which the failure of one communicator ends as a whole.
func IsolationClaims() []string {
	names := []string{"ACanceledExchangeRevokesItsCommunicatorForItsPeers"}
	for _, c := range revokeClaims {
		names = append(names, c.name)
	}
	return names
}

// The communicators of most of these claims.
const (
	revoked = 5
	sound   = 6
)

// inCommunicator returns the signature of a communicator.
func inCommunicator(number uint32) transport.Signature {
	return inContext(number<<transport.ContextBits | 1)
}

// matchIn returns the match of tagged messages of a communicator.
func matchIn(number uint32) transport.Match {
	return transport.Match{Context: number<<transport.ContextBits | 2, Tag: match.Tag}
}

// resilientMatch returns the match of tagged messages of its resilient context.
func resilientMatch(number uint32) transport.Match {
	return transport.Match{Context: transport.ResilientContext(number), Tag: match.Tag}
}

// revocation returns the error with which a rank revokes a communicator.
func revocation(rank int) *transport.PeerError {
	return &transport.PeerError{Peer: rank, Err: transport.ErrRevoked, Reason: "it has called Revoke"}
}

// checkSame tests that err is exactly this error, of whatever pointer.
func checkSame(t *testing.T, what string, err error, want *transport.PeerError) {
	t.Helper()
	var got *transport.PeerError
	if !errors.As(err, &got) || *got != *want {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// connect has all ranks exchange messages with all others in context 0.
func (j *job) connect() {
	j.Helper()
	j.each(func(ctx context.Context, e transport.Endpoint) error { return swapAll(ctx, e, sig, 8) })
}

// swapAll is an Exchange of messages with all other ranks, which checks what arrives.
func swapAll(ctx context.Context, e transport.Endpoint, s transport.Signature, size int) error {
	step := transport.Step{Signature: s, Sends: []transport.Send{{Data: pattern(make([]byte, size), e.Rank())}}}
	for d := 1; d < e.Size(); d++ {
		peer := (e.Rank() + d) % e.Size()
		step.Sends[0].To = append(step.Sends[0].To, peer)
		step.Recvs = append(step.Recvs, transport.Recv{From: peer, Into: make([]byte, size)})
	}
	if err := e.Exchange(ctx, step); err != nil {
		return err
	}
	for _, r := range step.Recvs {
		if !bytes.Equal(r.Into, pattern(make([]byte, size), r.From)) {
			return fmt.Errorf("the %d bytes of rank %d arrived changed", size, r.From)
		}
	}
	return nil
}

// swapTagged exchanges tagged messages with all other ranks.
func swapTagged(ctx context.Context, e transport.Endpoint, m transport.Match, size int) error {
	var errs []error
	for d := 1; d < e.Size(); d++ {
		to, from := (e.Rank()+d)%e.Size(), (e.Rank()+e.Size()-d)%e.Size()
		s := startSend(ctx, e, to, m, tagged(e.Rank(), size))
		errs = append(errs, recvTagged(ctx, e, from, m, tagged(from, size)), waitFor(e, s))
	}
	return errors.Join(errs...)
}

// waits are operations of rank 0 in a communicator that wait for rank 1, or for any rank.
var waits = map[string]func(ctx context.Context, e transport.Endpoint, number uint32) error{
	"receive": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		return recv(ctx, e, inCommunicator(number), 1, make([]byte, 8))
	},
	"send": func(ctx context.Context, e transport.Endpoint, number uint32) (err error) {
		for err == nil {
			err = send(ctx, e, inCommunicator(number), 1, make([]byte, 1<<20))
		}
		return err
	},
	"exchange with all": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		return swapAll(ctx, e, inCommunicator(number), 100_000)
	},
	"send of a tagged message": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		return sendTagged(ctx, e, 1, matchIn(number), make([]byte, 3<<20))
	},
	"receive of a tagged message": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		return recvTagged(ctx, e, 1, matchIn(number), make([]byte, 8))
	},
	"receive from any": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		return recvTagged(ctx, e, transport.Any, matchIn(number), make([]byte, 8))
	},
	"posted receive": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		return waitFor(e, startRecv(ctx, e, 1, matchIn(number), 8))
	},
	"posted receive from any": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		return waitFor(e, startRecv(ctx, e, transport.Any, matchIn(number), 8))
	},
	"probe": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		_, _, err := e.Probe(ctx, 1, matchIn(number), true)
		return err
	},
	"probe from any": func(ctx context.Context, e transport.Endpoint, number uint32) error {
		_, _, err := e.Probe(ctx, transport.Any, matchIn(number), true)
		return err
	},
}

// testRevokeInProgress has rank 0 wait for rank 1, which is in no call. Rank 0 itself, rank
// 1 or rank 2 revokes the communicator.
func testRevokeInProgress(t *testing.T, start Start) {
	for name, wait := range waits {
		for _, connected := range []bool{true, false} {
			for revoker := range 3 {
				t.Run(fmt.Sprintf("%s/connected=%v/by rank %d", name, connected, revoker), func(t *testing.T) {
					j := open(t, start, 3)
					if connected {
						j.connect()
					}
					ended := cluster.Begin(j.ctx, func(ctx context.Context) error { return wait(ctx, j.ends[0], revoked) })
					why := revocation(revoker)
					j.ends[revoker].Revoke(revoked, why)
					checkSame(t, "rank 0", <-ended, why)
				})
			}
		}
	}
}

// testRevokeBefore revokes a communicator before rank 0 waits there.
func testRevokeBefore(t *testing.T, start Start) {
	for name, wait := range waits {
		for revoker := range 3 {
			t.Run(fmt.Sprintf("%s/by rank %d", name, revoker), func(t *testing.T) {
				j := open(t, start, 3)
				why := revocation(revoker)
				j.ends[revoker].Revoke(revoked, why)
				checkSame(t, "the rank that revokes", j.ends[revoker].Revoked(revoked), why)
				for range 2 {
					checkSame(t, "rank 0", wait(j.ctx, j.ends[0], revoked), why)
				}
				checkSame(t, "rank 0", j.ends[0].Revoked(revoked), why)
				j.each(func(ctx context.Context, e transport.Endpoint) error {
					return errors.Join(e.Revoked(sound), swapAll(ctx, e, inCommunicator(sound), 8))
				})
			})
		}
	}
}

// testRevokeChain has each rank wait for the next one, and the last one in no call.
func testRevokeChain(t *testing.T, start Start) {
	const n = 6
	j := open(t, start, n)
	var ended [n - 1]<-chan error
	for rank := range ended {
		ended[rank] = cluster.Begin(j.ctx, func(ctx context.Context) error {
			return recv(ctx, j.ends[rank], inCommunicator(revoked), rank+1, make([]byte, 8))
		})
	}
	why := revocation(n - 1)
	j.ends[n-1].Revoke(revoked, why)
	for rank, err := range ended {
		checkSame(t, fmt.Sprint("rank ", rank), <-err, why)
	}
}

// testRevokeError revokes for a reason that is no error of a peer.
func testRevokeError(t *testing.T, start Start) {
	enough := errors.New("enough")
	j := open(t, start, 3)
	received := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recv(ctx, j.ends[1], inCommunicator(revoked), 2, make([]byte, 8))
	})
	j.ends[0].Revoke(revoked, enough)
	for _, err := range []error{j.ends[0].Revoked(revoked), swap(j.ctx, j.ends[0], inCommunicator(revoked), 1)} {
		if !errors.Is(err, enough) {
			t.Errorf("rank 0: got %v, want %v", err, enough)
		}
	}
	want := &transport.PeerError{Peer: 0, Err: transport.ErrAborted, Reason: "enough"}
	checkSame(t, "rank 1", <-received, want)
	checkSame(t, "rank 2", recv(j.ctx, j.ends[2], inCommunicator(revoked), 0, make([]byte, 8)), want)
}

func testRevokeTwice(t *testing.T, start Start) {
	j := open(t, start, 2)
	first, second := revocation(0), revocation(1)
	j.ends[0].Revoke(revoked, first)
	j.ends[0].Revoke(revoked, second)
	checkSame(t, "rank 0", j.ends[0].Revoked(revoked), first)
	j.until(func() bool {
		_, _, _ = j.ends[1].Probe(j.ctx, 0, matchIn(sound), false) // polls
		return j.ends[1].Revoked(revoked) != nil
	})
	j.ends[1].Revoke(revoked, second)
	for _, e := range j.ends {
		checkSame(t, fmt.Sprint("rank ", e.Rank()), swap(j.ctx, e, inCommunicator(revoked), 1-e.Rank()), first)
	}
	j.each(func(ctx context.Context, e transport.Endpoint) error { return swapAll(ctx, e, sig, 8) })
}

// revokeSizes are of every protocol, in bytes.
func revokeSizes() []int {
	sizes := []int{8, 1 << 10, 64 << 10, 1 << 20}
	if !testing.Short() && !UnderRace {
		sizes = append(sizes, 32<<20)
	}
	return sizes
}

// testRevokeOthers has every rank wait in two communicators, by steps and by tagged
// messages. One is revoked, and then the other goes on.
func testRevokeOthers(t *testing.T, start Start) {
	for _, size := range revokeSizes() {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			j := open(t, start, 3)
			why := revocation(1)
			var failed, going []<-chan error
			for rank, e := range j.ends {
				if rank == 1 {
					continue
				}
				failed = append(failed, cluster.Begin(j.ctx, func(ctx context.Context) error {
					return swapAll(ctx, e, inCommunicator(revoked), size)
				}))
				going = append(going, cluster.Begin(j.ctx, func(ctx context.Context) error {
					return swapAll(ctx, e, inCommunicator(sound), size)
				}), cluster.Begin(j.ctx, func(ctx context.Context) error {
					return swapTagged(ctx, e, matchIn(sound), size)
				}))
			}
			e := j.ends[1]
			e.Revoke(revoked, why)
			j.noErrors([]error{nil, errors.Join(
				swapAll(j.ctx, e, inCommunicator(sound), size),
				swapTagged(j.ctx, e, matchIn(sound), size))})
			for _, err := range going {
				if err := <-err; err != nil {
					t.Errorf("the other communicator: %v", err)
				}
			}
			for _, err := range failed {
				checkSame(t, "the communicator", <-err, why)
			}
			j.each(func(ctx context.Context, e transport.Endpoint) error {
				return errors.Join(e.Revoked(sound), swapAll(ctx, e, sig, size))
			})
		})
	}
}

// testRevokeBeside revokes communicators one after another, each at another moment, while
// messages of every size are on their way there and in another communicator, in both
// directions: some are unexpected, some arrive in part, and some are received.
func testRevokeBeside(t *testing.T, start Start) {
	for _, size := range revokeSizes() {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			rounds := 12
			if size > 1<<20 || UnderRace {
				rounds = 4
			}
			j := open(t, start, 2)
			j.connect()
			for round := range uint32(rounds) {
				number, why := revoked+2*round, revocation(0)
				sound := number + 1
				var failed, going sync.WaitGroup
				for _, e := range j.ends {
					peer := 1 - e.Rank()
					for range 2 {
						failed.Go(func() {
							m := matchIn(number)
							if err := sendTagged(j.ctx, e, peer, m, tagged(1, size)); err != nil {
								checkSame(t, "a tagged message", err, why)
							}
						})
					}
					failed.Go(func() { // to a receive
						if err := swapAll(j.ctx, e, inCommunicator(number), size); err != nil {
							checkSame(t, "a step", err, why)
						}
					})
					failed.Go(func() { // without one
						s := inCommunicator(number)
						s.Context += 8
						if err := send(j.ctx, e, s, peer, make([]byte, size)); err != nil {
							checkSame(t, "a step without a receive", err, why)
						}
					})
					going.Go(func() {
						for range 3 {
							if err := errors.Join(
								swapAll(j.ctx, e, inCommunicator(sound), size),
								swapTagged(j.ctx, e, matchIn(sound), size)); err != nil {
								t.Errorf("round %d: the other communicator: %v", round, err)
							}
						}
					})
				}
				time.Sleep(time.Duration(round) * time.Duration(size/16+1000) * time.Nanosecond / 4)
				j.ends[0].Revoke(number, why)
				j.await(failed.Wait)
				j.await(going.Wait)
				if t.Failed() {
					return
				}
			}
		})
	}
}
