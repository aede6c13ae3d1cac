package chorale

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
)

// maxInProgress is how many nonblocking calls of a communicator can be in progress
// at a time. A further one begins when the one that was started maxInProgress
// before it is done.
const maxInProgress = 16

// nonblockingCalls are those of a communicator.
type nonblockingCalls struct {
	queues  [maxInProgress]*queue
	started int     // calls; the next one goes to the queue of this number modulo maxInProgress
	code    uintptr // of the last function that was started, for a profile
}

// A queue runs nonblocking calls one after another, in a context of its own.
type queue struct {
	comm *Comm
	last *Request
}

// A Request is a nonblocking call, in progress or done. Its methods may be called
// by any number of goroutines, any number of times.
//
// No goroutine works for the request of a message. It makes progress while this rank is
// in any call on a communicator of the job, also in Wait or Test of another request.
type Request struct {
	done chan struct{} // nil if it was done at once; of a message: until Done is called
	err  error
	call *nonblockingCall // nil unless it is that of a function

	// Of a message. Once it is done, its memory is kept for another one: many messages are
	// in progress for a short time, and what was allocated for each would have to be collected.
	mu      sync.Mutex
	message atomic.Pointer[started] // nil once it is done
	users   int32                   // calls that wait for it, or look at it, without the lock
	status  *Status                 // of a receive: where it goes
}

// A nonblockingCall is a function that is to be called. Whoever claims it calls it: the
// goroutine that waits for it, or else, after a while, one of its own. Waking a thread for
// that takes longer than a short call.
type nonblockingCall struct {
	claim
	request *Request
	ctx     context.Context
	f       Func
	comm    *Comm
	before  *Request // in the queue; nil once that is done
	starter *starter // for a profile; else nil
}

// run calls the function.
func (n *nonblockingCall) run() {
	defer close(n.request.done)
	if n.before != nil {
		_ = n.before.Wait() // it has waiters of its own for its error
		n.before = nil
	}
	n.comm.begun(n.starter)
	n.comm.perform(n.ctx, n.f, &n.request.err)
}

