package progress

import (
	"context"
	"errors"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A phase says what a tagged message in progress waits for.
type phase uint8

const (
	posted    phase = iota // a receive: a message that matches
	unlinked               // a send: the link to the peer
	unwritten              // a send: room for its frame
	announced              // a send by rendezvous, also to this rank itself: a receive
	committed              // either: the transfer, which has begun. It cannot be canceled alone.
)

// A Message is a tagged message in progress: one that this rank sends and that is not
// complete, or a receive. No goroutine belongs to it: whoever is the progress owner
// makes its progress.
type Message struct {
	request  *transport.Request
	engine   *Engine
	number   uint64 // of those of the engine, in the order of their starts
	phase    phase
	peer     int           // the receiver, or the sender; transport.Any for a receive from any that has none yet
	pattern  match.Pattern // of a receive; of a send, its Match alone
	typeName string
	data     []byte // what is sent, or where it goes
	waiters  []*Op  // operations that wait for it

	ctx  context.Context
	done <-chan struct{} // ctx.Done()

	tagged *match.Tagged // of a committed receive, and of a send to this rank
	pulled func(error)   // m.transferred
	send   PendingSend   // of a send by rendezvous
	link   *TaggedPeer
	wire   Wire
}

// messages are those of an engine.
type messages struct {
	inProgress []*Message
	posted     []*Message // the receives in phase posted, in order
	spare      []*Message
	requests   []*transport.Request // for calls that wait
	announced  []*match.Tagged      // of rendezvous messages that were received
}

// Why a message is not sent at once.
var (
	ErrNoLink = errors.New("the link is not up")
	ErrNoRoom = errors.New("there is no room for the message")
)

// Data returns what a message sends, or where a received one goes.
func (m *Message) Data() []byte { return m.data }

// Header returns the match and the type of a message that is sent, and the receiver.
func (m *Message) Header() (to int, match transport.Match, typeName string) {
	return m.peer, m.pattern.Match, m.typeName
}

// Started reports whether tagged messages are in progress.
func (e *Engine) Started() bool { return len(e.messages.inProgress) > 0 }

// newMessage begins a message of a request.
func (e *Engine) newMessage(ctx context.Context, r *transport.Request, peer int, typeName string, data []byte) *Message {
	var m *Message
	if n := len(e.messages.spare); n > 0 {
		m, e.messages.spare = e.messages.spare[n-1], e.messages.spare[:n-1]
	} else {
		m = &Message{engine: e}
		m.pulled = m.transferred
	}
	e.begun++
	m.request, m.number, m.peer, m.typeName, m.data = r, e.begun, peer, typeName, data
	m.ctx, m.done = ctx, ctx.Done()
	r.State = m
	e.messages.inProgress = append(e.messages.inProgress, m)
	return m
}

// enter sets the phase in which the message waits for its peer.
func (m *Message) enter(p phase) {
	m.phase = p
	if m.peer != m.engine.Rank {
		m.engine.transport.AddWaiters(m.peer, 1)
	}
}

// exit is called before a phase ends that enter has begun.
func (m *Message) exit() {
	if m.peer != m.engine.Rank {
		m.engine.transport.AddWaiters(m.peer, -1)
	}
}

// finish ends the message. A send by rendezvous that fails is not sent any more.
func (m *Message) finish(err error) {
	e := m.engine
	info := transport.MessageInfo{}
	switch {
	case m.phase == posted:
		e.unpost(m)
	case m.phase == unwritten && err != nil:
		e.transport.DropUnwritten(m)
	}
	if m.tagged != nil {
		info = m.tagged.MessageInfo
		m.release(err)
	}
	m.end(info, err)
}

// release lets go of the message that is received, or sent to this rank itself.
func (m *Message) release(err error) {
	e, t := m.engine, m.tagged
	m.tagged = nil
	if m.phase == announced { // sent to this rank
		e.tagged.Remove(t)
		return
	}
	e.tagged.EndRequest(t)
	if err == nil && len(e.messages.announced) < sparesMax {
		*t = match.Tagged{}
		e.messages.announced = append(e.messages.announced, t)
	}
}

// sparesMax is how many of each kind are kept for later messages.
const sparesMax = 64

// end ends the message, which is in no queue any more. It is not in progress any more when
// its announcement is withdrawn: that may show that the peer has gone.
func (m *Message) end(info transport.MessageInfo, err error) {
	e := m.engine
	all := e.messages.inProgress
	n := len(all) - 1
	i := n
	for all[i] != m {
		i--
	}
	all[i], all[n] = all[n], nil
	e.messages.inProgress = all[:n]
	w, s := m.wire, &m.send
	if w != nil && err != nil {
		if m.link.Withdraw(s) && !w.Gone() && e.end.err == nil {
			w.SendWithdraw(s)
		}
		w.Withdrawn(s)
	}
	m.exit()
	for i, o := range m.waiters {
		o.Finish(nil)
		m.waiters[i] = nil
	}
	m.request.Finish(info, err)
	m.waiters = m.waiters[:0]
	m.request, m.data, m.ctx, m.done, m.link, m.wire = nil, nil, nil, nil, nil, nil
	if err == nil && len(e.messages.spare) < sparesMax { // otherwise a frame may refer to it
		m.send = PendingSend{}
		e.messages.spare = append(e.messages.spare, m)
	}
}

// finishEach ends messages in progress. Ending one may end others: its withdrawal may show
// that the peer has gone.
func (e *Engine) finishEach(err error, ends func(m *Message) bool) {
	for {
		i := slices.IndexFunc(e.messages.inProgress, ends)
		if i < 0 {
			return
		}
		e.messages.inProgress[i].finish(err)
	}
}

// Written notes that the frame of an eager message is written, or copied.
func (m *Message) Written() { m.finish(nil) }

// unpost removes a receive from those that wait for a message.
func (e *Engine) unpost(m *Message) {
	p := e.messages.posted
	i := 0
	for p[i] != m {
		i++
	}
	n := i + copy(p[i:], p[i+1:])
	p[n] = nil
	e.messages.posted = p[:n]
}

// StartSend implements [transport.Messenger].
func (e *Engine) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	e.Lock()
	defer e.Unlock()
	e.startSend(ctx, r, to, m, typeName, data)
}

