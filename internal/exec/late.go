package exec

import "github.com/chorale-go/chorale/sched"

// lateMin is how many bytes a step copies at least for its copies to be late.
const lateMin = 16 << 10

// lateCopies are the copies of a step that are made while its messages are under way, by
// [transport.Step.Meanwhile], or after its Exchange where the endpoint does not call that.
type lateCopies struct {
	meanwhile func() // make, bound once
	copies    []localCopy
	memories  memories
	temporal  bool
}

// set notes the copies of a step, and has its wire form offer them.
func (l *lateCopies) set(st *step, m *memories, temporal bool) {
	if l.meanwhile == nil {
		l.meanwhile = l.make
	}
	l.copies, l.memories, l.temporal = st.copies, *m, temporal
	st.wire.Meanwhile = l.meanwhile
}

// make makes the copies, unless they are made.
func (l *lateCopies) make() {
	copies := l.copies
	l.copies = nil
	for i := range copies {
		l.memories.copy(&copies[i], Op{}, l.temporal)
	}
}

func (l *lateCopies) release() { l.copies, l.memories = nil, memories{} }

// mayCopyLate reports whether to make the copies of a step while its messages are under way.
// Then they must write nothing that the step sends or combines with, and have nothing in
// common with what it receives. In and Out may be the same memory.
func (st *step) mayCopyLate() bool {
	bytes := 0
	for _, c := range st.copies {
		bytes += c.to.hi - c.to.lo
		if c.how != sched.Replace {
			return false
		}
		inPlace := c.from.buffer == sched.In && c.to == byteRange{sched.Out, c.from.lo, c.from.hi} // copies nothing where In and Out are one
		for _, send := range st.sends {
			if c.to.overlaps(send) && !(inPlace && send.buffer == sched.In) {
				return false
			}
		}
		for _, t := range st.targets {
			if c.to.overlaps(t.held) || c.to.overlaps(t.into) || c.from.overlaps(t.into) {
				return false
			}
		}
	}
	return len(st.sends)+len(st.targets) > 0 && bytes >= lateMin
}

// overlaps reports whether two ranges may have memory in common.
func (r byteRange) overlaps(s byteRange) bool {
	return (r.buffer == s.buffer || r.buffer != sched.Scratch && s.buffer != sched.Scratch) && max(r.lo, s.lo) < min(r.hi, s.hi)
}
