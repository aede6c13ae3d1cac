package exec

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// An Op combines bytes that hold elements. Element by element, Right sets into to
// held ⊕ incoming, and Left sets it to incoming ⊕ held. The three slices have the
// same length, and any two are either the same memory or disjoint.
type Op struct {
	Left, Right func(into, held, incoming []byte)
}

// A StepError says in which step of the rank's program, counted from 0, an Exchange
// failed.
type StepError struct {
	Step int
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("step %d: %v", e.Step, e.Err) }
func (e *StepError) Unwrap() error { return e.Err }

// Run executes the plan once. In and out are the rank's memory, InLen and OutLen
// bytes long. They must not overlap unless InPlace reports true. Op may be the zero
// Op if the program combines nothing.
//
// A run allocates nothing, except for one that needs more of its Memory than all before
// it. An error of the endpoint is returned as a [*StepError]. A panic of op passes
// through Run. The plan keeps no reference to in and out, except after such a panic: see
// Release.
func (p *Plan) Run(ctx context.Context, ep transport.Exchanger, sig transport.Signature, in, out []byte, op Op) error {
	if len(in) != p.inLen || len(out) != p.outLen {
		return fmt.Errorf("exec: %d bytes in, %d out: want %d and %d", len(in), len(out), p.inLen, p.outLen)
	}
	if p.copiesAll {
		if unsafe.SliceData(in) != unsafe.SliceData(out) {
			transport.Copy(out, in, p.temporal)
		}
		return nil
	}
	var m memories // set field by field: a composite literal would be built elsewhere and copied
	m[sched.In], m[sched.Out] = in, out
	if p.copyAt > 0 {
		m[sched.Scratch] = p.memory.AtLeast(p.copyAt)
		if p.padding.gap > 0 {
			return p.runPadded(ctx, ep, &sig, &m, op)
		}
	}
	return p.run(ctx, ep, &sig, &m, op)
}

// runPadded is run with padded copies of In and Out.
func (p *Plan) runPadded(ctx context.Context, ep transport.Exchanger, sig *transport.Signature, m *memories, op Op) error {
	out := m[sched.Out]
	p.padding.pad(m[sched.Scratch][p.padding.inAt:][:p.in.Len()], m[sched.In])
	p.padding.pad(m[sched.Scratch][p.padding.outAt:][:p.out.Len()], out)
	m[sched.In] = m[sched.Scratch][p.padding.inAt:][:p.in.Len()]
	m[sched.Out] = m[sched.Scratch][p.padding.outAt:][:p.out.Len()]
	padded := m[sched.Out]
	err := p.run(ctx, ep, sig, m, op)
	p.padding.unpad(out, padded)
	return err
}

func (p *Plan) run(ctx context.Context, ep transport.Exchanger, sig *transport.Signature, m *memories, op Op) error {
	if p.needsCopy && Overlap(m[sched.In], m[sched.Out]) {
		p.copyInput(m)
	}
	for i := range p.steps {
		st := &p.steps[i]
		// What is stored here is copied below, when it has left the processor's store
		// buffer: a copy of it from there takes longer.
		st.wire.Signature = *sig
		if st.late {
			p.late.set(st, m, p.temporal)
		} else {
			for i := range st.copies {
				m.copy(&st.copies[i], op, p.temporal)
			}
		}
		if len(st.sends)+len(st.targets) == 0 {
			continue
		}
		st.bind(m, op)
		err := ep.Exchange(ctx, st.wire)
		st.release()
		if st.late {
			if err == nil {
				p.late.make()
			}
			p.late.release()
		}
		if err != nil {
			return &StepError{i, err}
		}
	}
	return nil
}

// copyInput replaces In by a copy of it.
func (p *Plan) copyInput(m *memories) {
	in := m[sched.In]
	bytes := p.memory.AtLeast(p.copyAt + len(in))
	copy(bytes[p.copyAt:], in)
	m[sched.In], m[sched.Scratch] = bytes[p.copyAt:][:len(in)], bytes
}

// bind sets the memory of the step's wire form.
func (st *step) bind(m *memories, op Op) {
	for i, r := range st.sends {
		st.wire.Sends[i].Data = m.slice(r)
	}
	for i := range st.targets {
		target, recv := &st.targets[i], &st.wire.Recvs[i]
		recv.Into = m.slice(target.into)
		switch target.how {
		case sched.Left:
			recv.Combine, recv.Held = op.Left, m.slice(target.held)
		case sched.Right:
			recv.Combine, recv.Held = op.Right, m.slice(target.held)
		}
	}
}

// Release drops the references to the caller's memory, which a cached plan would
// keep alive. Run does so, unless the operation panics.
func (p *Plan) Release() {
	p.late.release()
	for i := range p.steps {
		p.steps[i].release()
	}
}

func (st *step) release() {
	for k := range st.wire.Sends {
		st.wire.Sends[k].Data = nil
	}
	for k := range st.wire.Recvs {
		st.wire.Recvs[k].Into, st.wire.Recvs[k].Held = nil, nil
	}
}

// memories holds In, Out and Scratch.
type memories [3][]byte

func (m *memories) slice(r byteRange) []byte {
	if r.lo == r.hi {
		return nil
	}
	return m[r.buffer][r.lo:r.hi:r.hi]
}

func (m *memories) copy(c *localCopy, op Op, temporal bool) {
	from, to := m.slice(c.from), m.slice(c.to)
	switch c.how {
	case sched.Left:
		op.Left(to, m.slice(c.held), from)
	case sched.Right:
		op.Right(to, m.slice(c.held), from)
	default:
		if unsafe.SliceData(from) != unsafe.SliceData(to) {
			transport.Copy(to, from, temporal)
		}
	}
}

// Overlap reports whether a and b share memory.
func Overlap(a, b []byte) bool {
	return len(a) > 0 && len(b) > 0 && address(a) < address(b)+uintptr(len(b)) && address(b) < address(a)+uintptr(len(a))
}

// InPlace reports whether every block that both in and out hold is the same memory.
// Only then may in and out overlap.
func (p *Plan) InPlace(in, out []byte) bool {
	return address(in)-uintptr(p.padding.unpaddedLen(p.in.Lo)) == address(out)-uintptr(p.padding.unpaddedLen(p.out.Lo))
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
