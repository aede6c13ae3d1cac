package launch

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// rootCauseTimeout bounds the wait for the end of a process that another one
	// reports as its failed peer.
	rootCauseTimeout = 2 * time.Second

	// noticeTime is how long the ranks that have been told of the failed rank may
	// take to report it and end, before they get a signal.
	noticeTime = 500 * time.Millisecond

	// repeatTime is the time within which a second signal counts as the first
	// one: some programs signal a process and then its group.
	repeatTime = 100 * time.Millisecond

	// forceTimeout bounds how long a blocked output delays the end after a second
	// interrupt, or after the grace period if the context has ended.
	forceTimeout = time.Second
)

// A supervisor sees processes to their end. If one fails, it ends the others.
type supervisor struct {
	job      *job
	procs    []*process
	exits    map[*process]event // of the processes that have ended
	first    *process           // the first that failed
	cause    error              // why the job ends early; nil while it runs on
	signaled time.Time          // when a signal first asked for the end

	decide    <-chan time.Time // name the root cause, as far as it is known
	terminate <-chan time.Time // signal the other processes
	kill      <-chan time.Time // kill the other processes
	force     <-chan time.Time // return, even if the output is blocked
}

// supervise returns a supervisor of these processes, and of those that are started
// later.
func (j *job) supervise(procs ...*process) *supervisor {
	return &supervisor{job: j, procs: procs, exits: make(map[*process]event)}
}

// goesOn handles what has happened since the last call, and reports whether more
// processes may be started.
func (s *supervisor) goesOn(ctx context.Context) bool {
	for s.cause == nil {
		select {
		case sig := <-s.job.cfg.Signals:
			s.signal(sig)
		case <-s.job.stops:
			s.stop()
		case err := <-s.job.broken:
			s.end(outputError(err), syscall.SIGTERM)
		case <-ctx.Done():
			s.end(context.Cause(ctx), syscall.SIGTERM)
		default:
			return true
		}
	}
	return false
}

// wait returns when all of the processes have ended and their output has been
// forwarded. It returns nil if all ended with success. If the context ends, the
// output is waited for no longer than forceTimeout after the grace period.
func (s *supervisor) wait(ctx context.Context) error {
	canceled := ctx.Done()
	for unfinished := len(s.procs); unfinished > 0; {
		select {
		case e := <-s.job.events:
			if e.finished {
				unfinished--
			} else {
				s.exited(e)
			}
		case sig := <-s.job.cfg.Signals:
			s.signal(sig)
		case <-s.job.stops:
			s.stop()
		case err := <-s.job.broken:
			s.end(outputError(err), syscall.SIGTERM)
		case <-canceled:
			canceled = nil
			s.end(context.Cause(ctx), syscall.SIGTERM)
			s.force = time.After(s.job.cfg.Grace + forceTimeout)
		case <-s.decide:
			p, _ := s.rootCause()
			s.fail(p)
		case <-s.terminate:
			s.ask(syscall.SIGTERM)
		case <-s.kill:
			s.signalAll(syscall.SIGKILL)
		case <-s.force:
			return s.cause
		}
	}
	select {
	case err := <-s.job.broken:
		s.end(outputError(err), syscall.SIGTERM)
	default:
	}
	return s.cause
}

func outputError(err error) error { return fmt.Errorf("passing on what the ranks print: %w", err) }

// end ends the job for that cause, unless it is ending already.
func (s *supervisor) end(cause error, sig os.Signal) {
	if s.cause == nil {
		s.cause = cause
		s.ask(sig)
	}
}

// ask signals all processes to end, and kills them after the grace period.
func (s *supervisor) ask(sig os.Signal) {
	s.signalAll(sig)
	s.kill = time.After(s.job.cfg.Grace)
}

func (s *supervisor) signalAll(sig os.Signal) {
	for _, p := range s.procs {
		p.signal(sig)
	}
}

// signal handles a signal to the launcher. The first interrupt or termination
// ends the job, and the second one kills the processes. Any other signal is
// forwarded.
func (s *supervisor) signal(sig os.Signal) {
	switch sig {
	case syscall.SIGPIPE: // the write that caused it fails
	case syscall.SIGINT, syscall.SIGTERM:
		now := time.Now()
		switch {
		case s.cause == nil:
			s.end(&SignalError{sig}, sig)
			s.signaled = now
		case now.Sub(s.signaled) > repeatTime:
			s.signalAll(syscall.SIGKILL)
			s.force = time.After(forceTimeout)
		}
	default:
		s.signalAll(sig)
	}
}

// exited records that a process has ended. After a failure, the other processes
// are ended too, as soon as the root cause is known.
func (s *supervisor) exited(e event) {
	s.exits[e.p] = e
	if s.first == nil && !e.state.Success() {
		s.first = e.p
	}
	if s.first == nil || s.cause != nil {
		return
	}
	p, certain := s.rootCause()
	if certain {
		s.fail(p)
	} else if s.decide == nil {
		s.decide = time.After(rootCauseTimeout)
	}
}

// fail ends the job because a process, which has ended, failed.
func (s *supervisor) fail(p *process) {
	if s.cause != nil {
		return
	}
	s.cause = &EndError{p.rank, s.exits[p].state}
	if s.job.hasJoined() {
		s.terminate = time.After(noticeTime)
	} else {
		s.ask(syscall.SIGTERM)
	}
}

// rootCause follows the reports of failed peers from the process that failed
// first to the process that caused the failure. It is not certain while a
// reported peer still runs.
func (s *supervisor) rootCause() (p *process, certain bool) {
	p = s.first
	for range s.procs { // the reports may form a cycle
		peer := s.exits[p].failedPeer
		if peer < 0 {
			return p, true
		}
		next := s.procs[peer]
		e, ended := s.exits[next]
		if !ended {
			return p, false
		}
		if e.state.Success() {
			return p, true
		}
		p = next
	}
	return s.first, true
}
