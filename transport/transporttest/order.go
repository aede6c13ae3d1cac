package transporttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// orderClaims: which message meets which receive, and when.
var orderClaims = []claim{
	{"MessagesOfAPairArriveInOrder", testPairOrder},
	{"SeveralMessagesToOneRankInOneStep", testSeveralPerStep},
	{"ReceivesLandAsTheyComeUnlessInTurn", testOutOfOrder},
	{"ReceivesInTurnLandInTheOrderListed", testInTurn},
	{"ContextsNeverMeet", testContexts},
	{"ALargeMessageDoesNotHoldBackAnotherContext", testLargeElsewhere},
	{"ARankMayRunAhead", testRunAhead},
}

func testPairOrder(t *testing.T, start Start) {
	const messages = 1000
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		var buf [8]byte
		for i := range uint64(messages) {
			if e.Rank() == 0 {
				binary.LittleEndian.PutUint64(buf[:], i)
				if err := send(ctx, e, sig, 1, buf[:]); err != nil {
					return err
				}
				continue
			}
			if err := recv(ctx, e, sig, 0, buf[:]); err != nil {
				return err
			}
			if got := binary.LittleEndian.Uint64(buf[:]); got != i {
				return fmt.Errorf("message %d came when %d was due", got, i)
			}
		}
		return nil
	})
}

func testSeveralPerStep(t *testing.T, start Start) {
	const messages = 20
	// The sizes differ, so that a message in a wrong place cannot pass.
	message := func(from, i int) []byte { return pattern(make([]byte, (i*7919)%5000), from*100+i) }
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		peer := 1 - e.Rank()
		step := transport.Step{Signature: sig}
		for i := range messages {
			step.Sends = append(step.Sends, transport.Send{To: []int{peer}, Data: message(e.Rank(), i)})
			step.Recvs = append(step.Recvs, transport.Recv{From: peer, Into: make([]byte, len(message(peer, i)))})
		}
		if err := e.Exchange(ctx, step); err != nil {
			return err
		}
		for i, r := range step.Recvs {
			if !bytes.Equal(r.Into, message(peer, i)) {
				return fmt.Errorf("receive %d got another message", i)
			}
		}
		return nil
	})
}

// testOutOfOrder has rank 0 list rank 1 before rank 2, while rank 1 cannot
// send before rank 2 is rid of its large message to rank 0.
func testOutOfOrder(t *testing.T, start Start) {
	big := make([]byte, 4<<20)
	j := open(t, start, 3)
	errs := j.all(
		func(ctx context.Context, e transport.Endpoint) error {
			return e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
				{From: 1, Into: make([]byte, len(big))},
				{From: 2, Into: make([]byte, len(big))},
			}})
		},
		func(ctx context.Context, e transport.Endpoint) error {
			if err := recv(ctx, e, sig, 2, make([]byte, 1)); err != nil {
				return err
			}
			return send(ctx, e, sig, 0, big)
		},
		func(ctx context.Context, e transport.Endpoint) error {
			if err := send(ctx, e, sig, 0, big); err != nil {
				return err
			}
			return send(ctx, e, sig, 1, make([]byte, 1))
		},
	)
	for rank, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// testInTurn has three ranks send to one place, in every order of coming.
func testInTurn(t *testing.T, start Start) {
	for _, size := range []int{8, 100_000} {
		data := make([][]byte, 4)
		want := make([]byte, size)
		for rank := 1; rank < len(data); rank++ {
			data[rank] = pattern(make([]byte, size), rank)
			mix(want, want, data[rank])
		}
		for _, coming := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
			parts := make([]part, 4)
			parts[0] = func(ctx context.Context, e transport.Endpoint) error {
				into := make([]byte, size)
				step := transport.Step{Signature: sig}
				for from := 1; from < 4; from++ {
					step.Recvs = append(step.Recvs, transport.Recv{
						From: from, Into: into, Held: into, Combine: mix, Elem: 1, Ordered: from > 1,
					})
				}
				if err := e.Exchange(ctx, step); err != nil {
					return err
				}
				if !bytes.Equal(into, want) {
					return fmt.Errorf("%d bytes, coming in the order %v, landed out of turn", size, coming)
				}
				return nil
			}
			for i, rank := range coming {
				parts[rank] = func(ctx context.Context, e transport.Endpoint) error {
					// Not what makes the result right, only what
					// makes this order of coming likely.
					time.Sleep(time.Duration(i) * time.Millisecond)
					return send(ctx, e, sig, 0, data[rank])
				}
			}
			for rank, err := range open(t, start, 4).all(parts...) {
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		}
	}
}

