package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// performanceClaims are not part of the contract.
var performanceClaims = []claim{
	{"TheSteadyStateAllocatesNothing", testNoAllocations},
	{"AShortMessageCompletesWithoutItsReceiver", testEager},
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
