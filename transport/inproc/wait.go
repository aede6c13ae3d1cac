package inproc

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/processors"

	"github.com/chorale-go/chorale/transport"
)

// sleep blocks until something may have happened. It returns an error when the step
// is unsatisfiable.
func (s *commState) sleep(ctx context.Context) error {
	s.watch(ctx)
	s.armStallCheck()
	word := s.waitWord()
	if !s.waiter.announce(word) {
		return errEnded
	}
	if word&sourceMask == severalSources {
		s.waiter.expect(s.messagesDue())
	}
	s.step.peeks = false
	progressed, err := s.poll()
	if err == nil && !progressed && !s.complete() {
		if err = s.unsatisfiable(ctx); err == nil {
			s.waiter.block()
			return nil
		}
	}
	s.waiter.retract(word)
	return err
}

// messagesDue returns the number of links from which a message is due and has not
// arrived.
func (s *commState) messagesDue() (n int32) {
	s.step.pass++
	for i := range s.step.recvs {
		if l := s.step.recvs[i].link; l.receiver.emptyIn != s.step.pass && l.next() == nil {
			l.receiver.emptyIn = s.step.pass
			n++
		}
	}
	return n
}

// waitWord returns the wait word of what is not complete.
func (s *commState) waitWord() (word waitWord) {
	switch len(s.step.recvs) {
	case 0:
	case 1:
		word = waitWord(s.step.recvs[0].link.receiver.from.endpoint.rank) + 1
	default:
		word = severalSources
	}
	if len(s.step.sends) > 0 {
		word |= untilFreeCell
	}
	if len(s.step.rendezvous) > 0 && !s.incomplete.none() {
		word |= untilRead
	}
	return word
}

// unsatisfiable returns why the step cannot complete, or nil if that is not known.
func (s *commState) unsatisfiable(ctx context.Context) error {
	if err := transport.Cause(ctx); err != nil {
		return err
	}
	for i := range s.step.recvs {
		// In this order: a peer writes its messages before it ends.
		if l := s.step.recvs[i].link; l.receiver.from.waiter.ended() && l.next() == nil {
			return s.endedBy(l.receiver.from)
		}
	}
	for i := range s.step.sends {
		if to := s.step.sends[i].link.sender.to; to.waiter.ended() {
			return s.endedBy(to)
		}
	}
	for _, r := range s.step.rendezvous {
		if to := r.link.sender.to; to.waiter.ended() && r.unread() {
			return s.endedBy(to)
		}
	}
	return s.checkStall()
}

// A contextWatch wakes a rank when its context.Context ends.
type contextWatch struct {
	done <-chan struct{} // of the context
	stop func() bool     // ends the watch; nil if there is none
}

// watch lets the end of ctx wake the rank. A context that is used call after call
// is registered once.
func (s *commState) watch(ctx context.Context) {
	done := ctx.Done()
	if done == nil || done == s.watched.done {
		return
	}
	s.endpoint.job.mu.Lock()
	defer s.endpoint.job.mu.Unlock()
	s.unwatch()
	if !s.waiter.ended() {
		s.watched = contextWatch{done, context.AfterFunc(ctx, s.waiter.wake)}
	}
}

// unwatch ends the watch. Job.mu is held.
func (s *commState) unwatch() {
	if s.watched.stop != nil {
		s.watched.stop()
		s.watched.stop = nil
	}
}

// A spinPolicy says whether the waiting ranks of a job may spin.
type spinPolicy struct {
	start  time.Time
	resume atomic.Int64 // nanoseconds since start until which they sleep at once; 0: they spin
}

// never is a time to resume that does not come.
const never = 1<<63 - 1

// A backoff decides whether a waiting rank polls again, yields its processor, or
// sleeps. Spinning is for jobs in which every rank can have a processor to itself.
// It sees a message within a tenth of a microsecond, and it keeps ranks on separate
// processors: the runtime starts a goroutine that was asleep on the processor of
// the one that woke it, and there it may wait for a hundred microseconds.
//
// A spinning rank yields now and then, because the rank that it waits for may be
// next on the same processor. If that comes soon after this one has gone to sleep, it
// may have needed the processor, and the job is taken to be oversubscribed: its ranks
// sleep at once for a multiple of the time that was lost. A rank that sleeps for longer
// than it has spun waits for one that computes.
type backoff struct {
	polls   int           // in this wait
	yieldAt int           // the poll after which the rank yields
	yielded time.Duration // the time of the first yield, since the job's start
	asleep  time.Duration // the time of going to sleep after that
}

const (
	pausedPolls = 100   // polls with a pause, of some tens of nanoseconds: a short message comes sooner
	firstYield  = 500   // polls, of one or two nanoseconds each
	lastYield   = 32000 // polls: about as long as the runtime may leave one goroutine queued behind another
	sleepFactor = 8     // ranks sleep at once for this many times the time lost by spinning
	sleepMax    = 50 * time.Millisecond
)

// begin begins a wait.
func (b *backoff) begin() { b.polls, b.yieldAt = 0, firstYield }

// peeks reports whether the rank looks only where messages are likely, as it does in most
// of the first polls. A cache line in which nothing has arrived is better left to the
// rank that will write there.
func (b *backoff) peeks() bool { return b.polls%4 != 0 && b.polls < pausedPolls }

// spin reports whether the rank polls again. If not, the rank sleeps.
func (b *backoff) spin(p *spinPolicy) bool {
	if p.resume.Load() != 0 {
		return false
	}
	if b.polls++; b.polls < b.yieldAt {
		if b.polls < pausedPolls {
			processors.Pause()
		}
		return true
	}
	switch {
	case b.yieldAt == firstYield:
		b.yielded = time.Since(p.start)
	case b.yieldAt >= lastYield:
		b.asleep = time.Since(p.start)
		return false
	}
	b.yieldAt *= 4
	runtime.Gosched()
	return true
}

// slept ends a wait in which the rank had to sleep.
func (b *backoff) slept(p *spinPolicy) {
	switch resume := p.resume.Load(); {
	case resume == never:
		return
	case b.yieldAt > firstYield:
		lost, now := b.asleep-b.yielded, time.Since(p.start)
		if now-b.asleep < lost {
			p.resume.Store(int64(now + min(sleepFactor*lost, sleepMax)))
		}
	case resume != 0 && int64(time.Since(p.start)) > resume:
		p.resume.Store(0)
	}
	b.begin()
}
