package launch

import (
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale/internal/ranklist"
)

// The losses of a job that goes on without lost ranks.
type losses struct {
	hosts       []string         // that are lost
	loss        error            // the first one: of a rank or of a host; nil if there is none
	succeeded   bool             // some rank has ended with success
	said        chan struct{}    // closed when all that say was given is printed; nil if it was given nothing
	shareErrors <-chan time.Time // print the errors of lost ranks
}

// continues reports whether the job goes on when the task is lost.
func (s *supervisor) continues(t task) bool {
	rank, _ := t.place()
	return s.job.cfg.Continue && rank >= 0 && s.cause == nil
}

// exitedAlone records that a process has ended, in a job that goes on without it.
func (s *supervisor) exitedAlone(e event) {
	rank, host := e.task.place()
	switch {
	case e.dismissed:
	case e.exit.Success():
		s.succeeded = true
	default:
		if s.first == nil && s.loss == nil {
			s.first = e.task
		}
		s.lose(&EndError{rank, host, e.exit}, []int{rank}, e.exit.String(), e.respawn)
	}
	if s.job.groups.isOver() && s.kill == nil { // newcomers may be left whom nobody needs
		s.kill = time.After(s.job.cfg.Grace)
	}
}

// loseHost handles that the host of a task is lost, and says so once.
func (s *supervisor) loseHost(e event) {
	_, host := e.task.place()
	if slices.Contains(s.hosts, host) {
		return
	}
	s.hosts = append(s.hosts, host)
	var ranks []int
	for rank, t := range s.tasks {
		_, on := t.place()
		if _, ended := s.exits[t]; on == host && !ended {
			ranks = append(ranks, rank)
		}
	}
	s.lose(e.lost, ranks, e.lost.Error(), false)
}

// lose says that ranks are lost. Soon the errors that they have sent are printed: then those
// that share one with them have sent it, too.
func (s *supervisor) lose(loss error, ranks []int, how string, respawn bool) {
	if s.loss == nil {
		s.loss = loss
	}
	text := how
	if len(ranks) > 0 {
		were := "was"
		if len(ranks) > 1 {
			were = "were"
		}
		text = fmt.Sprintf("%s %s lost: %s", ranklist.Name(ranks), were, how)
	}
	switch {
	case s.job.groups.isOver():
		text += "; no rank is left"
	case respawn:
		text += "; it is started anew, and the others go on"
	default:
		text += "; the others go on"
	}
	s.say(func() { s.job.warn(text) })
	if s.shareErrors == nil {
		s.shareErrors = time.After(noticeTime)
	}
}

// say has something printed after what was to be printed before. It does not block.
func (s *supervisor) say(print func()) {
	before, done := s.said, make(chan struct{})
	s.said = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		print()
	}()
}

// restart starts another process in the place of one that was lost, unless the job ends. It
// reports whether it has.
func (s *supervisor) restart(t task) bool {
	if s.cause != nil || s.job.groups.isOver() {
		return false
	}
	rank, host := t.place()
	anew, err := s.job.restart(rank)
	if err != nil {
		s.job.groups.notStarted(rank)
		s.say(func() { s.job.warn(fmt.Sprintf("%s is not started anew: %v", rankName(rank, host), err)) })
		return false
	}
	s.tasks[rank] = anew
	return true
}

// allLost returns the root cause if no rank has ended with success, and nil otherwise.
func (s *supervisor) allLost() error {
	if s.loss == nil || s.succeeded {
		return nil
	}
	if s.first == nil {
		return s.loss
	}
	t, _ := s.rootCause()
	rank, host := t.place()
	return &EndError{rank, host, s.exits[t].exit}
}