// Done returns a channel that is closed when the call is done. For a message, the first
// call of Done starts a goroutine that waits for it; [Request.Wait] needs none.
func (r *Request) Done() <-chan struct{} {
	if r.message.Load() == nil {
		if r.call != nil {
			startNow(r.call)
		}
		return cmp.Or(r.done, closed)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.message.Load() == nil {
		return cmp.Or(r.done, closed)
	}
	if r.done == nil {
		r.done = make(chan struct{})
		go func() {
			defer close(r.done)
			r.waitMessage()
		}()
	}
	return r.done
}

// Wait waits until the call is done, and returns its error.
func (r *Request) Wait() error {
	if r.message.Load() != nil {
		r.waitMessage()
		return r.err
	}
	if r.call != nil {
		if r.call.take() {
			r.call.run()
		}
		<-r.done
	}
	if r.err != nil {
		return located(r.err)
	}
	return nil
}

// Test reports whether the call is done, and returns its error if it is.
func (r *Request) Test() (done bool, err error) {
	if r.message.Load() != nil {
		if !r.useMessage(func(m *started) { m.comm.job.endpoint.Progress() }) {
			return false, nil
		}
		return true, r.err
	}
	if r.call == nil {
		return true, r.err
	}
	select {
	case <-r.Done():
		return true, r.err
	default:
		return false, nil
	}
}

// waitMessage waits until the message is done.
func (r *Request) waitMessage() { r.useMessage((*started).await) }

// useMessage calls f unless the message is done, and reports whether it is then. The first
// call that finds it done sets the request's error and status, and the last one that uses it
// keeps its memory.
func (r *Request) useMessage(f func(*started)) (done bool) {
	r.mu.Lock()
	m := r.message.Load()
	if m == nil {
		r.mu.Unlock()
		return true
	}
	if !m.request.Done() {
		r.users++
		r.mu.Unlock()
		f(m) // the message is left to the collector if it panics
		r.mu.Lock()
		r.users--
	}
	defer r.mu.Unlock()
	if !m.request.Done() {
		return false
	}
	if r.message.Load() != nil {
		if r.status != nil {
			*r.status = m.status()
		}
		r.err = m.end()
		r.message.Store(nil)
	}
	if r.users == 0 {
		m.recycle()
	}
	return true
}

// WaitAll waits for all requests, and returns the error of the first request in
// the list that has one.
func WaitAll(requests ...*Request) (err error) {
	for _, r := range requests {
		err = cmp.Or(err, r.Wait())
	}
	return err
}

// Start starts a nonblocking call, or several that follow each other, and returns
// at once. F gets a communicator of the same ranks, for these calls alone:
//
//	r := chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
//		return chorale.AllReduce(ctx, c, dst, src, chorale.Sum)
//	})
//	… // computes, and neither writes src nor touches dst
//	err := r.Wait()
//
// Any number of nonblocking calls may be started, beside other calls on c, and they
// may be done in any order. Up to 16 of a communicator are in progress at a time.
// All ranks start them in the same order. F's communicator cannot start nonblocking
// calls of its own; Dup it to do so.
//
// F is called by the goroutine that waits for the request, or by one of its own if none
// has begun to wait after [StartDelay]. Its communicator and c fail together: where the
// context of a collective of f ends, c has failed. A panic or runtime.Goexit of f is the
// request's error, and ends the rank's part in the job: its peers are told. Goexit ends the
// goroutine that has called f.
//
// Functions like [StartBcast] start one collective each.
func Start(ctx context.Context, c *Comm, f Func) *Request {
	if err := c.checkPart("start"); err != nil {
		return doneRequest(err)
	}
	if ctx == nil { // the others start a call, too
		f = func(_ context.Context, c *Comm) error { return c.argumentErrorf("start", "%w", errNoContext) }
	}
	q, before := c.nonblocking.next(c)
	r := &struct {
		Request
		nonblockingCall
	}{
		Request:         Request{done: make(chan struct{})},
		nonblockingCall: nonblockingCall{ctx: ctx, f: f, comm: q.comm, before: before},
	}
	if c.stats != nil {
		r.starter = c.newStarter(uint32(c.nonblocking.started-1), c.nonblocking.isNew(c.job.recorder, f))
	}
	r.Request.call, r.nonblockingCall.request = &r.nonblockingCall, &r.Request
	q.last = &r.Request
	c.job.late.add(&r.nonblockingCall)
	return q.last
}

// next returns the queue of the next call, and the call that comes before it.
func (s *nonblockingCalls) next(c *Comm) (q *queue, before *Request) {
	i := s.started % maxInProgress
	s.started++
	if s.queues[i] == nil {
		s.queues[i] = &queue{comm: c.part(1 + uint32(i))}
	}
	return s.queues[i], s.queues[i].last
}

// checkPart returns why a communicator cannot have a nonblocking or prepared call.
func (c *Comm) checkPart(call string) error {
	switch {
	case c == nil || c.state.Load() >= freeing:
		return c.unusable(call)
	case c.isPart():
		return c.argumentErrorf(call, "the communicator belongs to one nonblocking or prepared call: want one that was made by Dup or Split")
	}
	return nil
}

// part returns a communicator of the same ranks for a nonblocking or prepared call. Its
// context is as many after that of c as offset says.
func (c *Comm) part(offset uint32) *Comm {
	return newComm(c.job, c.group, c.context+offset, c.identity)
}

// perform calls f with c, and sets the error before it returns, also if f panics or
// calls runtime.Goexit.
func (c *Comm) perform(ctx context.Context, f Func, err *error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		*err = c.abandon("start", "the function", recover())
	}()
	*err = f(ctx, c)
	returned = true
}

// doneRequest returns a request that is done.
func doneRequest(err error) *Request {
	if err == nil {
		return &succeeded
	}
	return &Request{err: err}
}

// succeeded is every request that was done at once, without an error.
var succeeded Request

// closed is the channel of requests that were done at once.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
