package chorale

import (
	"reflect"
	"runtime"
)

// callers are the innermost return addresses on a stack. Between a call's beginning in the
// library and the program there are seldom more.
type callers [5]uintptr

// callersHere returns the callers of its caller, without so many of the innermost.
func callersHere(skip int) (stack callers) {
	runtime.Callers(2+skip, stack[:])
	return stack
}

// A starter is the line that has started a nonblocking or persistent call. Of most calls it
// is not known, because finding it takes as long as a short call. They are counted.
type starter struct {
	stack  callers
	known  bool
	agreed bool   // all ranks know theirs, for a profile
	number uint32 // of the call, for a timeline
}

var unknownStarter starter

// newStarter returns the starter of a call that the caller of its caller starts, by the
// call's number. A function that is new was not started before.
func (c *Comm) newStarter(number uint32, isNew bool) *starter {
	r, t := c.job.recorder, c.job.tracer
	agreed := r != nil && timed(number)
	profiled := agreed || isNew || c.identity.slow.Load() || c.identity.unplaced.Load()
	if !profiled && (t == nil || t.leavesOut(number)) {
		return &unknownStarter
	}
	c.identity.unplaced.Store(false)
	return &starter{callersHere(2), true, agreed, number}
}

// isNew reports whether a function was not started before, on any communicator of this rank.
// Without a recorder, nobody wants to know.
func (s *nonblockingCalls) isNew(r *recorder, f Func) bool {
	if r == nil {
		return false
	}
	code := reflect.ValueOf(f).Pointer()
	if code == s.code {
		return false
	}
	s.code = code
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started[code] || len(r.started) >= maxRows {
		return false
	}
	r.started[code] = true
	return true
}

// begun notes who has started the nonblocking or persistent call that begins.
func (c *Comm) begun(by *starter) { c.starter, c.first = by, c.sequence }
