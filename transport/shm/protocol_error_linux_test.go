package shm

import (
	"context"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

func TestWhatNoRankWritesEndsInAnError(t *testing.T) {
	exchange := func(ctx context.Context, e *Endpoint) error { return receive(ctx, e, sig, 0, make([]byte, 1000)) }
	take := func(ctx context.Context, e *Endpoint) error {
		_, err := e.Recv(ctx, 0, transport.Match{Context: 1, Tag: transport.Any}, "", nil)
		return err
	}
	reply := func(ctx context.Context, e *Endpoint) error {
		hold(e)
		return e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{0}, Data: make([]byte, pairMax+1)}}})
	}
	frame := func(header stepHeader, k frameKind, body any) func(*link) {
		return func(l *link) {
			c := l.out.next()
			if k.beginsMessage() {
				header.context, header.sequence, header.hash = sig.Context, sig.Sequence, hashOf(sig.Call)
			}
			*c.step() = header
			switch p := body.(type) {
			case stagedPayload:
				*c.staged() = p
			case remotePayload:
				*c.remote() = p
			case rtsPayload:
				*c.rts() = p
			case fragmentPayload:
				*c.fragment() = p
			}
			l.publish(c, k)
		}
	}
	size := func(n uint32) stepHeader { return stepHeader{size: n} }
	for name, c := range map[string]struct {
		does  func(context.Context, *Endpoint) error // what rank 1 does
		write func(*link)                            // what rank 0 writes to it
	}{
		"an inline message longer than its cell":      {exchange, frame(size(1000), inlineFrame, nil)},
		"a multicast frame in the ring":               {exchange, frame(size(8), multicastFrame, nil)},
		"a message of a negative length":              {take, frame(size(0), stagedFrame, stagedPayload{total: 1 << 63})},
		"a message longer than any memory":            {take, frame(size(0), rendezvousFrame, remotePayload{total: 1<<47 + 1})},
		"a chunk outside of its staging buffer":       {exchange, frame(size(1<<30), stagedFrame, stagedPayload{total: 1000})},
		"a staging buffer that does not exist":        {exchange, frame(size(8), stagedFrame, stagedPayload{total: 1000, buffer: 1 << 30})},
		"a chunk of a message that has not begun":     {exchange, frame(size(8), chunkFrame, stagedPayload{total: 1000, first: 5})},
		"a remainder of a message that has not begun": {exchange, frame(size(0), remainderFrame, remotePayload{total: 1000, first: 5})},
		"a tagged message of a negative length":       {take, frame(size(0), rtsFrame, rtsPayload{total: 1 << 63})},
		"an eager message longer than its buffer":     {take, frame(size(1<<20), eagerStagedFrame, fragmentPayload{})},
		"credits of a negative number":                {take, frame(size(0), creditFrame, fragmentPayload{offset: 1 << 63})},
		"a pair frame in the ring":                    {exchange, frame(size(1000), pairFrame, nil)},
		"a pair frame longer than its cell": {exchange, func(l *link) {
			l.writePair(&match.Call{Signature: sig, Hash: hashOf(sig.Call)}, nil)
			l.pair.cells[0].step().size = pairMax + 1
		}},
		"a tagged pair frame in the ring": {take, frame(size(8), eagerPairFrame, nil)},
		"a tagged pair frame longer than its cell": {take, func(l *link) {
			l.writeEagerPair(transport.Match{Context: 1}, "", nil)
			l.pair.cells[0].tagged().size = pairDataMax + 1
		}},
		"a tagged pair frame with a type longer than itself": {take, func(l *link) {
			l.writeEagerPair(transport.Match{Context: 1}, "", []byte("x"))
			l.pair.cells[0].tagged().typeLen = 2
		}},
		"a pair frame behind frames that were not sent": {exchange, func(l *link) {
			l.out.written = 7
			l.writePair(&match.Call{Signature: sig, Hash: hashOf(sig.Call)}, make([]byte, 1000))
		}},
		"a frame of no kind": {exchange, frame(size(0), pullFrame+1, nil)},
		"a reply of no kind": {reply, func(l *link) { // it has taken the frame to come
			l.in.ring.replies.Store(replyMask.at(0))
			l.in.ring.taken.Store(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ends := job(t, 2)
			c.write(&ends[0].links[1])
			ctx, cancel := context.WithTimeout(context.Background(), hangs)
			defer cancel()
			checkLost(t, c.does(ctx, ends[1]), 0, "carries what no rank writes")
		})
	}
}

func TestMulticastsThatNoRankWritesEndInAnError(t *testing.T) {
	ends := job(t, 4)
	for i, number := range []uint64{18, 35, 9} { // each would lead to another
		c := multicastCell(ends[0].out.multicast.cells, uint64(i))
		c.multicast().readers.Store(1 << 2)
		c.multicast().number.Store(number)
		c.publish(uint32(number), multicastFrame)
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	checkLost(t, receive(ctx, ends[1], sig, 0, nil), 0, "carries what no rank writes")
}