// Send implements [transport.Messenger].
func (e *Engine) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	e.Lock()
	defer e.Unlock()
	r := e.newRequest()
	e.startSend(ctx, r, to, m, typeName, data)
	e.wait(r)
	err := r.Err
	e.recycle(r)
	return err
}

// newRequest returns a request for a call that waits.
func (e *Engine) newRequest() *transport.Request {
	if n := len(e.messages.requests); n > 0 {
		r := e.messages.requests[n-1]
		e.messages.requests = e.messages.requests[:n-1]
		return r
	}
	return new(transport.Request)
}

// recycle keeps a request that is done.
func (e *Engine) recycle(r *transport.Request) {
	r.Reset()
	e.messages.requests = append(e.messages.requests, r)
}

func (e *Engine) startSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	if err := e.checkSend(ctx, to); err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	if to == e.Rank {
		e.sendSelf(ctx, r, m, typeName, data)
		return
	}
	sent, err := e.transport.SendEager(to, m, typeName, data)
	if sent || err != nil && err != ErrNoLink && err != ErrNoRoom {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	s := e.newMessage(ctx, r, to, typeName, data)
	s.pattern = match.Pattern{From: to, Match: m}
	switch err {
	case ErrNoLink:
		s.enter(unlinked)
	case ErrNoRoom:
		s.enter(unwritten)
		e.transport.SendWhenRoom(s)
	default:
		s.announce()
	}
	e.Interrupt()
}

// checkSend returns why no tagged message can be sent to a rank, or nil.
func (e *Engine) checkSend(ctx context.Context, to int) error {
	if to < 0 || to >= e.Size {
		return e.rankError(to)
	}
	if err := e.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return transport.Cause(ctx)
	}
	return nil
}

// announce announces a message that goes by rendezvous.
func (m *Message) announce() {
	m.link, m.wire = m.engine.transport.Wire(m.peer)
	m.enter(announced)
	m.send.message = m
	m.link.announce(&m.send, m.data)
	m.wire.SendRTS(&m.send, m.pattern.Match, m.typeName)
}

// LinkUp sends the messages that wait for the link to a peer, in order.
func (e *Engine) LinkUp(peer int) {
	var waiting []*Message
	for _, m := range e.messages.inProgress {
		if m.phase == unlinked && m.peer == peer {
			waiting = append(waiting, m)
		}
	}
	slices.SortFunc(waiting, func(a, b *Message) int { return int(int64(a.number - b.number)) })
	for _, m := range waiting {
		if m.request == nil {
			continue // an earlier one has found that the peer has gone
		}
		sent, err := e.transport.SendEager(peer, m.pattern.Match, m.typeName, m.data)
		switch {
		case m.request == nil: // this one has found it
		case sent || err != nil:
			m.finish(err)
		default:
			m.exit()
			m.announce()
		}
	}
}

// sendSelf sends a tagged message of this rank to itself.
func (e *Engine) sendSelf(ctx context.Context, r *transport.Request, m transport.Match, typeName string, data []byte) {
	info := transport.MessageInfo{From: e.Rank, Tag: m.Tag, Size: len(data), Type: typeName}
	if p := e.Posted(&info, m.Context); p != nil {
		copy(p.data, data)
		p.Received(&info)
		r.Finish(transport.MessageInfo{}, nil)
		return
	}
	if len(data) <= match.EagerMax && e.own.Use(len(data)) {
		t := e.tagged.New(len(data))
		t.MessageInfo, t.Context = info, m.Context
		copy(t.Data, data)
		e.queue(t)
		r.Finish(transport.MessageInfo{}, nil)
		return
	}
	s := e.newMessage(ctx, r, e.Rank, typeName, data)
	s.pattern.Match = m
	s.enter(announced)
	s.tagged = &match.Tagged{MessageInfo: info, Context: m.Context, Data: data, Rendezvous: true, Done: s.pulled}
	e.queue(s.tagged)
}

