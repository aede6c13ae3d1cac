package launch

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// settleTime is how long a failure that one rank blames on another waits
	// for the end of the other.
	settleTime = 2 * time.Second

	// noticeTime is how long ranks that have been told who failed may take to
	// say so and end, before they are asked to end.
	noticeTime = 500 * time.Millisecond

	// repeatTime is how soon a second signal may follow the first and still be
	// the same: some send theirs to a process and then to its group.
	repeatTime = 100 * time.Millisecond

	// hurryTime is how long an output that is stuck holds up the end when it
	// has been asked for twice.
	hurryTime = time.Second
)

// A supervisor sees processes to their end. If one fails, it ends the others.
type supervisor struct {
	procs  []*process
	told   func() bool // whether there are ranks that hear from the launcher
	grace  time.Duration
	ends   map[*process]event // of those that have ended
	first  *process           // the first that failed
	cause  error              // why the job ends before its time
	asked  time.Time          // when a signal first asked for the end
	settle <-chan time.Time   // decide who failed first
	notice <-chan time.Time   // ask the others to end
	kill   <-chan time.Time   // do not ask any longer
	hurry  <-chan time.Time   // do not wait for the output any longer
}

// supervise returns when all of the processes have ended and all that they
// printed has been passed on. It returns nil if all ended well. If there is a
// cause to end them at once, it returns that.
func (j *job) supervise(ctx context.Context, procs []*process, cause error) error {
	s := &supervisor{procs: procs, told: j.hasJoined, grace: j.cfg.Grace, ends: make(map[*process]event)}
	if cause != nil {
		s.end(cause, syscall.SIGTERM)
	}
	cancelled := ctx.Done()
	for unfinished := len(procs); unfinished > 0; {
		select {
		case e := <-j.events:
			if e.finished {
				unfinished--
			} else {
				s.ended(e)
			}
		case sig := <-j.cfg.Signals:
			s.signal(sig)
		case err := <-j.broken:
			s.end(outputError(err), syscall.SIGTERM)
		case <-cancelled:
			cancelled = nil
			s.end(context.Cause(ctx), syscall.SIGTERM)
		case <-s.settle:
			culprit, _ := s.culprit()
			s.fail(culprit)
		case <-s.notice:
			s.ask(syscall.SIGTERM)
		case <-s.kill:
			s.signalAll(syscall.SIGKILL)
		case <-s.hurry:
			return s.cause
		}
	}
	select {
	case err := <-j.broken:
		s.end(outputError(err), syscall.SIGTERM)
	default:
	}
	return s.cause
}

func outputError(err error) error { return fmt.Errorf("passing on what the ranks print: %w", err) }

// end ends the job for that cause, unless there is one already.
func (s *supervisor) end(cause error, sig os.Signal) {
	if s.cause == nil {
		s.cause = cause
		s.ask(sig)
	}
}

// ask asks all processes to end.
func (s *supervisor) ask(sig os.Signal) {
	s.signalAll(sig)
	s.kill = time.After(s.grace)
}

func (s *supervisor) signalAll(sig os.Signal) {
	for _, p := range s.procs {
		p.signal(sig)
	}
}

// signal passes on a signal to the launcher. An interrupt or a termination
// ends the job, and the second one at once.
func (s *supervisor) signal(sig os.Signal) {
	switch sig {
	case syscall.SIGPIPE: // the write that caused it fails
	case syscall.SIGINT, syscall.SIGTERM:
		now := time.Now()
		switch {
		case s.cause == nil:
			s.end(&SignalError{sig}, sig)
			s.asked = now
		case now.Sub(s.asked) > repeatTime:
			s.signalAll(syscall.SIGKILL)
			s.hurry = time.After(hurryTime)
		}
	default:
		s.signalAll(sig)
	}
}

// ended notes that a process has ended. After a failure, the others end too, as
// soon as it is known who failed first.
func (s *supervisor) ended(e event) {
	s.ends[e.p] = e
	if s.first == nil && !e.state.Success() {
		s.first = e.p
	}
	if s.first == nil || s.cause != nil {
		return
	}
	culprit, certain := s.culprit()
	if certain {
		s.fail(culprit)
	} else if s.settle == nil {
		s.settle = time.After(settleTime)
	}
}

// fail ends the job on account of a process that has ended.
func (s *supervisor) fail(p *process) {
	if s.cause != nil {
		return
	}
	s.cause = &EndError{p.rank, s.ends[p].state}
	if s.told() {
		s.notice = time.After(noticeTime)
	} else {
		s.ask(syscall.SIGTERM)
	}
}

// culprit follows the blame from the process that failed first to the one that
// caused the failure. It is not certain while one who is blamed still runs.
func (s *supervisor) culprit() (p *process, certain bool) {
	p = s.first
	for range s.procs { // ranks may blame each other in a circle
		blamed := s.ends[p].blames
		if blamed < 0 {
			return p, true
		}
		next := s.procs[blamed]
		e, over := s.ends[next]
		if !over {
			return p, false
		}
		if e.state.Success() {
			return p, true
		}
		p = next
	}
	return s.first, true
}
