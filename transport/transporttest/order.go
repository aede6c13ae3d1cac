package transporttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// orderClaims: which message a receive gets, and in which order receives complete.
var orderClaims = []claim{
	{"MessagesOfAPairArriveInOrder", testPairOrder},
	{"SeveralMessagesToOneRankInOneStep", testSeveralPerStep},
	{"ReceivesCompleteInAnyOrderUnlessOrdered", testOutOfOrder},
	{"OrderedReceivesCombineInTheOrderListed", testOrdered},
	{"ContextsAreIndependent", testContexts},
	{"ALargeMessageDoesNotHoldBackAnotherContext", testLargeOtherContext},
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
				return fmt.Errorf("got message %d, want %d", got, i)
			}
		}
		return nil
	})
}

func testSeveralPerStep(t *testing.T, start Start) {
	const messages = 20
	// The sizes differ, so that a swapped message is noticed.
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
				return fmt.Errorf("receive %d got the wrong message", i)
			}
		}
		return nil
	})
}

// testOutOfOrder has rank 0 list rank 1 before rank 2, although rank 1 sends only
// after the large message from rank 2 to rank 0 is complete.
func testOutOfOrder(t *testing.T, start Start) {
	big := make([]byte, 4<<20)
	open(t, start, 3).mustAll(
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
}

// testOrdered has three ranks send to the same bytes, in every order of arrival. A
// rank begins to send when the send before it is complete or waits for its receive.
func testOrdered(t *testing.T, start Start) {
	for _, size := range []int{8, 100_000} {
		data := make([][]byte, 4)
		want := make([]byte, size)
		for rank := 1; rank < len(data); rank++ {
			data[rank] = pattern(make([]byte, size), rank)
			mix(want, want, data[rank])
		}
		for _, arrival := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
			into := make([]byte, size)
			step := transport.Step{Signature: sig}
			for from := 1; from < 4; from++ {
				step.Recvs = append(step.Recvs, transport.Recv{
					From: from, Into: into, Held: into, Combine: mix, Elem: 1, Ordered: from > 1,
				})
			}
			j := open(t, start, 4)
			received := cluster.Begin(j.ctx, func(ctx context.Context) error { return j.ends[0].Exchange(ctx, step) })
			sent := make([]<-chan error, 4)
			for _, rank := range arrival {
				sent[rank] = cluster.Begin(j.ctx, func(ctx context.Context) error {
					return send(ctx, j.ends[rank], sig, 0, data[rank])
				})
			}
			j.noErrors([]error{<-received, <-sent[1], <-sent[2], <-sent[3]})
			if !bytes.Equal(into, want) {
				t.Errorf("%d bytes, arriving in the order %v, were not combined in the order listed", size, arrival)
			}
		}
	}
}

// testContexts runs several contexts on one endpoint at once. Each has its own
// message size, sequence numbers and call.
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
			return fmt.Errorf("context %d, round %d: the wrong message arrived", c, round)
		}
	}
	return nil
}

// testLargeOtherContext has rank 0 send a word and a large message behind it. When
// the word is there, the message is on its way, before that of another context.
func testLargeOtherContext(t *testing.T, start Start) {
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
					return fmt.Errorf("the message of %d bytes arrived changed", len(m.want))
				}
			}
			return nil
		},
	)
}

// testRunAhead has rank 2 send for the second call while rank 0 is still before or
// in the first, which it completes only when rank 1 calls it.
func testRunAhead(t *testing.T, start Start) {
	first, second := sig, sig
	second.Sequence, second.Call = 2, "the next call"
	for _, before := range []bool{true, false} {
		j := open(t, start, 3)
		call := func(rank int, s transport.Signature, peer int) <-chan error {
			return cluster.Begin(j.ctx, func(ctx context.Context) error { return swap(ctx, j.ends[rank], s, peer) })
		}
		var in0, in2 <-chan error
		if before {
			in2 = call(2, second, 0)
			j.untilArrived(j.ends[0])
			in0 = call(0, first, 1)
		} else {
			in0 = call(0, first, 1)
			in2 = call(2, second, 0)
		}
		in1 := call(1, first, 0)
		j.noErrors([]error{<-in0, <-in1})
		in0 = call(0, second, 2)
		j.noErrors([]error{<-in0, nil, <-in2})
	}
}
