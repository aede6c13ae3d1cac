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
