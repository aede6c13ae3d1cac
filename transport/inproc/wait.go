package inproc

import (
	"context"
	"runtime"
	"time"
)

// A stream's wait word says what its goroutine sleeps for, so that whoever
// brings something else lets it sleep. It is 0 while the goroutine is awake.
// Who swaps a sleeper's word for another owes it one token.
const (
	byRank  uint64 = 1<<32 - 1 // mask: 1 + the rank whose message it sleeps for
	anyRank uint64 = 1<<32 - 1 // messages of several ranks
	forAcks uint64 = 1 << 32   // until no lent message is unread
	forRoom uint64 = 1 << 33   // for room on a link
	gone    uint64 = 1 << 63   // the endpoint has ended; the word stays so
)

// sleep waits until something may have happened. It returns an error when
// nothing can.
func (s *stream) sleep(ctx context.Context) error {
	s.watch(ctx)
	s.arm()
	word := s.purpose()
	s.need.Store(0)
	if !s.wait.CompareAndSwap(0, word) {
		return *s.end.failed.Load()
	}
	if word&byRank == anyRank {
		s.need.Add(s.missing())
	}
	// Who acts from here on sees the word; what was done before, this sees.
	moved, err := s.advance()
	if err == nil && !moved && !s.complete() {
		if err = s.hopeless(ctx); err == nil {
			<-s.wake
			return nil
		}
	}
	if !s.wait.CompareAndSwap(word, 0) {
		<-s.wake
	}
	return err
}

// missing returns the number of links from which a message is due and none is
// there.
func (s *stream) missing() (n int32) {
	s.sweep++
	for i := range s.recvs {
		if l := s.recvs[i].link; l.missed != s.sweep && l.next() == nil {
			l.missed = s.sweep
			n++
		}
	}
	return n
}

// purpose returns the wait word for what is still to do.
func (s *stream) purpose() (word uint64) {
	switch len(s.recvs) {
	case 0:
	case 1:
		word = uint64(s.recvs[0].link.from.end.rank) + 1
	default:
		word = anyRank
	}
	if len(s.posts) > 0 {
		word |= forRoom
	}
	if len(s.loans) > 0 && s.unread.Load() > 0 {
		word |= forAcks
	}
	return word
}

// rouse wakes the stream's goroutine if it sleeps.
func (s *stream) rouse() {
	if w := s.wait.Load(); w != 0 && w&gone == 0 {
		s.wakeFrom(w)
	}
}

// wakeFrom wakes the stream's goroutine if it still sleeps for word.
func (s *stream) wakeFrom(word uint64) {
	if s.wait.CompareAndSwap(word, 0) {
		s.wake <- struct{}{}
	}
}

// bring tells a goroutine that sleeps for word of a message from a rank. One
// that sleeps for messages of several ranks need not get up for each: only for
// the last, or for one that its sender waits to have read. While it has not
// counted them yet, need is 0 and every message wakes it.
func (s *stream) bring(word uint64, from int, lent bool) {
	switch word & byRank {
	case uint64(from) + 1:
		s.wakeFrom(word)
	case anyRank:
		if s.need.Add(-1) <= 0 || lent {
			s.wakeFrom(word)
		}
	}
}

// acknowledge tells the sender of a lent message that it has been read.
func (s *stream) acknowledge() {
	if s.unread.Add(-1) > 0 {
		return
	}
	switch w := s.wait.Load(); {
	case w&gone != 0: // it may be in drain
		select {
		case s.wake <- struct{}{}:
		default:
		}
	case w&forAcks != 0:
		s.rouse()
	}
}

// drain waits until nobody reads the stream's messages any more. The endpoint
// has ended, so nobody begins to.
func (s *stream) drain() {
	for s.unread.Load() > 0 {
		<-s.wake
	}
}

// watch has the end of ctx wake the stream. The same context, call after call,
// is registered once.
func (s *stream) watch(ctx context.Context) {
	done := ctx.Done()
	if done == nil || done == s.done {
		return
	}
	s.end.job.mu.Lock()
	defer s.end.job.mu.Unlock()
	s.unwatch()
	if s.end.failed.Load() == nil {
		s.done, s.stop = done, context.AfterFunc(ctx, s.rouse)
	}
}

// unwatch ends what watch began. Job.mu is held.
func (s *stream) unwatch() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// patience decides whether a rank that waits looks again or sleeps. To look
// again is for jobs in which every rank can have a processor to itself. It
// answers in a tenth of a microsecond, and it keeps ranks apart: the runtime
// starts a goroutine that was asleep on the processor of the one that woke it,
// behind which it may wait for a hundred microseconds.
//
// A rank that looks gives way now and then, for the one that it waits for may
// be next on the same processor. A rank that had to sleep after all takes it
// that others want the processors too, and for a multiple of the time that it
// lost the whole job sleeps at once.
type patience struct {
	count int       // looks in this wait
	pause int       // the look at which it gives way
	since time.Time // when it first did
}

const (
	firstPause  = 500   // looks, of one or two nanoseconds
	lastPause   = 32000 // looks: as long as the runtime may leave a goroutine behind another
	restFactor  = 8     // rests that much longer than it waited in vain
	longestRest = 50 * time.Millisecond
)

// never is the end of a rest that lasts for ever.
const never = 1<<63 - 1

// begin begins a wait.
func (p *patience) begin() { p.count, p.pause = 0, firstPause }

// looks reports whether the rank looks again.
func (p *patience) looks(j *Job) bool {
	if j.rest.Load() != 0 {
		return false
	}
	if p.count++; p.count < p.pause {
		return true
	}
	switch {
	case p.pause == firstPause:
		p.since = time.Now()
	case p.pause >= lastPause:
		return false
	}
	p.pause *= 4
	runtime.Gosched()
	return true
}

// slept ends a wait in which the rank had to sleep.
func (p *patience) slept(j *Job) {
	switch rest := j.rest.Load(); {
	case rest == never:
		return
	case p.pause > firstPause:
		now := time.Now()
		j.rest.Store(int64(now.Sub(j.start) + min(restFactor*now.Sub(p.since), longestRest)))
	case rest != 0 && int64(time.Since(j.start)) > rest:
		j.rest.Store(0)
	}
	p.begin()
}
