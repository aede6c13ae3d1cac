package exec

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// An Op combines bytes that hold elements: Right sets into to held ⊕ incoming,
// Left to incoming ⊕ held, element by element. The three are equally long and
// either the same memory or apart.
type Op struct {
	Left, Right func(into, held, incoming []byte)
}

// A StepError says in which step of the rank's program an exchange failed.
type StepError struct {
	Step int
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("step %d: %v", e.Step, e.Err) }
func (e *StepError) Unwrap() error { return e.Err }

// Run does the program once. In and out are the rank's memory, InLen and OutLen
// bytes long; where both hold the same block they may be the same memory, and
// otherwise must not overlap. Op may be the zero Op if the program combines
// nothing.
//
// The steps follow each other without a pause; a run allocates nothing, but for
// the first that finds in and out to be the same memory. An error of the
// endpoint is returned as a [*StepError].
func (p *Plan) Run(ctx context.Context, ep transport.Exchanger, sig transport.Signature, in, out []byte, op Op) error {
	if len(in) != p.InLen() || len(out) != p.OutLen() {
		return fmt.Errorf("exec: %d bytes in, %d out: want %d and %d", len(in), len(out), p.InLen(), p.OutLen())
	}
	if p.pad.gap == 0 {
		return p.run(ctx, ep, sig, in, out, op)
	}
	p.pad.in = p.pad.widen(p.pad.in, in)
	p.pad.out = p.pad.widen(p.pad.out, out)
	err := p.run(ctx, ep, sig, p.pad.in, p.pad.out, op)
	p.pad.shorten(out, p.pad.out)
	return err
}

func (p *Plan) run(ctx context.Context, ep transport.Exchanger, sig transport.Signature, in, out []byte, op Op) error {
	var m memories // set piece by piece: a literal is made elsewhere and copied
	m[sched.In].lo, m[sched.In].bytes = p.in.Lo, in
	m[sched.Out].lo, m[sched.Out].bytes = p.out.Lo, out
	m[sched.Scratch] = p.scratch
	if p.shadows && Overlap(in, out) {
		m[sched.In] = p.shadowOf(in)
	}
	for i := range p.steps {
		st := &p.steps[i]
		for i := range st.copies {
			m.copy(&st.copies[i], op, p.cached)
		}
		if len(st.sends)+len(st.recvs) == 0 {
			continue
		}
		st.lay(&m, sig, op)
		err := ep.Exchange(ctx, st.wire)
		if err != nil {
			return &StepError{i, err}
		}
	}
	p.forget()
	return nil
}

// shadowOf returns a copy of in, in memory that the plan keeps.
func (p *Plan) shadowOf(in []byte) memory {
	if p.shadow.bytes == nil {
		p.shadow = memory{p.in.Lo, allocate(len(in))}
	}
	copy(p.shadow.bytes, in)
	return p.shadow
}

// lay puts the step's wire form over memory.
func (st *step) lay(m *memories, sig transport.Signature, op Op) {
	st.wire.Signature = sig
	for i, at := range st.sends {
		st.wire.Sends[i].Data = m.at(at)
	}
	for i := range st.recvs {
		at, r := &st.recvs[i], &st.wire.Recvs[i]
		r.Into = m.at(at.into)
		switch at.how {
		case sched.Left:
			r.Combine, r.Held = op.Left, m.at(at.held)
		case sched.Right:
			r.Combine, r.Held = op.Right, m.at(at.held)
		}
	}
}

// forget lets go of the caller's memory, which a cached plan would keep alive.
func (p *Plan) forget() {
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
type memories [3]memory

func (m *memories) at(p place) []byte {
	if p.lo == p.hi {
		return nil
	}
	b := &m[p.buffer]
	return b.bytes[p.lo-b.lo : p.hi-b.lo : p.hi-b.lo]
}

func (m *memories) copy(c *move, op Op, cached bool) {
	from, to := m.at(c.from), m.at(c.to)
	switch c.how {
	case sched.Left:
		op.Left(to, to, from)
	case sched.Right:
		op.Right(to, to, from)
	default:
		if unsafe.SliceData(from) != unsafe.SliceData(to) {
			transport.Copy(to, from, cached)
		}
	}
}

// Overlap reports whether a and b share memory.
func Overlap(a, b []byte) bool {
	return len(a) > 0 && len(b) > 0 && address(a) < address(b)+uintptr(len(b)) && address(b) < address(a)+uintptr(len(a))
}

// InPlace reports whether in and out lie so that every block that both hold is
// the same memory. That is the one way in which they may overlap.
func (p *Plan) InPlace(in, out []byte) bool {
	return address(in)-uintptr(p.pad.narrow(p.in.Lo)) == address(out)-uintptr(p.pad.narrow(p.out.Lo))
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
