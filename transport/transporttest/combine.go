package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// combineClaims: receives with a Combine function.
var combineClaims = []claim{
	{"AReceiveCombinesIncomingBytesWithHeld", testCombine},
	{"PiecesAreWholeElements", testPieces},
	{"PiecesAreAlignedAsTheirElements", testAlignment},
	{"SeveralReceivesCombineInOneStep", testCombineSeveral},
}

// mix is an operator that does not commute: swapping held and incoming changes the
// result.
func mix(into, held, incoming []byte) {
	for i := range into {
		into[i] = 3*held[i] + incoming[i]
	}
}

func testCombine(t *testing.T, start Start) {
	j := open(t, start, 2)
	for _, inPlace := range []bool{true, false} {
		for _, size := range []int{0, 1, 8, 1000, 65536, 1<<20 + 1} {
			sent := pattern(make([]byte, size), 1)
			held := pattern(make([]byte, size), 2)
			want := make([]byte, size)
			mix(want, held, sent)
			j.each(func(ctx context.Context, e transport.Endpoint) error {
				if e.Rank() == 0 {
					data := bytes.Clone(sent)
					err := send(ctx, e, sig, 1, data)
					if err == nil && !bytes.Equal(data, sent) {
						err = errors.New("the data of a send was written")
					}
					return err
				}
				into, left := make([]byte, size), bytes.Clone(held)
				if inPlace {
					into = left
				}
				err := e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
					{From: 0, Into: into, Held: left, Combine: mix, Elem: 1},
				}})
				switch {
				case err != nil:
					return err
				case !bytes.Equal(into, want):
					return fmt.Errorf("%d bytes, in place %v: Into is not Combine(Into, Held, incoming)", size, inPlace)
				case !inPlace && !bytes.Equal(left, held):
					return fmt.Errorf("%d bytes: Held was written", size)
				}
				return nil
			})
		}
	}
}

func testPieces(t *testing.T, start Start) {
	j := open(t, start, 2)
	for _, elem := range []int{1, 3, 8, 12, 1000, 100_003} {
		size := elem * max(1, 600_000/elem)
		sent := pattern(make([]byte, size), elem)
		j.each(func(ctx context.Context, e transport.Endpoint) error {
			if e.Rank() == 0 {
				return send(ctx, e, sig, 1, sent)
			}
			var wrong error
			total := 0
			into, held, want := make([]byte, size), pattern(make([]byte, size), 1), make([]byte, size)
			mix(want, held, sent)
			err := e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{{
				From: 0, Into: into, Held: held, Elem: elem,
				Combine: func(into, held, incoming []byte) {
					if len(into) != len(held) || len(into) != len(incoming) || len(into)%elem != 0 {
						wrong = fmt.Errorf("pieces of %d, %d and %d bytes, elements of %d", len(into), len(held), len(incoming), elem)
						return
					}
					total += len(into)
					mix(into, held, incoming)
				},
			}}})
			switch {
			case err != nil:
				return err
			case wrong != nil:
				return wrong
			case total != size:
				return fmt.Errorf("the pieces add up to %d bytes of %d", total, size)
			case !bytes.Equal(into, want):
				return fmt.Errorf("elements of %d bytes: Combine got pieces that do not match each other", elem)
			}
			return nil
		})
	}
}

// testAlignment uses elements that no chunk size of a transport is a multiple of.
// Combine gets them whole, aligned as in an array of their own.
func testAlignment(t *testing.T, start Start) {
	for _, elem := range []int{8, 24, 40_000, 300_008} {
		for _, call := range []string{"", "1", "five", "seven is odd"} {
			size := elem * (3<<20/elem + 1)
			s, data := transport.Signature{Call: call}, pattern(make([]byte, size), elem)
			open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
				return send(ctx, e, s, 1, data)
			}, func(ctx context.Context, e transport.Endpoint) error {
				into, misaligned := make([]byte, size), 0
				err := e.Exchange(ctx, transport.Step{Signature: s, Recvs: []transport.Recv{{
					From: 0, Into: into, Held: into, Elem: elem,
					Combine: func(into, held, incoming []byte) {
						if uintptr(unsafe.Pointer(&incoming[0]))%8 != 0 || len(incoming)%elem != 0 {
							misaligned++
						}
						copy(into, incoming)
					},
				}}})
				if err == nil && (misaligned > 0 || !bytes.Equal(into, data)) {
					err = fmt.Errorf("elements of %d bytes, call %q: %d pieces are misaligned or cut, result right: %v", elem, call, misaligned, bytes.Equal(into, data))
				}
				return err
			})
		}
	}
}

func testCombineSeveral(t *testing.T, start Start) {
	const n = 4
	for _, size := range []int{5, 70_000} {
		open(t, start, n).each(func(ctx context.Context, e transport.Endpoint) error {
			mine := pattern(make([]byte, size), e.Rank())
			step := transport.Step{Signature: sig}
			for d := 1; d < n; d++ {
				step.Sends = append(step.Sends, transport.Send{To: []int{(e.Rank() + d) % n}, Data: mine})
				step.Recvs = append(step.Recvs, transport.Recv{
					From: (e.Rank() + d) % n, Into: make([]byte, size), Held: mine, Combine: mix, Elem: 1,
				})
			}
			if err := e.Exchange(ctx, step); err != nil {
				return err
			}
			want := make([]byte, size)
			for _, r := range step.Recvs {
				mix(want, mine, pattern(make([]byte, size), r.From))
				if !bytes.Equal(r.Into, want) {
					return fmt.Errorf("wrong result for %d bytes from rank %d", size, r.From)
				}
			}
			return nil
		})
	}
}
