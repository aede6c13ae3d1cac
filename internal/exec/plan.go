// Package exec carries out one rank's program over one endpoint.
//
// [Bind] turns a program into a [Plan]: every range of blocks becomes a range
// of bytes. [Plan.Run] lays the plan over the caller's memory and does its
// steps. Neither knows what algorithm it is, nor what moves the bytes.
package exec

import (
	"slices"
	"unsafe"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// A Plan is a program bound to sizes. It holds the scratch memory that the
// program needs, and everything else that a run does, so that runs allocate
// nothing. A plan is for one run at a time.
type Plan struct {
	steps   []step
	in, out sched.Range // the bytes of the vector that the rank's In and Out hold
	scratch memory
	shadow  memory // stands in for In where In and Out share memory and the program needs both
	shadows bool   // the program reads of In what it has written to Out
	pad     padding
	cached  bool // what is written is best kept in cache
	stats   Stats
}

// Stats is what one run of a plan takes, on this rank.
type Stats struct {
	Steps    int // steps with a message
	Messages int // messages sent
	Bytes    int // bytes sent
}

// step is one step of the program. Its wire form is complete but for memory.
type step struct {
	copies []move
	sends  []place // memory of wire.Sends
	recvs  []landing
	wire   transport.Step
}

// place is a range of bytes of a buffer.
type place struct {
	buffer sched.Buffer
	lo, hi int
}

// move is a copy within the rank.
type move struct {
	from, to place
	how      sched.Combine
}

// landing is the memory of one of wire.Recvs. Held is into itself unless a copy
// of the same step was fused with the receive.
type landing struct {
	into, held place
	how        sched.Combine
}

// memory is a buffer that covers the bytes lo ≤ b < lo+len(bytes) of its kind.
type memory struct {
	lo    int
	bytes []byte
}

// Bind binds the program of one rank to the layouts of In and Out, which differ
// only for an uneven alltoall; Scratch is laid out as Out. Members gives the
// endpoint's rank for each rank of the schedule; nil means that they are the
// same.
func Bind(s *sched.Schedule, rank int, in, out Layout, members []int) *Plan {
	used := sched.Range{Lo: out.At(s.Scratch)}
	b := binder{layouts: [3]Layout{in, out, out}, members: members, used: &used}
	p := &Plan{in: b.span(sched.In, s.Extent(sched.In, rank)), out: b.span(sched.Out, s.Extent(sched.Out, rank))}
	p.cached = staysInCache(s, p.in.Len()+p.out.Len())
	b.cached = p.cached
	p.pad.set(out)
	program := s.Program(rank)
	p.steps = make([]step, len(program))
	for i, st := range program {
		p.steps[i] = b.step(st)
		p.stats.add(p.steps[i])
	}
	if used.Len() > 0 {
		p.scratch = memory{used.Lo, allocate(used.Len())}
	}
	p.shadows = readsWhatItWrote(program)
	return p
}

func (s *Stats) add(st step) {
	if len(st.sends)+len(st.recvs) > 0 {
		s.Steps++
	}
	for i, send := range st.wire.Sends {
		s.Messages += len(send.To)
		s.Bytes += len(send.To) * (st.sends[i].hi - st.sends[i].lo)
	}
}

// Stats returns what one run takes.
func (p *Plan) Stats() Stats { return p.stats }

// InLen and OutLen return the bytes that Run wants.
func (p *Plan) InLen() int  { return p.pad.narrow(p.in.Len()) }
func (p *Plan) OutLen() int { return p.pad.narrow(p.out.Len()) }

// allocate returns n bytes aligned for any element type.
func allocate(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// A binder turns steps of blocks into steps of bytes.
type binder struct {
	layouts [3]Layout // of In, Out and Scratch
	members []int
	used    *sched.Range // the bytes of scratch that the program touches
	cached  bool         // see Plan
}

func (b *binder) step(st sched.Step) step {
	fused := make([]bool, len(st.Copies))
	var s step
	for k, r := range st.Recvs {
		into := b.place(r.Dst, r.Blocks)
		at := landing{into, into, r.How}
		recv := transport.Recv{From: b.member(r.From), Ordered: st.InTurn(k), Elem: max(1, b.layouts[r.Dst].elem), Temporal: b.cached}
		if i := fusible(st, k); i >= 0 {
			fused[i] = true
			at.held = b.place(st.Copies[i].Src, st.Copies[i].Blocks)
		}
		s.recvs = append(s.recvs, at)
		s.wire.Recvs = append(s.wire.Recvs, recv)
	}
	for i, c := range st.Copies {
		if !fused[i] {
			s.copies = append(s.copies, move{b.place(c.Src, c.Blocks), b.place(c.Dst, c.Into()), c.How})
		}
	}
	for _, send := range st.Sends {
		to := make([]int, len(send.To))
		for i, r := range send.To {
			to[i] = b.member(r)
		}
		s.sends = append(s.sends, b.place(send.Src, send.Blocks))
		s.wire.Sends = append(s.wire.Sends, transport.Send{To: to})
	}
	return s
}

func (b *binder) member(rank int) int {
	if b.members == nil {
		return rank
	}
	return b.members[rank]
}

// span returns the bytes of a range of blocks.
func (b *binder) span(buffer sched.Buffer, r sched.Range) sched.Range {
	l := b.layouts[buffer]
	return sched.Range{Lo: l.At(r.Lo), Hi: l.At(r.Hi)}
}

func (b *binder) place(buffer sched.Buffer, r sched.Range) place {
	span := b.span(buffer, r)
	at := place{buffer, span.Lo, span.Hi}
	if buffer == sched.Scratch && at.lo < at.hi {
		b.used.Lo, b.used.Hi = min(b.used.Lo, at.lo), max(b.used.Hi, at.hi)
	}
	return at
}

// fusible returns which copy of the step only serves to be combined with what
// receive k brings, or -1. Then the receive can read the copy's source, and
// the copy need not be done: a combine of three operands.
func fusible(st sched.Step, k int) int {
	r := st.Recvs[k]
	if r.How == sched.Replace || st.InTurn(k) {
		return -1
	}
	found := -1
	for i, c := range st.Copies {
		switch {
		case c.Dst == r.Dst && c.Into() == r.Blocks && c.How == sched.Replace && found < 0:
			found = i
		case c.Dst == r.Dst && c.Into().Overlaps(r.Blocks), c.Src == r.Dst && c.Blocks.Overlaps(r.Blocks):
			return -1 // another copy writes or reads there as well
		}
	}
	if found < 0 {
		return -1
	}
	c := st.Copies[found]
	for _, later := range st.Copies[found+1:] {
		if later.Dst == c.Src && later.Into().Overlaps(c.Blocks) {
			return -1
		}
	}
	for _, other := range st.Recvs {
		if other.Dst == c.Src && other.Blocks.Overlaps(c.Blocks) {
			return -1 // it may land before the combine reads
		}
	}
	return found
}

// readsWhatItWrote reports whether the program reads a block of In that it may
// by then have written in Out. If not, In and Out may be the same memory. A
// copy of a block of In to its own place in Out changes nothing there.
func readsWhatItWrote(program sched.Program) bool {
	var written []sched.Range
	overlapped := func(r sched.Range) bool { return slices.ContainsFunc(written, r.Overlaps) }
	for _, st := range program {
		for _, c := range st.Copies {
			if c.Src == sched.In && overlapped(c.Blocks) {
				return true
			}
			if c.Dst == sched.Out && !(c.Src == sched.In && c.Blocks == c.Into() && c.How == sched.Replace) {
				written = append(written, c.Into())
			}
		}
		for _, r := range st.Recvs {
			if r.Dst == sched.Out {
				written = join(written, r.Blocks)
			}
		}
		for _, send := range st.Sends {
			if send.Src == sched.In && overlapped(send.Blocks) {
				return true
			}
		}
		for k, r := range st.Recvs {
			i := fusible(st, k)
			if i < 0 || st.Copies[i].Src != sched.In {
				continue
			}
			if c := st.Copies[i]; (c.Dst != sched.Out || c.Blocks != r.Blocks) && overlapped(c.Blocks) {
				return true
			}
		}
	}
	return false
}

// join adds r to ranges, into the last one if they touch: programs mostly
// write one block after the other.
func join(ranges []sched.Range, r sched.Range) []sched.Range {
	if n := len(ranges); n > 0 {
		last := &ranges[n-1]
		if r.Lo <= last.Hi && last.Lo <= r.Hi {
			*last = sched.Range{Lo: min(last.Lo, r.Lo), Hi: max(last.Hi, r.Hi)}
			return ranges
		}
	}
	return append(ranges, r)
}
