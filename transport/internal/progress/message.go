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
	keptBack               // a send by rendezvous: that fewer are announced
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
	index    int    // in messages.inProgress
	phase    phase
	peer     int           // the receiver, or the sender; transport.Any for a receive from any that has none yet
	pattern  match.Pattern // of a receive; of a send, its Match alone
	typeName string
	data     []byte // what is sent, or where it goes
	waiters  []*Op  // operations that wait for it

	ctx context.Context

	tagged *match.Tagged // of a committed receive, and of a send to this rank
	pulled func(error)   // m.transferred
	send   PendingSend   // of a send by rendezvous
	link   *TaggedPeer
	wire   Wire

	next, prev *Message // of a posted receive, in messages.posted; of a send, in TaggedPeer.keptBack
}

// A messageList holds messages in the order of their starts: the receives in phase posted,
// or the sends to a peer in phase keptBack.
type messageList struct{ first, last *Message }

// add adds a message in its place, which mostly is the last one.
func (s *messageList) add(m *Message) {
	m.prev = s.last
	for m.prev != nil && int64(m.prev.number-m.number) > 0 {
		m.prev = m.prev.prev
	}
	if m.prev == nil {
		m.next, s.first = s.first, m
	} else {
		m.next, m.prev.next = m.prev.next, m
	}
	if m.next == nil {
		s.last = m
	} else {
		m.next.prev = m
	}
}

func (s *messageList) remove(m *Message) {
	if m.prev == nil {
		s.first = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		s.last = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.next, m.prev = nil, nil
}

// messages are those of an engine.
type messages struct {
	inProgress []*Message
	posted     messageList
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

// Idle reports whether nothing is in progress, and the endpoint has not ended.
func (e *Engine) Idle() bool { return len(e.ops) == 0 && !e.Started() && e.Err() == nil }

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
	m.ctx = ctx
	r.State = m
	m.index = len(e.messages.inProgress)
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

// committed reports whether the transfer has begun. If it has not, the peer cannot begin it
// from then on.
func (m *Message) committed() bool {
	if m.phase == announced && m.send.Offer != 0 && m.link.Claimed(&m.send) {
		m.phase = committed
	}
	return m.phase == committed
}

// finish ends the message. A send by rendezvous that fails is not sent any more.
func (m *Message) finish(err error) {
	e := m.engine
	switch {
	case m.phase == posted:
		e.messages.posted.remove(m)
	case m.phase == unwritten && err != nil:
		e.transport.DropUnwritten(m)
	case m.phase == keptBack:
		m.link.release(m)
	}
	if m.tagged != nil {
		m.request.Info = m.tagged.MessageInfo
		m.release(err)
	}
	m.end(err)
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

// end ends the message, which is in no queue any more, and whose request has its Info. It is not in progress any more when
// its announcement is withdrawn: that may show that the peer has gone.
func (m *Message) end(err error) {
	e := m.engine
	all := e.messages.inProgress
	n := len(all) - 1
	last := all[n]
	all[m.index], last.index = last, m.index
	all[n] = nil
	e.messages.inProgress = all[:n]
	w, s := m.wire, &m.send
	if w != nil && err != nil {
		if m.link.Withdraw(s) && !w.Gone() && e.end.err == nil && !e.IsRevoked(m.pattern.Context) { // otherwise the peer drops it anyway
			w.SendWithdraw(s)
			m.link.AnnounceKeptBack()
		}
		w.Withdrawn(s)
	}
	m.exit()
	for i, o := range m.waiters {
		o.Finish(nil)
		m.waiters[i] = nil
	}
	m.request.End(err)
	m.waiters = m.waiters[:0]
	m.request, m.data, m.ctx, m.link, m.wire = nil, nil, nil, nil, nil
	if err == nil && len(e.messages.spare) < sparesMax { // otherwise a frame may refer to it
		if w != nil {
			m.send = PendingSend{}
		}
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
	if m, ok := r.State.(*Message); ok && !m.committed() {
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
