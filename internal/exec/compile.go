package exec

import (
	"slices"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// A Config is what a plan depends on besides the schedule.
type Config struct {
	Rank    int
	Members []int // the endpoint's rank of each rank of the schedule; nil if they are the same

	// In and Out are the layouts of the two buffers. They differ only for an
	// alltoall whose parts differ in length. Scratch is laid out as Out.
	In, Out Layout

	// Temporal says that received and copied bytes are best kept in cache: see
	// transport.Recv.
	Temporal bool

	// Deferred says that the operation is not called inside of Exchange, because it
	// may panic, call the endpoint, or never return. Incoming bytes are received into
	// memory of their own, and combined when the Exchange is over.
	Deferred bool

	// Memory is what runs of the plan compute in; nil for one of its own. Plans that
	// never run at the same time may share one.
	Memory *Memory
}

// Compile compiles the program of one rank. It takes time proportional to the
// program's length.
func Compile(s *sched.Schedule, config Config) *Plan {
	rank := config.Rank
	if config.Memory == nil {
		config.Memory = new(Memory)
	}
	c := compiler{
		Config:  config,
		layouts: [3]Layout{sched.In: config.In, sched.Out: config.Out, sched.Scratch: config.Out},
		scratch: sched.Range{Lo: config.Out.At(s.Scratch)},
	}
	p := &Plan{
		in:       config.In.Range(s.Extent(sched.In, rank)),
		out:      config.Out.Range(s.Extent(sched.Out, rank)),
		padding:  newPadding(config.Out),
		temporal: config.Temporal,
		memory:   config.Memory,
	}
	p.inLen, p.outLen = p.padding.unpaddedLen(p.in.Len()), p.padding.unpaddedLen(p.out.Len())
	program := s.Program(rank)
	sends, recvs := 0, 0
	for _, st := range program {
		sends, recvs = sends+len(st.Sends), recvs+len(st.Recvs)
	}
	p.steps = room(p.short.steps[:], len(program)+1)
	c.sends, c.recvs = room(p.short.sends[:], sends), room(p.short.recvs[:], recvs)
	for _, st := range program {
		p.steps = append(p.steps, c.step(st))
	}
	if len(c.deferred) > 0 {
		p.steps = append(p.steps, step{copies: c.deferred})
	}
	c.scratch.Hi = max(c.scratch.Lo, c.scratch.Hi)
	c.place(p.steps, [...]int{sched.In: p.in.Lo, sched.Out: p.out.Lo, sched.Scratch: c.scratch.Lo})
	for i := range p.steps {
		p.steps[i].wire.Index = i
		p.stats.add(p.steps[i])
	}
	p.needsCopy = readsWrittenInput(program)
	p.copiesAll = p.copiesInputToOutput()
	p.divide(c.scratch)
	return p
}

// A compiler turns steps of blocks into steps of bytes.
type compiler struct {
	Config
	layouts  [3]Layout   // by buffer
	scratch  sched.Range // the bytes of scratch that the program touches
	received int         // the most bytes that a step receives to be combined later
	deferred []localCopy // what the next step begins with: see deferRecv

	sends []transport.Send // of all steps
	recvs []transport.Recv
}

// room returns an empty slice with room for n values: the array, if it is long enough.
func room[T any](array []T, n int) []T {
	if n <= len(array) {
		return array[:0]
	}
	return make([]T, 0, n)
}

func (c *compiler) step(st sched.Step) step {
	fused := make([]bool, len(st.Copies))
	s := step{copies: c.deferred}
	c.deferred = nil
	received := 0
	for k, r := range st.Recvs {
		into := c.bytes(r.Dst, r.Blocks)
		target := recvTarget{into, into, r.How}
		recv := transport.Recv{From: c.member(r.From), Ordered: st.Ordered(k), Elem: max(1, c.layouts[r.Dst].elem), Temporal: c.Temporal}
		if i := st.FusibleCopy(k); i >= 0 {
			fused[i] = true
			target.held = c.bytes(st.Copies[i].Src, st.Copies[i].Blocks)
		}
		if c.Deferred && (r.How != sched.Replace || recv.Ordered) {
			recv.Ordered, recv.Temporal = false, true
			target = c.deferRecv(target, &received)
		}
		s.targets = append(s.targets, target)
		c.recvs = append(c.recvs, recv)
	}
	s.wire.Recvs = slices.Clip(c.recvs[len(c.recvs)-len(st.Recvs):])
	for i, cp := range st.Copies {
		if !fused[i] {
			to := c.bytes(cp.Dst, cp.Into())
			s.copies = append(s.copies, localCopy{c.bytes(cp.Src, cp.Blocks), to, to, cp.How})
		}
	}
	for _, send := range st.Sends {
		to := make([]int, len(send.To))
		for i, r := range send.To {
			to[i] = c.member(r)
		}
		s.sends = append(s.sends, c.bytes(send.Src, send.Blocks))
		c.sends = append(c.sends, transport.Send{To: to})
	}
	s.wire.Sends = slices.Clip(c.sends[len(c.sends)-len(st.Sends):])
	s.late = s.mayCopyLate()
	return s
}

// received is the buffer of bytes that are received to be combined later. It lies
// behind the scratch: see place.
const received = sched.Scratch + 1

// deferRecv makes of a receive one that lands in memory of its own, and a copy at the
// beginning of the next step that combines what was received. The copies of a step are
// done in the order listed, before anything is sent. At counts the bytes that the step
// receives so.
func (c *compiler) deferRecv(t recvTarget, at *int) recvTarget {
	n := t.into.hi - t.into.lo
	landed := byteRange{received, *at, *at + n}
	*at += align(n)
	c.received = max(c.received, *at)
	c.deferred = append(c.deferred, localCopy{landed, t.into, t.held, t.how})
	return recvTarget{landed, landed, sched.Replace}
}

// place makes all ranges begin where the memory of their buffers does, which is at origin,
// and moves the received bytes behind the scratch, now that the length of that is known.
func (c *compiler) place(steps []step, origin [3]int) {
	at := align(c.scratch.Len())
	place := func(r *byteRange) {
		if r.buffer == received {
			*r = byteRange{sched.Scratch, at + r.lo, at + r.hi}
			return
		}
		r.lo, r.hi = r.lo-origin[r.buffer], r.hi-origin[r.buffer]
	}
	for i := range steps {
		for k := range steps[i].sends {
			place(&steps[i].sends[k])
		}
		for k := range steps[i].targets {
			place(&steps[i].targets[k].into)
			place(&steps[i].targets[k].held)
		}
		for k := range steps[i].copies {
			place(&steps[i].copies[k].from)
			place(&steps[i].copies[k].to)
			place(&steps[i].copies[k].held)
		}
	}
	if c.received > 0 {
		c.scratch.Hi = c.scratch.Lo + at + c.received
	}
}

func (c *compiler) member(rank int) int {
	if c.Members == nil {
		return rank
	}
	return c.Members[rank]
}

// bytes returns the bytes of a range of blocks.
func (c *compiler) bytes(buffer sched.Buffer, r sched.Range) byteRange {
	b := c.layouts[buffer].Range(r)
	if buffer == sched.Scratch && b.Lo < b.Hi {
		c.scratch.Lo, c.scratch.Hi = min(c.scratch.Lo, b.Lo), max(c.scratch.Hi, b.Hi)
	}
	return byteRange{buffer, b.Lo, b.Hi}
}
