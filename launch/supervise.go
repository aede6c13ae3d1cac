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

// A supervisor sees tasks to their end. If one fails, it ends the others.
type supervisor struct {
	job      *job
	tasks    []task         // in the order of ranks
	exits    map[task]event // of the tasks that have ended
	finished int            // how many tasks have left nothing
	first    task           // the first that failed
	cause    error          // why the job ends early; nil while it runs on
	signaled time.Time      // when a signal first asked for the end
	canceled bool           // the context has ended
	forced   bool           // the output is waited for no longer

	decide    <-chan time.Time // name the root cause, as far as it is known
	terminate <-chan time.Time // signal the other processes
	kill      <-chan time.Time // kill the other processes
	force     <-chan time.Time // return, even if the output is blocked
}

// supervise returns a supervisor of these tasks, and of those that are started later.
func (j *job) supervise(tasks ...task) *supervisor {
	return &supervisor{job: j, tasks: tasks, exits: make(map[task]event)}
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

// wait returns when all of the tasks have ended and their output has been
// forwarded. It returns nil if all ended with success. If the context ends, the
// output is waited for no longer than forceTimeout after the grace period.
func (s *supervisor) wait(ctx context.Context) error {
	for s.finished < len(s.tasks) && !s.forced {
		s.step(ctx)
	}
	if s.forced {
		return s.cause
	}
	s.job.printErrors()
	select {
	case err := <-s.job.broken:
		s.end(outputError(err), syscall.SIGTERM)
	default:
	}
	return s.cause
}

// step waits for something to happen, and handles it.
func (s *supervisor) step(ctx context.Context) {
	canceled := ctx.Done()
	if s.canceled {
		canceled = nil
	}
	select {
	case e := <-s.job.events:
		s.handle(e)
	case call := <-s.job.calls:
		call()
	case sig := <-s.job.cfg.Signals:
		s.signal(sig)
	case <-s.job.stops:
		s.stop()
	case err := <-s.job.broken:
		s.end(outputError(err), syscall.SIGTERM)
	case <-canceled:
		s.canceled = true
		s.end(context.Cause(ctx), syscall.SIGTERM)
		s.force = time.After(s.job.cfg.Grace + forceTimeout)
	case <-s.decide:
		t, _ := s.rootCause()
		s.fail(t)
	case <-s.terminate:
		s.ask(syscall.SIGTERM)
	case <-s.kill:
		s.signalAll(syscall.SIGKILL)
	case <-s.force:
		s.forced = true
	}
}

// handle handles the end of a task, or of its output.
func (s *supervisor) handle(e event) {
	switch {
	case e.lost != nil:
		s.conclude(e.lost)
	case !e.finished:
		s.exited(e)
	}
	if e.finished {
		s.finished++
	}
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
	for _, t := range s.tasks {
		t.signal(sig)
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
	s.exits[e.task] = e
	if s.first == nil && !e.exit.Success() {
		s.first = e.task
	}
	if s.first == nil || s.cause != nil {
		return
	}
	t, certain := s.rootCause()
	if certain {
		s.fail(t)
	} else if s.decide == nil {
		s.decide = time.After(rootCauseTimeout)
	}
}

// fail ends the job because a task, which has ended, failed.
func (s *supervisor) fail(t task) {
	rank, host := t.place()
	s.conclude(&EndError{rank, host, s.exits[t].exit})
}

// conclude ends the job for that cause, unless it is ending already. Ranks that have
// joined learn of the failure from the control server, and get time to report it.
func (s *supervisor) conclude(cause error) {
	if s.cause != nil {
		return
	}
	s.cause = cause
	if s.job.hasJoined() {
		s.terminate = time.After(noticeTime)
	} else {
		s.ask(syscall.SIGTERM)
	}
}

// rootCause follows the reports of failed peers from the task that failed
// first to the task that caused the failure. It is not certain while a
// reported peer still runs.
func (s *supervisor) rootCause() (t task, certain bool) {
	t = s.first
	for range s.tasks { // the reports may form a cycle
		peer := s.exits[t].failedPeer
		if peer < 0 {
			return t, true
		}
		next := s.tasks[peer]
		e, ended := s.exits[next]
		if !ended {
			return t, false
		}
		if e.exit.Success() {
			return t, true
		}
		t = next
	}
	return s.first, true
}
