package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// performanceClaims are not part of the contract.
var performanceClaims = []claim{
	{"TheSteadyStateAllocatesNothing", testNoAllocations},
	{"TaggedMessagesAllocateNothing", testTaggedAllocations},
	{"AShortMessageCompletesWithoutItsReceiver", testEager},
	{"WhatWasSentInSeveralContextsArrivesAfterClose", testSentInContexts},
	{"WhatHasArrivedIsReceivedAfterASendToItsSenderHasFailed", testArrivedAfterFailedSend},
}

func testNoAllocations(t *testing.T, start Start) {
	const rounds = 200
	for _, size := range []int{8, 100_000} {
		exchange := func(ctx context.Context, e transport.Endpoint) func() {
			peer := 1 - e.Rank()
			step := transport.Step{
				Signature: sig,
				Sends:     []transport.Send{{To: []int{peer}, Data: make([]byte, size)}},
				Recvs: []transport.Recv{{
					From: peer, Into: make([]byte, size), Held: make([]byte, size), Elem: 8,
					Combine: func(into, held, incoming []byte) { copy(into, incoming) },
				}},
			}
			return func() {
				if err := e.Exchange(ctx, step); err != nil {
					t.Error(err)
				}
			}
		}
		open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
			if n := testing.AllocsPerRun(rounds, exchange(ctx, e)); n >= 1 {
				return fmt.Errorf("an exchange of %d bytes makes %v allocations", size, n)
			}
			return nil
		}, func(ctx context.Context, e transport.Endpoint) error {
			f := exchange(ctx, e)
			for range rounds + 1 {
				f()
			}
			return nil
		})
	}
}

func testTaggedAllocations(t *testing.T, start Start) {
	if UnderRace {
		t.Skip("under the race detector, pools drop some of what they are given")
	}
	const rounds = 200
	for _, size := range []int{8, 1000, 100_000} {
		for _, from := range []int{0, transport.Any} {
			exchange := func(ctx context.Context, e transport.Endpoint) func() {
				peer := 1 - e.Rank()
				source := peer
				if from == transport.Any {
					source = from
				}
				var r, s transport.Request
				data, into := make([]byte, size), make([]byte, size)
				return func() {
					r.Reset()
					s.Reset()
					e.StartRecv(ctx, &r, source, match, "bytes", into)
					e.StartSend(ctx, &s, peer, match, "bytes", data)
					e.Wait(&r)
					e.Wait(&s)
					if r.Err != nil || s.Err != nil {
						t.Error(r.Err, s.Err)
					}
					if e.Rank() == 0 {
						if err := e.Send(ctx, peer, match, "bytes", data); err != nil {
							t.Error(err)
						}
					} else if _, err := e.Recv(ctx, source, match, "bytes", into); err != nil {
						t.Error(err)
					}
				}
			}
			open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
				if n := testing.AllocsPerRun(rounds, exchange(ctx, e)); n >= 1 {
					return fmt.Errorf("tagged messages of %d bytes make %v allocations", size, n)
				}
				return nil
			}, func(ctx context.Context, e transport.Endpoint) error {
				f := exchange(ctx, e)
				for range rounds + 1 {
					f()
				}
				return nil
			})
		}
	}
}

// testEager has rank 1 receive a short message only after a large message in the
// other direction. The calls wrap around, so that rank 1 compares the number of
// the message that lies there with that of its call.
func testEager(t *testing.T, start Start) {
	const large = 1 << 20
	for _, size := range []int{0, 100} {
		for _, numbers := range successions {
			early, late := sig, sig
			early.Sequence, late.Sequence = numbers[0], numbers[1]
			j := open(t, start, 2)
			if err := send(j.ctx, j.ends[0], late, 1, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
				return recv(ctx, e, early, 1, make([]byte, large))
			}, func(ctx context.Context, e transport.Endpoint) error {
				return errors.Join(send(ctx, e, early, 0, make([]byte, large)), recv(ctx, e, late, 0, make([]byte, size)))
			})
		}
	}
}

// testSentInContexts has rank 0 send two short messages in each of several contexts, and
// tagged ones as long as none waits, and leave. Rank 1 receives them afterwards, those of
// the last context first.
func testSentInContexts(t *testing.T, start Start) {
	const contexts, each, size = 6, 2, 500
	j := open(t, start, 2)
	for i := range contexts * each {
		if err := send(j.ctx, j.ends[0], inContext(uint32(i%contexts)), 1, pattern(make([]byte, size), i)); err != nil {
			t.Fatal(err)
		}
	}
	messages := j.sendTaggedUntilFull(size, 8)
	closed := cluster.Begin(j.ctx, func(context.Context) error { return j.ends[0].Close() })
	for c := contexts - 1; c >= 0; c-- {
		for i := c; i < contexts*each; i += contexts {
			into := make([]byte, size)
			err := recv(j.ctx, j.ends[1], inContext(uint32(c)), 0, into)
			if err != nil || !bytes.Equal(into, pattern(make([]byte, size), i)) {
				t.Fatalf("context %d, message %d: another arrived, or %v", c, i, err)
			}
		}
	}
	for i := range messages {
		if err := recvTagged(j.ctx, j.ends[1], 0, match, tagged(i, size)); err != nil {
			t.Fatalf("tagged message %d of %d: %v", i, messages, err)
		}
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}
