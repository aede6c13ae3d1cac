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
	if len(in) != p.InLen() || len(out) != p.OutLen() {
		return fmt.Errorf("exec: %d bytes in, %d out: want %d and %d", len(in), len(out), p.InLen(), p.OutLen())
	}
	if p.padding.gap == 0 {
		return p.run(ctx, ep, sig, in, out, op)
	}
	bytes := p.memory.AtLeast(p.copyAt)
	paddedIn := bytes[p.padding.inAt:][:p.in.Len()]
	paddedOut := bytes[p.padding.outAt:][:p.out.Len()]
	p.padding.pad(paddedIn, in)
	p.padding.pad(paddedOut, out)
	err := p.run(ctx, ep, sig, paddedIn, paddedOut, op)
	p.padding.unpad(out, paddedOut)
	return err
}

func (p *Plan) run(ctx context.Context, ep transport.Exchanger, sig transport.Signature, in, out []byte, op Op) error {
	var m memories // set field by field: a composite literal would be built elsewhere and copied
	m[sched.In].lo, m[sched.In].bytes = p.in.Lo, in
	m[sched.Out].lo, m[sched.Out].bytes = p.out.Lo, out
	if p.copyAt > 0 {
		m[sched.Scratch].lo, m[sched.Scratch].bytes = p.scratch.Lo, p.memory.AtLeast(p.copyAt)
	}
	if p.needsCopy && Overlap(in, out) {
		p.copyInput(&m)
	}
	for i := range p.steps {
		st := &p.steps[i]
		for i := range st.copies {
			m.copy(&st.copies[i], op, p.temporal)
		}
		if len(st.sends)+len(st.targets) == 0 {
			continue
		}
		st.bind(&m, sig, op)
		err := ep.Exchange(ctx, st.wire)
		if err != nil {
			p.Release()
			return &StepError{i, err}
		}
	}
	p.Release()
	return nil
}

// copyInput replaces In by a copy of it.
func (p *Plan) copyInput(m *memories) {
	in := m[sched.In].bytes
	bytes := p.memory.AtLeast(p.copyAt + len(in))
	copy(bytes[p.copyAt:], in)
	m[sched.In].bytes, m[sched.Scratch].bytes = bytes[p.copyAt:][:len(in)], bytes
	m[sched.Scratch].lo = p.scratch.Lo
}

// bind sets the memory of the step's wire form.
func (st *step) bind(m *memories, sig transport.Signature, op Op) {
	st.wire.Signature = sig
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
// keep alive. Run calls it, unless the operation panics.
func (p *Plan) Release() {
	for i := range p.steps {
		wire := &p.steps[i].wire
		for k := range wire.Sends {
			wire.Sends[k].Data = nil
		}
		for k := range wire.Recvs {
			wire.Recvs[k].Into, wire.Recvs[k].Held = nil, nil
		}
	}
}

// memories holds In, Out and Scratch.
type memories [3]segment

func (m *memories) slice(r byteRange) []byte {
	if r.lo == r.hi {
		return nil
	}
	b := &m[r.buffer]
	return b.bytes[r.lo-b.lo : r.hi-b.lo : r.hi-b.lo]
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
