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
	message atomic.Pointer[started] // nil once the message is done
	outcome *outcome                // of what is done; nil if it has succeeded, and has no status
	call    *nonblockingCall        // nil unless it is that of a function
}

// An outcome is what a message has come to. It never changes.
type outcome struct {
	status Status // of a receive
	err    error
}

// A nonblockingCall is a function that is to be called. Whoever claims it calls it: the
// goroutine that waits for it, or else, after a while, one of its own. Waking a thread for
// that takes longer than a short call.
type nonblockingCall struct {
	claim
	request Request
	err     error
	over    atomic.Bool // the function has been called
	ctx     context.Context
	f       Func
	comm    *Comm
	before  *Request // in the queue; nil once that is done
	starter *starter // for a profile; else nil

	mu   sync.Mutex
	done chan struct{} // closed when it is over; nil until somebody waits who does not call it
}

// run calls the function.
func (n *nonblockingCall) run() {
	defer n.finish()
	if n.before != nil {
		_ = n.before.Wait() // it has waiters of its own for its error
		n.before = nil
	}
	n.comm.begun(n.starter)
	n.comm.perform(n.ctx, n.f, &n.err)
}

// finish notes that the function has been called.
func (n *nonblockingCall) finish() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over.Store(true)
	if n.done != nil {
		close(n.done)
	}
}

// end returns the channel that is closed when the function has been called.
func (n *nonblockingCall) end() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over.Load() {
		return closed
	}
	if n.done == nil {
		n.done = make(chan struct{})
	}
	return n.done
}

// Done returns a channel that is closed when the call is done. For a message, the first
// call of Done starts a goroutine that waits for it; [Request.Wait] needs none.
func (r *Request) Done() <-chan struct{} {
	if r.call != nil {
		startNow(r.call)
		return r.call.end()
	}
	m := r.lockMessage()
	if m == nil {
		return closed
	}
	defer m.mu.Unlock()
	if m.done == nil {
		done := make(chan struct{})
		m.done = done
		go func() {
			defer close(done)
			r.waitMessage()
		}()
	}
	return m.done
}

// Wait waits until the call is done, and returns its error.
func (r *Request) Wait() error {
	if c := r.call; c != nil {
		if c.take() {
			c.comm.job.late.drop(c)
			c.run()
		}
		if !c.over.Load() {
			<-c.end()
		}
		if c.err != nil {
			return located(c.err)
		}
		return nil
	}
	r.waitMessage()
	return r.err()
}

// Test reports whether the call is done, and returns its error if it is.
func (r *Request) Test() (done bool, err error) {
	if c := r.call; c != nil {
		if c.over.Load() {
			return true, c.err
		}
		select {
		case <-r.Done():
			return true, c.err
		default:
			return false, nil
		}
	}
	if !r.useMessage(false) {
		return false, nil
	}
	return true, r.err()
}

// err returns the error of what is done, which is no function.
func (r *Request) err() error {
	if r.outcome == nil {
		return nil
	}
	return r.outcome.err
}

// waitMessage waits until the message is done.
func (r *Request) waitMessage() { r.useMessage(true) }

// lockMessage returns the message, with its lock, or nil if it is done. A message that is done
// may be that of another request meanwhile.
func (r *Request) lockMessage() *started {
	m := r.message.Load()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	if r.message.Load() != m {
		m.mu.Unlock()
		return nil
	}
	return m
}

// useMessage waits for the message, or else makes the progress that needs no waiting, and
// reports whether the message is done then. The first call that finds it done sets the
// request's outcome, and the last one that uses it keeps its memory.
func (r *Request) useMessage(wait bool) (done bool) {
	m := r.lockMessage()
	if m == nil {
		return true
	}
	if !m.request.Done() {
		m.users++
		m.mu.Unlock()
		if wait { // the message is left to the collector if this panics
			m.await()
		} else {
			m.comm.job.endpoint.Progress()
		}
		m.mu.Lock()
		m.waited = m.waited || wait
		m.users--
	}
	if !m.request.Done() {
		m.mu.Unlock()
		return false
	}
	if r.message.Load() != nil {
		r.outcome = m.outcome()
		r.message.Store(nil)
	}
	last := m.users == 0
	m.mu.Unlock()
	if last {
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
	n := &nonblockingCall{ctx: ctx, f: f, comm: q.comm, before: before}
	n.request.call = n
	if c.stats != nil {
		n.starter = c.newStarter(uint32(c.nonblocking.started-1), c.nonblocking.isNew(c.job.recorder, f))
	}
	q.last = &n.request
	c.job.late.add(n)
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
	return &Request{outcome: &outcome{err: err}}
}

// succeeded is every request that was done at once, without an error.
var succeeded Request

// closed is the channel of requests that were done at once.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