// StartRecv implements [transport.Messenger].
func (e *Engine) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	e.Lock()
	defer e.Unlock()
	e.startRecv(ctx, r, from, m, typeName, into)
}

// Recv implements [transport.Messenger]. When ctx ends while the contents of a
// rendezvous message are on their way, the endpoint's part in the job ends.
func (e *Engine) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	e.Lock()
	defer e.Unlock()
	r := e.newRequest()
	e.startRecv(ctx, r, from, m, typeName, into)
	e.wait(r)
	info, err := r.Info, r.Err
	e.recycle(r)
	return info, err
}

func (e *Engine) startRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	if from != transport.Any && (from < 0 || from >= e.Size) {
		r.Finish(transport.MessageInfo{}, e.rankError(from))
		return
	}
	if err := e.Err(); err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	p := e.newMessage(ctx, r, from, typeName, into)
	p.pattern = match.Pattern{From: from, Match: m}
	p.enter(posted)
	e.messages.posted = append(e.messages.posted, p)
	if t := e.tagged.Find(&p.pattern); t != nil {
		p.take(t)
	} else {
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
	if err := e.transport.PeerError(m.pattern.From); err != nil {
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
	m.engine.unpost(m)
	m.phase = committed
	m.end(*info, err)
	return false
}

// deliver gives a message that is not queued to a posted receive.
func (m *Message) deliver(t *match.Tagged) {
	e := m.engine
	switch {
	case t.Rendezvous && t.From != e.Rank:
		e.unpost(m)
		m.exit()
		m.peer, m.tagged = t.From, t
		m.enter(committed)
		t.Data, t.Done = m.data[:t.Size], m.pulled
		e.tagged.Request(t)
		e.transport.SendCTS(t.From, t.Number)
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
	m.engine.unpost(m)
	m.phase = committed
	m.end(*info, nil)
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
	i, _ := slices.BinarySearchFunc(e.messages.posted, m.number, func(p *Message, number uint64) int { return int(int64(p.number - number)) })
	e.messages.posted = slices.Insert(e.messages.posted, i, m)
	if t := e.tagged.Find(&m.pattern); t != nil {
		m.take(t)
	}
}

// Posted returns the first receive that takes a message whose contents are at hand, or
// nil. The caller writes them to the beginning of its Data, and calls Received.
func (e *Engine) Posted(info *transport.MessageInfo, context uint32) *Message {
	for i := 0; i < len(e.messages.posted); {
		m := e.messages.posted[i]
		switch {
		case !m.pattern.Takes(info, context):
			i++
		case m.fits(info): // otherwise it has failed, and is not posted any more
			return m
		}
	}
	return nil
}

// Arrived gives a message to the first receive that takes it, or queues it.
func (e *Engine) Arrived(t *match.Tagged) {
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
	var t *match.Tagged
	if n := len(e.messages.announced); n > 0 {
		t, e.messages.announced = e.messages.announced[n-1], e.messages.announced[:n-1]
	} else {
		t = new(match.Tagged)
	}
	t.MessageInfo, t.Context, t.Rendezvous, t.Number = *info, context, true, number
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

// Wait implements [transport.Messenger].
func (e *Engine) Wait(r *transport.Request) {
	if r.Done() {
		return
	}
	e.Lock()
	defer e.Unlock()
	if m, ok := r.State.(*Message); ok && m.phase == posted {
		m.look(r) // its peer may have gone since the start
	}
	e.wait(r)
}

// wait returns when a request is done. If it is a posted receive, the caller has looked.
func (e *Engine) wait(r *transport.Request) {
	for !r.Done() {
		m := r.State.(*Message)
		m.await()
		if !r.Done() && m.phase == posted {
			m.look(r)
		}
	}
}

// await returns when the message is done, or its peer has gone.
func (m *Message) await() {
	e := m.engine
	o := e.begin(m.ctx, messageOp)
	o.subject.message = m
	m.waiters = append(m.waiters, o)
	defer e.Leave(o)
	_ = o.Await()
	if i := slices.Index(m.waiters, o); i >= 0 {
		m.waiters = slices.Delete(m.waiters, i, i+1)
	}
}

// Cancel implements [transport.Messenger].
func (e *Engine) Cancel(r *transport.Request, err error) {
	e.Lock()
	defer e.Unlock()
	if m, ok := r.State.(*Message); ok && m.phase != committed {
		m.finish(err)
	}
}

// Progress implements [transport.Messenger].
func (e *Engine) Progress() {
	e.Lock()
	defer e.Unlock()
	if !e.owner.taken && e.Err() == nil {
		e.Guard(func() {
			e.transport.Poll(transport.Any, false)
			e.transport.Settle()
		})
	}
}
