package progress

import (
	"context"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// StartRecv implements [transport.Messenger].
func (e *Engine) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	e.Lock()
	defer e.Unlock()
	e.StartRecvLocked(ctx, r, from, m, typeName, into)
}

// Recv implements [transport.Messenger]. When ctx ends while the contents of a
// rendezvous message are on their way, the endpoint's part in the job ends.
func (e *Engine) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	e.Lock()
	defer e.Unlock()
	r := e.newRequest()
	e.StartRecvLocked(ctx, r, from, m, typeName, into)
	e.wait(r)
	info, err := r.Info, r.Err
	e.recycle(r)
	return info, err
}

// StartRecvLocked is StartRecv for a transport that has locked the engine.
func (e *Engine) StartRecvLocked(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	if from != transport.Any && (from < 0 || from >= e.Size) {
		r.Finish(transport.MessageInfo{}, e.rankError(from))
		return
	}
	if err := e.ErrIn(m.Context); err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	e.PostRecv(ctx, r, from, m, typeName, into, false)
}

// PostRecv is StartRecvLocked for a context in which no operation fails, and a rank of the job,
// or any. Polled says that the transport has just polled the rank, which has not gone.
func (e *Engine) PostRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte, polled bool) {
	p := e.newMessage(ctx, r, from, typeName, into)
	p.pattern.From, p.pattern.Context, p.pattern.Tag = from, m.Context, m.Tag
	p.enter(posted)
	e.messages.posted.add(p)
	if t := e.tagged.Find(&p.pattern); t != nil {
		p.take(t)
	} else if !polled {
		p.look(r)
	}
	if !r.Done() {
		if ctx.Err() != nil && p.phase == posted {
			p.finish(transport.Cause(ctx))
		}
		e.Interrupt()
	}
}

// look has a posted receive take what has arrived, and ends it if its message comes no
// more.
func (m *Message) look(r *transport.Request) {
	e := m.engine
	e.Guard(func() { e.transport.Poll(m.pattern.From, true) }) // a rank that has left may have sent before
	if r.Done() || m.phase != posted {
		return
	}
	if err := e.transport.PeerError(m.pattern.From, m.pattern.Context); err != nil {
		m.finish(err)
	}
}

// take has a posted receive take the message that it has found in the queue.
func (m *Message) take(t *match.Tagged) {
	e := m.engine
	if !m.fits(&t.MessageInfo) {
		return
	}
	if t.Rendezvous && m.ctx.Err() != nil {
		m.finish(transport.Cause(m.ctx))
		return
	}
	e.tagged.Remove(t)
	m.deliver(t)
	e.Guard(e.transport.Settle)
}

// fits reports whether a posted receive can take a message. If not, the receive fails.
func (m *Message) fits(info *transport.MessageInfo) bool {
	var err error
	switch {
	case info.Type != m.typeName:
		err = &transport.TypeError{Peer: info.From, Got: info.Type, Want: m.typeName}
	case info.Size > len(m.data):
		err = &transport.SizeError{Peer: info.From, Got: info.Size, Want: len(m.data)}
	default:
		return true
	}
	m.engine.messages.posted.remove(m)
	m.phase = committed
	m.describe(info)
	m.end(err)
	return false
}

// deliver gives a message that is not queued to a posted receive.
func (m *Message) deliver(t *match.Tagged) {
	e := m.engine
	switch {
	case t.Rendezvous && t.From != e.Rank:
		e.messages.posted.remove(m)
		m.exit()
		m.peer, m.tagged = t.From, t
		m.enter(committed)
		t.Data, t.Done = m.data[:t.Size], m.pulled
		e.tagged.Request(t)
		if t.Offer.ID != 0 {
			t.Offer.Take(t)
		} else {
			e.transport.SendCTS(t.From, t.Number)
		}
	case t.Rendezvous:
		copy(m.data, t.Data)
		m.Received(&t.MessageInfo)
		t.Done(nil)
	default:
		copy(m.data, t.Data)
		m.Received(&t.MessageInfo)
		e.received(t)
	}
}

// Received notes that a posted receive has its message.
func (m *Message) Received(info *transport.MessageInfo) {
	m.engine.messages.posted.remove(m)
	m.phase = committed
	m.describe(info)
	m.end(nil)
}

// describe sets the request's Info: field by field, because what copies wide waits until what
// was written in parts has left the processor.
func (m *Message) describe(info *transport.MessageInfo) {
	i := &m.request.Info
	i.From, i.Tag, i.Size, i.Type = info.From, info.Tag, info.Size, info.Type
}

// transferred ends a transfer: of a receive from a peer, or of a send to this rank
// itself. A receive whose message was withdrawn is posted again, in its place.
func (m *Message) transferred(err error) {
	e := m.engine
	if err != match.ErrWithdrawn {
		m.finish(err)
		return
	}
	m.release(err)
	m.exit()
	m.peer = m.pattern.From
	m.enter(posted)
	e.messages.posted.add(m)
	if t := e.tagged.Find(&m.pattern); t != nil {
		m.take(t)
	}
}

// AnyPosted reports whether a receive waits for a message.
func (e *Engine) AnyPosted() bool { return e.messages.posted.first != nil }

// Posted returns the first receive that takes a message whose contents are at hand, or
// nil. The caller writes them to the beginning of its Data, and calls Received.
func (e *Engine) Posted(info *transport.MessageInfo, context uint32) *Message {
	for m := e.messages.posted.first; m != nil; {
		next := m.next
		if m.pattern.Takes(info, context) && m.fits(info) { // otherwise it has failed, and is not posted any more
			return m
		}
		m = next
	}
	return nil
}

// Arrived gives a message to the first receive that takes it, or queues it.
func (e *Engine) Arrived(t *match.Tagged) {
	if e.IsRevoked(t.Context) {
		if !t.Rendezvous { // otherwise its sender takes it back
			e.received(t)
		}
		return
	}
	for m := e.Posted(&t.MessageInfo, t.Context); m != nil; m = e.Posted(&t.MessageInfo, t.Context) {
		if !t.Rendezvous || m.ctx.Err() == nil {
			m.deliver(t)
			return
		}
		m.finish(transport.Cause(m.ctx))
	}
	e.queue(t)
}

// Announced is Arrived for a rendezvous message.
func (e *Engine) Announced(info *transport.MessageInfo, context, number uint32) {
	e.Offered(info, context, number, match.Offer{})
}

// Offered is Announced for a message of which the receiver knows where it lies.
func (e *Engine) Offered(info *transport.MessageInfo, context, number uint32, offer match.Offer) {
	var t *match.Tagged
	if n := len(e.messages.announced); n > 0 {
		t, e.messages.announced = e.messages.announced[n-1], e.messages.announced[:n-1]
	} else {
		t = new(match.Tagged)
	}
	t.MessageInfo, t.Context, t.Rendezvous, t.Number, t.Offer = *info, context, true, number, offer
	e.Arrived(t)
}

// queue adds a message that no receive takes, and ends every probe for such a one.
func (e *Engine) queue(t *match.Tagged) {
	e.tagged.Add(t)
	for _, o := range e.ops {
		if o.kind == probeOp && o.subject.pattern.Matches(t) {
			o.Finish(nil)
		}
	}
}
