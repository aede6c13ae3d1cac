package inproc

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

var (
	_ transport.Messenger      = (*Endpoint)(nil)
	_ transport.EagerMessenger = (*Endpoint)(nil)
)

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, m transport.Match, kind string, data []byte) error {
	if e.SendEager(ctx, to, m, kind, data) {
		return nil
	}
	r := requests.Get().(*transport.Request)
	e.StartSend(ctx, r, to, m, kind, data)
	e.Wait(r)
	err := r.Err
	r.Reset()
	requests.Put(r)
	return err
}

// Recv implements [transport.Messenger].
func (e *Endpoint) Recv(ctx context.Context, from int, m transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	if r, ok := e.RecvEager(ctx, from, m, kind, into); ok {
		return r.Info(kind), nil
	}
	r := requests.Get().(*transport.Request)
	e.StartRecv(ctx, r, from, m, kind, into)
	e.Wait(r)
	info, err := r.Info, r.Err
	r.Reset()
	requests.Put(r)
	return info, err
}

// StartSend implements [transport.Messenger].
func (e *Endpoint) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, kind string, data []byte) {
	if e.SendEager(ctx, to, m, kind, data) {
		r.Finish(transport.MessageInfo{}, nil)
		return
	}
	if err := e.checkSend(ctx, to, m.Context); err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	queue := &e.job.endpoints[to].tagged
	info := transport.MessageInfo{From: e.rank, Tag: m.Tag, Size: len(data), Type: kind}
	if len(data) <= eagerMin && queue.sendWithoutRing(&info, m.Context, data) {
		r.Finish(transport.MessageInfo{}, nil)
		return
	}
	message := e.newSend(ctx, r, to, m, &info, data)
	if queue.announce(message) {
		return
	}
	queue.mu.Lock()
	queue.drain(e.rank)
	p := queue.take(&info, m.Context)
	if p == nil {
		queue.enqueue(message)
	}
	queue.mu.Unlock()
	if p != nil {
		queue.deliver(p, message)
	}
}

// newSend returns a message of this rank that goes by rendezvous.
func (e *Endpoint) newSend(ctx context.Context, r *transport.Request, to int, m transport.Match, info *transport.MessageInfo, data []byte) *match.Tagged {
	own := &e.tagged
	own.mu.Lock()
	defer own.mu.Unlock()
	s := own.newMessage(ctx, r, match.Pattern{From: to, Match: m}, info.Type, data)
	s.index = len(own.sends)
	own.sends = append(own.sends, s)
	if s.received == nil {
		s.received = func(err error) {
			own.mu.Lock()
			defer own.mu.Unlock()
			own.finish(s, nil, err)
		}
	}
	if s.sent == nil {
		s.sent = new(match.Tagged)
	}
	*s.sent = match.Tagged{MessageInfo: *info, Context: m.Context, Data: data, Rendezvous: true, Done: s.received}
	s.sends = true
	return s.sent
}

// StartRecv implements [transport.Messenger].
func (e *Endpoint) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, kind string, into []byte) {
	if got, ok := e.StartRecvEager(ctx, r, from, m, kind, into); ok {
		r.Finish(got.Info(kind), nil)
	}
}

// StartRecvEager implements [transport.EagerMessenger].
func (e *Endpoint) StartRecvEager(ctx context.Context, r *transport.Request, from int, m transport.Match, kind string, into []byte) (got transport.Received, ok bool) {
	if got, ok = e.recvEager(ctx, from, m, kind, into, false); !ok {
		e.postRecv(ctx, r, from, m, kind, into)
	}
	return got, ok
}