// testContexts runs several contexts on one endpoint at once, each at a pace,
// a sequence and a call of its own.
func testContexts(t *testing.T, start Start) {
	const n, contexts, rounds = 3, 4, 40
	open(t, start, n).each(func(ctx context.Context, e transport.Endpoint) error {
		results := make(chan error, contexts)
		for c := range contexts {
			go func() { results <- circulate(ctx, e, c, rounds) }()
		}
		var first error
		for range contexts {
			if err := <-results; first == nil {
				first = err
			}
		}
		return first
	})
}

// circulate passes messages around the ring within one context.
func circulate(ctx context.Context, e transport.Endpoint, c, rounds int) error {
	n := e.Size()
	to, from := (e.Rank()+1)%n, (e.Rank()+n-1)%n
	for round := range rounds {
		size := 1 + c*1000
		s := transport.Signature{Context: uint32(c), Sequence: uint32(round * (c + 1)), Call: fmt.Sprintf("context %d", c)}
		into, want := make([]byte, size), pattern(make([]byte, size), from*1000+round*10+c)
		err := e.Exchange(ctx, transport.Step{
			Signature: s,
			Sends:     []transport.Send{{To: []int{to}, Data: pattern(make([]byte, size), e.Rank()*1000+round*10+c)}},
			Recvs:     []transport.Recv{{From: from, Into: into}},
		})
		if err != nil {
			return fmt.Errorf("context %d, round %d: %w", c, round, err)
		}
		if !bytes.Equal(into, want) {
			return fmt.Errorf("context %d, round %d: another message arrived", c, round)
		}
	}
	return nil
}

// testLargeElsewhere has rank 0 send a word and a large message behind it. When
// the word is there, the message is on its way, before that of another context.
func testLargeElsewhere(t *testing.T, start Start) {
	other := sig
	other.Context++
	word, large, small := []byte("word"), pattern(make([]byte, 20<<20), 1), []byte("small")
	begun := make(chan struct{})
	open(t, start, 2).mustAll(
		func(ctx context.Context, e transport.Endpoint) error {
			sent := make(chan error, 1)
			go func() {
				sent <- e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{
					{To: []int{1}, Data: word}, {To: []int{1}, Data: large},
				}})
			}()
			<-begun
			return errors.Join(send(ctx, e, other, 1, small), <-sent)
		},
		func(ctx context.Context, e transport.Endpoint) error {
			into := make([]byte, len(large))
			err := recv(ctx, e, sig, 0, into[:len(word)])
			close(begun)
			if err != nil {
				return err
			}
			for _, m := range []struct {
				sig  transport.Signature
				want []byte
			}{{other, small}, {sig, large}} {
				got := into[:len(m.want)]
				if err := recv(ctx, e, m.sig, 0, got); err != nil {
					return err
				}
				if !bytes.Equal(got, m.want) {
					return fmt.Errorf("the message of %d bytes is not the one sent", len(m.want))
				}
			}
			return nil
		},
	)
}

// testRunAhead has rank 2 send for call 2 while rank 0 is still in call 1,
// which it can leave only when rank 1 lets it.
func testRunAhead(t *testing.T, start Start) {
	first, second := sig, sig
	second.Sequence, second.Call = 2, "the next call"
	ahead := make(chan struct{})
	errs := open(t, start, 3).all(
		func(ctx context.Context, e transport.Endpoint) error {
			if err := swap(ctx, e, first, 1); err != nil {
				return err
			}
			return swap(ctx, e, second, 2)
		},
		func(ctx context.Context, e transport.Endpoint) error {
			<-ahead
			return swap(ctx, e, first, 0)
		},
		func(ctx context.Context, e transport.Endpoint) error {
			time.AfterFunc(5*time.Millisecond, func() { close(ahead) })
			return swap(ctx, e, second, 0)
		},
	)
	for rank, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
