package inproc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A stream is an endpoint's part in one context. One goroutine at a time uses
// it; peers touch its first two cache lines alone.
type stream struct {
	wait atomic.Uint64 // what the goroutine sleeps for
	need atomic.Int32  // how many messages of several ranks it sleeps for
	wake chan struct{} // one token ends one sleep
	_    [40]byte

	unread atomic.Int64 // lent messages of the step in progress that have not been read
	_      [56]byte

	end     *Endpoint
	context uint32
	in, out table

	// The step in progress, or the last one.
	stepping atomic.Bool // it is in progress
	sig      transport.Signature
	posts    []posting // sends that have found no room yet
	recvs    []receipt // receives that have not landed yet
	loans    []loan    // messages lent
	planned  struct{ posts, recvs int }
	steps    uint64 // counts steps
	sweep    uint64 // counts sweeps over posts and recvs

	patience patience
	done     <-chan struct{} // of the context that wakes the stream when it ends
	stop     func() bool     // ends that
	alarm    *time.Timer     // rings when the stream is to be examined
	armed    atomic.Bool     // it will ring
	armedIn  uint64          // the step in which it was set
	late     atomic.Uint32   // why the stream is to be examined

	// Under Job.mu.
	links []*link             // all, in both directions
	said  bool                // has been examined
	call  transport.Signature // and was then in this call
}

type posting struct {
	link *link
	data []byte
}

type receipt struct {
	link *link
	recv *transport.Recv
}

type loan struct {
	link *link
	turn uint32
}

var (
	errPanicked = errors.New("a Combine panicked")
	errTwoSteps = errors.New("two steps of one context at a time")
)

// exchange does one step.
func (s *stream) exchange(ctx context.Context, step transport.Step) (err error) {
	if s.stepping.Swap(true) {
		return s.end.fail(errTwoSteps)
	}
	defer func() {
		if err != nil {
			err = s.end.fail(err)
			s.withdraw()
		}
		s.forget()
		s.stepping.Store(false)
	}()
	if s.wait.Load() == gone {
		return *s.end.failed.Load()
	}
	s.sig = step.Signature
	s.steps++
	lent, err := s.plan(step)
	s.planned.posts, s.planned.recvs = len(s.posts), len(s.recvs)
	if lent > 0 {
		s.unread.Store(lent)
	}
	if err != nil {
		return err
	}
	err = errPanicked // unless run returns
	err = s.run(ctx)
	return err
}

// plan finds the links of the step, lists what is to do, and counts the
// messages that will be lent.
func (s *stream) plan(step transport.Step) (lent int64, err error) {
	for i := range step.Sends {
		send := &step.Sends[i]
		for _, to := range send.To {
			l := s.out.get(to)
			if l == nil {
				if l, err = s.linkTo(to); err != nil {
					return lent, err
				}
			}
			s.posts = append(s.posts, posting{l, send.Data})
			if len(send.Data) > buffered {
				lent++
			}
		}
	}
	for i := range step.Recvs {
		recv := &step.Recvs[i]
		l := s.in.get(recv.From)
		if l == nil {
			if l, err = s.linkFrom(recv.From); err != nil {
				return lent, err
			}
		}
		s.recvs = append(s.recvs, receipt{l, recv})
	}
	return lent, nil
}

// run does what plan has listed.
func (s *stream) run(ctx context.Context) error {
	s.patience.begin()
	for {
		moved, err := s.advance()
		switch {
		case err != nil || s.complete():
			return err
		case moved:
			s.patience.begin()
		case !s.patience.looks(s.end.job):
			if err := s.sleep(ctx); err != nil {
				return err
			}
			s.patience.slept(s.end.job)
		}
	}
}

// complete reports whether nothing is left to do.
func (s *stream) complete() bool {
	return len(s.recvs) == 0 && len(s.posts) == 0 && (len(s.loans) == 0 || s.unread.Load() == 0)
}

// advance posts what finds room and takes what has come, and reports whether
// there was any.
func (s *stream) advance() (moved bool, err error) {
	s.sweep++
	if len(s.posts) > 0 {
		if moved, err = s.postAll(); err != nil {
			return moved, err
		}
	}
	if len(s.recvs) > 0 {
		var took bool
		took, err = s.takeAll()
		moved = moved || took
	}
	return moved, err
}

func (s *stream) postAll() (moved bool, err error) {
	rest := s.posts[:0]
	for i, p := range s.posts {
		l := p.link
		if l.stuck == s.sweep || !l.post(&s.sig, p.data) {
			l.stuck = s.sweep // no later message overtakes this one
			rest = append(rest, p)
			continue
		}
		moved = true
		lent := len(p.data) > buffered
		if lent {
			s.loans = append(s.loans, loan{l, l.tail})
		}
		switch w := l.to.wait.Load(); {
		case w == 0:
		case w&gone == 0:
			l.to.bring(w, s.end.rank, lent)
		case l.taken.Load() != l.tail: // else it went when it had the message
			s.posts = append(rest, s.posts[i+1:]...)
			return moved, l.to.end.parting()
		}
	}
	s.posts = rest
	return moved, nil
}

func (s *stream) takeAll() (moved bool, err error) {
	rest := s.recvs[:0]
	for i, r := range s.recvs {
		took := false
		if r.link.missed != s.sweep && (!r.recv.Ordered || len(rest) == 0) {
			if took, err = s.take(r.link, r.recv); err != nil {
				s.recvs = append(rest, s.recvs[i:]...)
				return moved, err
			}
		}
		if took {
			moved = true
		} else {
			r.link.missed = s.sweep // no later receive gets its message
			rest = append(rest, r)
		}
	}
	s.recvs = rest
	return moved, nil
}

// take does a receive if its message has come.
func (s *stream) take(l *link, r *transport.Recv) (bool, error) {
	m := l.next()
	switch {
	case m == nil:
		return false, nil
	case m.sequence != s.sig.Sequence || m.call != s.sig.Call:
		return false, s.mismatch(l.from, m.signature(s.context))
	case m.size.size() != len(r.Into):
		return false, &transport.SizeError{Peer: l.from.end.rank, Got: m.size.size(), Want: len(r.Into)}
	}
	return l.take(r), nil
}

// withdraw takes back every message that nobody has begun to read, and waits
// for those who have.
func (s *stream) withdraw() {
	for _, p := range s.posts {
		if len(p.data) > buffered {
			s.unread.Add(-1)
		}
	}
	for _, l := range s.loans {
		if l.link.claim(l.turn) {
			s.unread.Add(-1)
		}
	}
	s.drain()
}

// forget drops every reference to the caller's memory.
func (s *stream) forget() {
	for _, l := range s.loans {
		l.link.lent[(l.turn-1)%depth] = nil
	}
	clear(s.posts[:s.planned.posts])
	clear(s.recvs[:s.planned.recvs])
	s.posts, s.recvs, s.loans = s.posts[:0], s.recvs[:0], s.loans[:0]
}