// postRecv is StartRecv for a message that has not arrived in its ring.
func (e *Endpoint) postRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, kind string, into []byte) {
	if from != transport.Any && (from < 0 || from >= len(e.job.endpoints)) {
		r.Finish(transport.MessageInfo{}, &transport.RankError{Peer: from, Rank: e.rank, Size: len(e.job.endpoints)})
		return
	}
	if err := e.err(m.Context); err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	queue := &e.tagged
	queue.mu.Lock()
	if err := e.knownErr(m.Context); err != nil { // a rank that ends finishes what it finds
		queue.mu.Unlock()
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	queue.drain(from)
	p := queue.newMessage(ctx, r, match.Pattern{From: from, Match: m}, kind, into)
	message := queue.messages.Find(&p.pattern)
	switch {
	case message == nil:
		queue.posted = append(queue.posted, p)
	case !queue.fits(p, &message.MessageInfo):
	case message.Rendezvous:
		queue.messages.Remove(message)
		queue.mu.Unlock()
		queue.deliver(p, message)
		return
	default:
		copy(into, message.Data)
		queue.messages.Remove(message)
		queue.ring(message.From).refund(message.Size)
		queue.finish(p, &message.MessageInfo, nil)
		queue.messages.Recycle(message)
	}
	queue.mu.Unlock()
}

// TryRecv implements [transport.Messenger].
func (e *Endpoint) TryRecv(ctx context.Context, from int, m transport.Match, kind string, into []byte) (info transport.MessageInfo, found bool, err error) {
	if info, found, err = e.Probe(ctx, from, m, false); !found {
		return info, false, err
	}
	info, err = e.Recv(ctx, info.From, transport.Match{Context: m.Context, Tag: info.Tag}, kind, into)
	return info, true, err
}

// Wait implements [transport.Messenger]. A rank reads its rings, and has nothing else to
// do for its requests: its peers copy.
func (e *Endpoint) Wait(r *transport.Request) {
	if r.Done() {
		return
	}
	q := &e.tagged
	m, from := q.message(r)
	var b backoff
	copied := false
	for b.begin(); !r.Done(); {
		spins := b.polls < pausedPolls && e.job.spinning.resume.Load() == 0
		if q.arrived(from) {
			q.poll(from)
		} else if !spins && !copied {
			e.makeEager(m)
			copied = true
		} else if !b.spin(&e.job.spinning) {
			e.sleepUntilDone(r)
			b.slept(&e.job.spinning)
		}
	}
}

// sleepUntilDone returns when a request is done, or ends it if that is why it never will
// be.
func (e *Endpoint) sleepUntilDone(r *transport.Request) {
	e.tagged.mu.Lock()
	if r.Done() {
		e.tagged.mu.Unlock()
		return
	}
	m := r.State.(*message)
	ctx, from, context := m.ctx, m.pattern.From, m.pattern.Context
	w := taggedWaiters.Get().(*taggedWaiter)
	w.pattern, w.request, w.number, w.message = m.pattern, r, m.number, "recv"
	if m.sends {
		w.message = "send"
	}
	e.tagged.mu.Unlock()
	_ = w.wait(ctx, e, func() (bool, error) {
		e.tagged.poll(from)
		if r.Done() {
			return true, nil
		}
		err := e.peerError(from, context)
		if err == nil {
			err = transport.Cause(ctx)
		}
		if err == nil || e.cancel(r, err) {
			return err != nil, nil
		}
		return false, nil // a peer is copying the message
	})
}

// cancel ends a request with an error, unless its message is being copied.
func (e *Endpoint) cancel(r *transport.Request, err error) bool {
	e.tagged.mu.Lock()
	m, ok := r.State.(*message)
	if !ok {
		e.tagged.mu.Unlock()
		return true
	}
	number := m.number
	e.tagged.mu.Unlock()
	return e.cancelMessage(m, number, err)
}

// cancelMessage is cancel for a message of a number. Once it is done, its memory is used for
// another, or for none.
func (e *Endpoint) cancelMessage(m *message, number uint64, err error) bool {
	e.tagged.mu.Lock()
	if m.number != number {
		e.tagged.mu.Unlock()
		return true
	}
	if !m.sends {
		canceled := e.tagged.unpost(m)
		if canceled {
			e.tagged.finish(m, nil, err)
		}
		e.tagged.mu.Unlock()
		return canceled
	}
	defer e.tagged.mu.Unlock()
	to, sent := m.pattern.From, m.sent
	m.pinned++
	e.tagged.mu.Unlock()
	canceled := e.job.endpoints[to].tagged.cancel(e.rank, sent)
	e.tagged.mu.Lock()
	e.tagged.unpin(m)
	if canceled {
		e.tagged.finish(m, nil, err)
	}
	return canceled
}

// Cancel implements [transport.Messenger].
func (e *Endpoint) Cancel(r *transport.Request, err error) { e.cancel(r, err) }

// makeEager copies the message of a send to a receive that waits for it, or else, if it is
// short enough, to the queue of its receiver. So the send is done although its receiver comes
// late, or is in a call that does not look at its rings.
func (e *Endpoint) makeEager(m inProgress) {
	own := &e.tagged
	own.mu.Lock()
	defer own.mu.Unlock()
	if m.message == nil || m.message.number != m.number || !m.sends {
		return
	}
	to, sent := m.pattern.From, m.sent
	m.pinned++
	own.mu.Unlock()
	eager := e.job.endpoints[to].tagged.makeEager(e.rank, sent)
	own.mu.Lock()
	own.unpin(m.message)
	if eager {
		m.sent = nil // it is the queue's
		own.finish(m.message, nil, nil)
	}
}

// Progress implements [transport.Messenger]. It ends the receives whose messages come
// no more.
func (e *Endpoint) Progress() {
	e.tagged.mu.Lock()
	e.tagged.drain(transport.Any)
	var started []inProgress
	for _, m := range e.tagged.posted {
		started = append(started, inProgress{m, m.number})
	}
	for _, m := range e.tagged.sends {
		started = append(started, inProgress{m, m.number})
	}
	e.tagged.mu.Unlock()
	for _, m := range started {
		e.makeEager(m)
	}
	e.endHopeless(started)
}

// An inProgress is a message that was in progress under the lock. Its request is not kept:
// once that is done, another rank may use its memory.
type inProgress struct {
	*message
	number uint64
}

// endHopeless ends messages that will never be done.
func (e *Endpoint) endHopeless(started []inProgress) {
	for _, m := range started {
		e.tagged.mu.Lock()
		if m.message.number != m.number {
			e.tagged.mu.Unlock()
			continue
		}
		ctx, peer, context := m.ctx, m.pattern.From, m.pattern.Context
		e.tagged.mu.Unlock()
		err := e.peerError(peer, context)
		if err == nil {
			err = transport.Cause(ctx)
		}
		if err != nil {
			e.cancelMessage(m.message, m.number, err)
		}
	}
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, m transport.Match, wait bool) (info transport.MessageInfo, found bool, err error) {
	if from != transport.Any && (from < 0 || from >= len(e.job.endpoints)) {
		return info, false, &transport.RankError{Peer: from, Rank: e.rank, Size: len(e.job.endpoints)}
	}
	if err := e.err(m.Context); err != nil {
		return info, false, err
	}
	p := &match.Pattern{From: from, Match: m}
	if info, found = e.tagged.find(p); found {
		return info, true, nil
	}
	try := func() (bool, error) {
		// In this order: a rank sends its messages before it ends.
		ended := e.peerError(from, m.Context)
		if info, found = e.tagged.find(p); found {
			return true, nil
		}
		if ended == nil && wait {
			ended = transport.Cause(ctx)
		}
		return !wait, ended
	}
	if wait {
		w := taggedWaiters.Get().(*taggedWaiter)
		w.pattern, w.message = *p, "probe"
		err = w.wait(ctx, e, try)
	} else {
		_, err = try()
	}
	return info, found, err
}

// checkSend returns why this endpoint cannot send to a rank, or nil.
func (e *Endpoint) checkSend(ctx context.Context, to int, context uint32) error {
	if to < 0 || to >= len(e.job.endpoints) {
		return &transport.RankError{Peer: to, Rank: e.rank, Size: len(e.job.endpoints)}
	}
	if err := e.err(context); err != nil {
		return err
	}
	if e.job.endpoints[to].ended() != nil {
		if err := e.peerError(to, context); err != nil {
			return err
		}
	}
	return transport.Cause(ctx)
}

// peerError returns the error of a call that waits for a rank, or for any, in a context:
// the context fails, or the rank has ended, or one of any gave up, or all have left.
func (e *Endpoint) peerError(peer int, context uint32) error {
	j := e.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := e.errLocked(context); err != nil {
		return err
	}
	if peer != transport.Any {
		if notice := j.endpoints[peer].notice; notice != nil {
			return notice
		}
		return nil
	}
	communicator := transport.Communicator(context)
	if notice := e.gaveUpIn(communicator); notice != nil {
		return notice
	}
	if e.allLeft(communicator) {
		return &transport.PeerError{Peer: (e.rank + 1) % len(j.endpoints), Err: transport.ErrAllLeft}
	}
	return nil
}

// allLeft reports whether all other ranks of a communicator have left, and there were any.
// Job.mu is held.
func (e *Endpoint) allLeft(communicator uint32) bool {
	n := len(e.job.endpoints)
	if members := e.members[communicator]; members != nil {
		return len(members) > 1 && !slices.ContainsFunc(members, func(rank int) bool {
			return rank != e.rank && e.job.endpoints[rank].notice == nil
		})
	}
	return n > 1 && e.job.ended == n-1
}

// wait calls try until it says that it is done or fails. Between the calls it sleeps
// until the waiter is notified or a rank has ended. The waiter is live to the end, so that
// the stack of its goroutine shows its address: see [transport.Stall].
//
//go:noinline
func (w *taggedWaiter) wait(ctx context.Context, e *Endpoint, try func() (done bool, err error)) error {
	e.job.addWaiting(e, 1)
	defer e.job.addWaiting(e, -1)
	e.tagged.addWaiter(w)
	defer e.tagged.removeWaiter(w)
	ended := ctx.Done()
	for {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-w.changed:
		case <-ended:
			ended = nil // try says so
		}
	}
}

// addWaiting counts the calls of an endpoint that wait for tagged messages, so that
// a rank that ends knows which ranks to wake.
func (j *Job) addWaiting(e *Endpoint, n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting == nil {
		j.waiting = make(map[*Endpoint]int)
	}
	if j.waiting[e] += n; j.waiting[e] == 0 {
		delete(j.waiting, e)
	}
}
