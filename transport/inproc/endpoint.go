// Package inproc is the transport between goroutines of one process.
//
// A message lies where its sender has it until its receiver reads it, and the
// receiver combines as it reads: nothing is copied on the way, but for
// short messages, which are copied so that the sender need not wait.
// Nothing is made for two ranks before they have to do with each other, so
// that a job of many thousand ranks costs what its messages cost.
package inproc

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A Job is a set of ranks that can send each other messages.
type Job struct {
	ends      []Endpoint
	start     time.Time
	rest      atomic.Int64  // since start: until then ranks that wait sleep at once
	suspicion time.Duration // after which a rank that sleeps is examined

	mu      sync.Mutex // guards what is made as it is needed, and all endings
	links   map[linkID]*link
	endings int               // how many endpoints have ended
	waiting map[*Endpoint]int // those with calls that wait for letters
}

type linkID struct {
	from, to int
	context  uint32
}

// New makes a job of n ranks. It panics if n is negative.
func New(n int) *Job {
	j := &Job{
		ends:      make([]Endpoint, n),
		start:     time.Now(),
		suspicion: 10*time.Millisecond + time.Duration(n)*50*time.Microsecond,
		links:     map[linkID]*link{},
	}
	if n > runtime.GOMAXPROCS(0) {
		j.rest.Store(never)
	}
	for rank := range j.ends {
		j.ends[rank].job = j
		j.ends[rank].rank = rank
	}
	return j
}

// Endpoint returns the endpoint of a rank, 0 ≤ rank < n.
func (j *Job) Endpoint(rank int) *Endpoint { return &j.ends[rank] }

// Abort ends the part of every rank in the job: what they wait for and
// whatever they exchange later fails with err, or [transport.ErrAborted] if
// that is nil.
func (j *Job) Abort(err error) {
	if err == nil {
		err = transport.ErrAborted
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for rank := range j.ends {
		j.ends[rank].end(err)
	}
}

// An Endpoint is one rank's attachment to a job. It implements
// [transport.Endpoint].
type Endpoint struct {
	job    *Job
	rank   int
	failed atomic.Pointer[error]     // what Exchange returns from now on
	recent [8]atomic.Pointer[stream] // by context, modulo 8
	mail   mailbox

	// Under Job.mu.
	streams map[uint32]*stream
	last    *transport.PeerError // what peers are told
}

var _ transport.Endpoint = (*Endpoint)(nil)

// Rank returns the endpoint's rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return len(e.job.ends) }

// Exchange does one step, as [transport.Endpoint] says. It allocates nothing
// once it has seen steps of the same kind.
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) error {
	if failed := e.failed.Load(); failed != nil {
		return *failed
	}
	if err := transport.Cause(ctx); err != nil {
		return e.fail(err)
	}
	return e.stream(step.Signature.Context).exchange(ctx, step)
}

// Close leaves the job. Peers that still wait for this rank get an error, as
// do Exchanges in progress.
func (e *Endpoint) Close() error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	e.end(transport.ErrClosed)
	closed := error(transport.ErrClosed)
	e.failed.Store(&closed)
	return nil
}

// Release drops what the endpoint holds for a context, in which it has had its
// last Exchange. Peers may still receive what it has sent them.
func (e *Endpoint) Release(context uint32) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	s := e.streams[context]
	if s == nil {
		return
	}
	s.unwatch()
	s.disarm()
	for _, l := range s.links {
		if l.released { // by the other end: this one may have been slower
			delete(e.job.links, linkID{l.from.end.rank, l.to.end.rank, context})
		}
		l.released = true
	}
	delete(e.streams, context)
	e.recent[context%uint32(len(e.recent))].CompareAndSwap(s, nil)
}

// stream returns the endpoint's part in a context.
func (e *Endpoint) stream(context uint32) *stream {
	recent := &e.recent[context%uint32(len(e.recent))]
	if s := recent.Load(); s != nil && s.context == context {
		return s
	}
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	s := e.open(context)
	recent.Store(s)
	return s
}

// open returns the endpoint's part in a context, and makes it at first.
// Job.mu is held.
func (e *Endpoint) open(context uint32) *stream {
	s := e.streams[context]
	if s == nil {
		s = &stream{end: e, context: context, wake: make(chan struct{}, 1)}
		if e.last != nil {
			s.wait.Store(gone)
		}
		if e.streams == nil {
			e.streams = map[uint32]*stream{}
		}
		e.streams[context] = s
	}
	return s
}

// linkTo returns the link to a peer, and makes it at first.
func (s *stream) linkTo(peer int) (*link, error) {
	l, err := s.join(peer, &s.out, func(p *stream) (from, to *stream) { return s, p })
	pair(l, s.in.get(peer))
	return l, err
}

// linkFrom returns the link from a peer, and makes it at first.
func (s *stream) linkFrom(peer int) (*link, error) {
	l, err := s.join(peer, &s.in, func(p *stream) (from, to *stream) { return p, s })
	pair(s.out.get(peer), l)
	return l, err
}

func (s *stream) join(peer int, t *table, ends func(p *stream) (from, to *stream)) (*link, error) {
	j := s.end.job
	if peer < 0 || peer >= len(j.ends) || peer == s.end.rank {
		return nil, &transport.RankError{Peer: peer, Rank: s.end.rank, Size: len(j.ends)}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	from, to := ends(j.ends[peer].open(s.context))
	id := linkID{from.end.rank, to.end.rank, s.context}
	l := j.links[id]
	if l == nil {
		l = &link{from: from, to: to}
		j.links[id] = l
		from.links = append(from.links, l)
		to.links = append(to.links, l)
	}
	t.put(peer, l)
	return l, nil
}

// fail ends the endpoint's part with err, unless it has ended already, and
// returns what it ended with.
func (e *Endpoint) fail(err error) error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	e.end(err)
	return *e.failed.Load()
}

// end does what fail does. Job.mu is held.
func (e *Endpoint) end(err error) {
	if e.last != nil {
		return
	}
	e.failed.Store(&err)
	for _, s := range e.streams {
		s.unwatch()
		s.disarm()
		if s.wait.Swap(gone) != 0 {
			s.wake <- struct{}{}
		}
	}
	e.last = &transport.PeerError{Peer: e.rank, Err: transport.ErrAborted, Reason: err.Error()}
	if err == transport.ErrClosed {
		e.last.Err, e.last.Reason = transport.ErrLeft, e.lastCall()
	}
	for _, s := range e.streams {
		for _, l := range s.links {
			l.from.rouse()
			l.to.rouse()
		}
	}
	e.job.endings++
	for waiting := range e.job.waiting {
		waiting.mail.wake()
	}
}

// parting returns what became of an endpoint that has ended, for its peers.
func (e *Endpoint) parting() error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	return e.last
}
