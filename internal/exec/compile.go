package exec

import (
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
}

// Compile compiles the program of one rank. It takes time proportional to the
// program's length.
func Compile(s *sched.Schedule, config Config) *Plan {
	rank := config.Rank
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
	}
	program := s.Program(rank)
	p.steps = make([]step, len(program))
	for i, st := range program {
		p.steps[i] = c.step(st)
		p.stats.add(p.steps[i])
	}
	if c.scratch.Len() > 0 {
		p.scratch = memory{c.scratch.Lo, allocate(c.scratch.Len())}
	}
	p.needsCopy = readsWrittenInput(program)
	return p
}

// A compiler turns steps of blocks into steps of bytes.
type compiler struct {
	Config
	layouts [3]Layout   // by buffer
	scratch sched.Range // the bytes of scratch that the program touches
}

func (c *compiler) step(st sched.Step) step {
	fused := make([]bool, len(st.Copies))
	var s step
	for k, r := range st.Recvs {
		into := c.bytes(r.Dst, r.Blocks)
		target := recvTarget{into, into, r.How}
		recv := transport.Recv{From: c.member(r.From), Ordered: st.Ordered(k), Elem: max(1, c.layouts[r.Dst].elem), Temporal: c.Temporal}
		if i := fusibleCopy(st, k); i >= 0 {
			fused[i] = true
			target.held = c.bytes(st.Copies[i].Src, st.Copies[i].Blocks)
		}
		s.targets = append(s.targets, target)
		s.wire.Recvs = append(s.wire.Recvs, recv)
	}
	for i, cp := range st.Copies {
		if !fused[i] {
			s.copies = append(s.copies, localCopy{c.bytes(cp.Src, cp.Blocks), c.bytes(cp.Dst, cp.Into()), cp.How})
		}
	}
	for _, send := range st.Sends {
		to := make([]int, len(send.To))
		for i, r := range send.To {
			to[i] = c.member(r)
		}
		s.sends = append(s.sends, c.bytes(send.Src, send.Blocks))
		s.wire.Sends = append(s.wire.Sends, transport.Send{To: to})
	}
	return s
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
