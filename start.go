package chorale

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// streamCount is how many started calls of a communicator can move at a time.
// A further one begins when the one that was started so many before it is done.
const streamCount = 16

// A stream does one started call after another, apart from all other calls.
type stream struct {
	comm *Comm
	last *Request
}

// A Request is a call that was started and need not be done yet.
type Request struct {
	done chan struct{}
	err  error
}

// Done returns a channel that is closed when the call is done.
func (r *Request) Done() <-chan struct{} { return r.done }

// Wait waits until the call is done, and returns its error.
func (r *Request) Wait() error {
	<-r.done
	return r.err
}

// Test reports whether the call is done, and its error if it is.
func (r *Request) Test() (done bool, err error) {
	select {
	case <-r.done:
		return true, r.err
	default:
		return false, nil
	}
}

// WaitAll waits for all requests, and returns the first error.
func WaitAll(requests ...*Request) (err error) {
	for _, r := range requests {
		err = cmp.Or(err, r.Wait())
	}
	return err
}

// Start starts a call, or several that follow each other, and returns at once.
// F gets a communicator of the same ranks, for just these calls:
//
//	r := chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
//		return chorale.AllReduce(ctx, c, dst, src, chorale.Sum)
//	})
//	… // computes, and leaves dst and src alone
//	err := r.Wait()
//
// Any number of calls may be under way, together with other calls on c, and end
// in any order. All ranks start them in the same order. The functions StartBcast
// and so on do the same for one call.
func Start(ctx context.Context, c *Comm, f Func) *Request {
	i := c.started % streamCount
	c.started++
	s := c.streams[i]
	if s == nil {
		s = &stream{comm: c.view(1 + uint32(i))}
		c.streams[i] = s
	}
	r := &Request{done: make(chan struct{})}
	before := s.last
	s.last = r
	go func() {
		defer close(r.done)
		if before != nil {
			<-before.done
		}
		r.err = protect(ctx, s.comm, f)
	}()
	return r
}

// view returns a communicator of the same ranks with a context of its own.
func (c *Comm) view(offset uint32) *Comm {
	return &Comm{
		job: c.job, members: c.members, rank: c.rank, size: c.size,
		context: c.context + offset, calls: make(map[callKey]*call),
	}
}

// A Persistent is a call that is prepared once and started many times. Once the
// calls that it makes are known, starting it allocates nothing.
type Persistent struct {
	comm  *Comm // that it was prepared on
	view  *Comm // that its calls have for themselves
	begin chan context.Context
	end   chan error
	quit  chan struct{} // closed by Free
	free  sync.Once
}

// maxPersistent is how many prepared calls a communicator can have at a time.
const maxPersistent = 1<<contextBits - streamCount - 1

// Prepare prepares a call: each Start of the result calls f again, with a
// communicator of the same ranks. All ranks prepare their calls, and free them,
// in the same order.
func Prepare(c *Comm, f Func) (*Persistent, error) {
	p := &Persistent{comm: c, begin: make(chan context.Context), end: make(chan error, 1), quit: make(chan struct{})}
	switch n := len(c.idle); {
	case n > 0: // it goes on with its numbers of calls, so that slower ranks tell old and new apart
		p.view, c.idle = c.idle[n-1], c.idle[:n-1]
	case c.persistent == maxPersistent:
		return nil, c.wrong("prepare", "%d calls are prepared: want no more on one communicator", maxPersistent)
	default:
		p.view = c.view(streamCount + 1 + uint32(c.persistent))
		c.persistent++
	}
	go func() {
		for {
			select {
			case ctx := <-p.begin:
				p.end <- protect(ctx, p.view, f)
			case <-p.quit:
				return
			}
		}
	}()
	return p, nil
}

// Start starts the call. It must not be under way.
func (p *Persistent) Start(ctx context.Context) {
	select {
	case p.begin <- ctx:
	case <-p.quit:
		p.end <- fmt.Errorf("the prepared call was freed: %w", ErrClosed)
	}
}

// Wait waits until the call that was started last is done, and returns its
// error. Each Start is waited for once.
func (p *Persistent) Wait() error { return <-p.end }

// Free ends the use of a prepared call that is not under way.
func (p *Persistent) Free() {
	p.free.Do(func() {
		close(p.quit)
		p.comm.idle = append(p.comm.idle, p.view)
	})
}

// sortByKey sorts ranks by key, and leaves those with equal keys in order.
func sortByKey(ranks []int, key func(rank int) int) {
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
}
