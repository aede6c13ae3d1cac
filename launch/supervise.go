package launch

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/internal/ranklist"
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

	// remindTime is how long the ranks may take to end after a signal before a person is
	// told who has not.
	remindTime = 300 * time.Millisecond

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
	killed   bool           // a second signal has killed the processes
	forced   bool           // the output is waited for no longer

	remind    <-chan time.Time // say what is waited for after a signal
	decide    <-chan time.Time // name the root cause, as far as it is known
	terminate <-chan time.Time // signal the other processes
	kill      <-chan time.Time // kill the other processes
	force     <-chan time.Time // return, even if the output is blocked

	losses
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
		case err := <-s.job.stalls:
			s.end(err, syscall.SIGTERM)
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
	if s.said != nil {
		<-s.said
	}
	if s.cause == nil {
		s.cause = s.allLost()
	}
	s.job.printErrors()
	s.job.handOnRecords()
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
	case err := <-s.job.stalls:
		s.end(err, syscall.SIGTERM)
	case <-canceled:
		s.canceled = true
		s.end(context.Cause(ctx), syscall.SIGTERM)
		s.force = time.After(s.job.cfg.Grace + forceTimeout)
	case <-s.decide:
		t, _ := s.rootCause()
		s.fail(t)
	case <-s.remind:
		go s.job.warn(s.reminder()) // it blocks while the output does
	case <-s.shareErrors:
		s.shareErrors = nil
		s.say(s.job.printErrors)
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
	case e.lost != nil && s.continues(e.task):
		s.loseHost(e)
	case e.lost != nil:
		s.conclude(e.lost)
	case !e.finished:
		s.exited(e)
	}
	if e.finished && !(s.exits[e.task].respawn && s.restart(e.task)) {
		s.finished++
	}
}

func outputError(err error) error { return fmt.Errorf("passing on what the ranks print: %w", err) }

// end ends the job for that cause, unless it is ending already.
func (s *supervisor) end(cause error, sig os.Signal) {
	if s.cause == nil {
		s.decided(cause)
		s.ask(sig)
	}
}

// decided records why the job ends early.
func (s *supervisor) decided(cause error) {
	s.cause = cause
	if s.job.groups != nil {
		s.job.groups.stopRespawns()
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
	case syscall.SIGQUIT:
		s.quit()
	case syscall.SIGINT, syscall.SIGTERM:
		now := time.Now()
		switch {
		case s.cause == nil:
			s.end(&SignalError{sig}, sig)
			s.signaled, s.remind = now, time.After(min(remindTime, s.job.cfg.Grace/2))
		case now.Sub(s.signaled) > repeatTime && !s.killed: // later ones must not put off the end
			s.killed = true
			s.signalAll(syscall.SIGKILL)
			s.force = time.After(forceTimeout)
		}
	default:
		s.signalAll(sig)
	}
}

// reminder says which processes have not ended after a signal, and when they will.
func (s *supervisor) reminder() string {
	var ranks []int
	for _, t := range s.tasks {
		if rank, _ := t.place(); rank >= 0 {
			if _, ended := s.exits[t]; !ended {
				ranks = append(ranks, rank)
			}
		}
	}
	who, them := "the program has", "it"
	switch {
	case len(ranks) == 1:
		who = ranklist.Name(ranks) + " has"
	case len(ranks) > 1:
		who, them = ranklist.Name(ranks)+" have", "them"
	case len(s.exits) == len(s.tasks):
		who = "what the ranks print has" // somebody holds a pipe open
	}
	return fmt.Sprintf("%v: %s not ended; another Ctrl-C kills %s at once, as the launcher does after %v", s.cause, who, them, s.job.cfg.Grace)
}

// quit has what the ranks do printed. A process that runs all of them prints it itself.
func (s *supervisor) quit() {
	switch {
	case s.job.groups != nil:
		go s.job.explain()
	case s.job.cfg.Transport == "inproc":
		s.signalAll(syscall.SIGQUIT)
	}
}

// exited records that a process has ended. After a failure, the other processes
// are ended too, as soon as the root cause is known.
func (s *supervisor) exited(e event) {
	s.exits[e.task] = e
	if e.dismissed || s.continues(e.task) {
		s.exitedAlone(e)
		return
	}
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
	s.decided(cause)
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
