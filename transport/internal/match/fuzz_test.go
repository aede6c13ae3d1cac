package match

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// A fuzzedPeer sends messages in a few contexts, in pieces, and holds them when it is
// told. Next to the queue, it knows what each receive must get.
type fuzzedPeer struct {
	t        *testing.T
	q        Queue
	held     map[uint32]bool
	sent     map[uint32]int      // messages of a context that have begun
	coming   map[uint32]*Message // unexpected, and not whole
	landing  map[uint32]*Recv    // a receive whose message has begun
	received map[uint32]int      // messages of a context that a receive has, or gets
	posted   map[uint32]*Step
	queued   map[uint32][]*Message // what the queue must hold
}

const pieces = 4 // of which a message consists

func (p *fuzzedPeer) StepIn(context uint32) *Step { return p.posted[context] }
func (p *fuzzedPeer) IsRevoked(uint32) bool       { return false }

// byteOf is what every byte of a message is.
func byteOf(context uint32, n int) byte { return byte(int(context)*31 + n) }

func (p *fuzzedPeer) call(context uint32) Call { return call(context, 1, "sum") }

// send sends the next piece of a context's message, or begins the next message.
func (p *fuzzedPeer) send(context uint32, size int) {
	if p.held[context] {
		return
	}
	switch m, r := p.coming[context], p.landing[context]; {
	case m != nil:
		p.more(m)
	case r != nil:
		p.land(context, r)
	default:
		n := p.sent[context]
		p.sent[context]++
		h := Header{p.call(context), size}
		v, r, _ := p.q.Match(&h, p)
		if v == WrongSize {
			r.Into = make([]byte, size) // the test does not know the size before
			v = Deliver
		}
		switch {
		case v == Deliver:
			p.received[context]++
			p.landing[context] = r
			p.land(context, r)
		case v == Unexpected:
			m := &Message{Header: h, Data: make([]byte, 0, size)}
			if p.q.Enqueue(m) {
				if p.held[context] {
					p.t.Errorf("context %d is held twice", context)
				}
				p.held[context] = true
			}
			p.queued[context] = append(p.queued[context], m)
			p.coming[context] = m
			p.more(m)
		default:
			p.t.Fatalf("verdict %d about message %d of context %d", v, n, context)
		}
	}
}

// bytes returns n bytes of a context's message that is being sent.
func (p *fuzzedPeer) bytes(context uint32, n int) []byte {
	return bytes.Repeat([]byte{byteOf(context, p.sent[context]-1)}, n)
}

// piece is how many bytes of a message come at a time.
func piece(size, got int) int { return min(max(size/pieces, 1), size-got) }

func (p *fuzzedPeer) more(m *Message) {
	context := m.Context
	n := piece(m.Size, m.Got)
	m.Data = append(m.Data, p.bytes(context, n)...)
	if m.Got += n; m.Complete() {
		delete(p.coming, context)
	}
}

func (p *fuzzedPeer) land(context uint32, r *Recv) {
	r.Put(p.bytes(context, piece(len(r.Into), r.Got)))
	if r.Got < len(r.Into) {
		return
	}
	delete(p.landing, context)
	p.q.Unpost(r)
	p.q.Complete(r)
	p.done(context, r)
}

func (p *fuzzedPeer) done(context uint32, r *Recv) {
	delete(p.posted, context)
	n := p.received[context] - 1
	if bytes.Count(r.Into, []byte{byteOf(context, n)}) != len(r.Into) {
		p.t.Fatalf("message %d of context %d has other bytes", n, context)
	}
}

// post posts a receive of a context's next message.
func (p *fuzzedPeer) post(context uint32) {
	if p.posted[context] != nil {
		return
	}
	size := 0
	if m := p.q.FirstIn(context); m != nil {
		size = m.Size
	}
	p.posted[context], _ = begin(&p.q, p.call(context), size)
	for {
		v, m, r := p.q.MatchUnexpected()
		switch v {
		case Deliver:
			p.received[m.Context]++
			p.queued[m.Context] = p.queued[m.Context][1:]
			p.q.Deliver(m, r)
			p.done(m.Context, r)
		case Continue:
			p.received[m.Context]++
			p.queued[m.Context] = p.queued[m.Context][1:]
			p.q.Continue(m, r)
			delete(p.coming, m.Context)
			p.landing[m.Context] = r
		case Unexpected:
			return
		default:
			p.t.Fatalf("verdict %d", v)
		}
	}
}

// release drops what has come of a context.
func (p *fuzzedPeer) release(context uint32) {
	if p.landing[context] != nil || p.posted[context] != nil {
		return
	}
	p.q.Release(context)
	p.queued[context] = nil
	delete(p.coming, context)
	p.received[context] = p.sent[context]
}

// check tests what holds between any two events.
func (p *fuzzedPeer) check(what string) {
	for c, ok := p.q.Resume(); ok; c, ok = p.q.Resume() {
		if !p.held[c] {
			p.t.Errorf("%s: context %d, which is not held, is resumed", what, c)
		}
		p.held[c] = false
	}
	held, counted := 0, 0
	for context, messages := range p.queued {
		for _, m := range messages {
			held += m.Got + transport.MessageCost
			counted += min(m.Size, transport.UnexpectedMax) + transport.MessageCost
		}
		switch {
		case p.held[context] && len(messages) == 0:
			p.t.Errorf("%s: context %d is held although nothing of it is unexpected", what, context)
		case p.held[context] && p.posted[context] != nil:
			p.t.Errorf("%s: context %d is held although a receive waits there", what, context)
		}
	}
	if got := p.q.Held(); got != held {
		p.t.Errorf("%s: %d bytes are held, want %d", what, got, held)
	}
	for context, is := range p.held {
		if is && counted <= transport.UnexpectedMax/2 {
			p.t.Errorf("%s: context %d is held although all messages count %d", what, context, counted)
		}
	}
	if first := p.q.First(); (first == nil) != (held == 0) {
		p.t.Errorf("%s: the first message is %+v, and %d bytes are held", what, first, held)
	}
}

// FuzzMatch has messages of a few contexts, receives and releases meet in any order.
func FuzzMatch(f *testing.F) {
	f.Add([]byte{0x00, 0x40, 0x00, 0x80})
	f.Add([]byte{0x3c, 0x3d, 0x3e, 0x3c, 0x40, 0x00, 0x41, 0x42, 0x80, 0x81})
	f.Add([]byte{0x38, 0x38, 0x38, 0x38, 0x39, 0x40, 0x40, 0x00, 0x00, 0x41, 0xc0})
	f.Fuzz(func(t *testing.T, events []byte) {
		if len(events) > 300 {
			return
		}
		p := &fuzzedPeer{
			t: t, held: map[uint32]bool{}, sent: map[uint32]int{}, coming: map[uint32]*Message{},
			landing: map[uint32]*Recv{}, received: map[uint32]int{}, posted: map[uint32]*Step{}, queued: map[uint32][]*Message{},
		}
		sizes := [16]int{0, 1, 2, 3, 7, 64, 1000, 4096, 0, 5, 100, 10_000, 256 << 10, 1 << 20, transport.UnexpectedMax, 5 << 20}
		total := 0
		for i, b := range events {
			context := uint32(b & 3)
			switch b >> 6 {
			case 0:
				if total += sizes[b>>2&15]; total < 16<<20 {
					p.send(context, sizes[b>>2&15])
				}
			case 1, 2:
				p.post(context)
			case 3:
				p.release(context)
			}
			p.check(fmt.Sprintf("event %d, %#x", i, b))
		}
	})
}
