package exec

import (
	"unsafe"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// A Plan is a program compiled for the sizes of one call. It holds everything that a
// run uses but its Memory, so that runs allocate nothing. A plan is for one run at a
// time.
type Plan struct {
	steps     []step
	inLen     int         // bytes of in that a run needs
	outLen    int         // bytes of out that a run needs
	copiesAll bool        // the program copies all of In to all of Out, and does nothing else
	in, out   sched.Range // the bytes of the vector that the rank's In and Out hold
	scratch   sched.Range // the bytes of scratch that a run uses
	memory    *Memory     // holds the scratch, then what the two fields below say
	copyAt    int         // where the copy of In begins, and the memory of other runs ends
	needsCopy bool        // the program reads bytes of In after it has written them in Out
	padding   padding
	temporal  bool // copies keep what they write in cache
	late      lateCopies
	stats     Stats
	short     shortProgram
}

// A shortProgram has room for what a run of a short program writes. Ranks that are goroutines
// run at the same time, and the allocator may put small objects of two of them on one cache
// line, which then goes back and forth in every call. A Plan is longer than the objects for
// which that can be: a test knows.
type shortProgram struct {
	steps [2]step
	sends [2]transport.Send
	recvs [2]transport.Recv
}

// Stats is what one run of a plan takes, on this rank.
type Stats struct {
	Steps    int // steps with a message
	Messages int // messages sent
	Bytes    int // bytes sent
}

// A step is one step of the program. Its wire form lacks only memory.
type step struct {
	copies  []localCopy
	late    bool         // the copies are made while messages are under way
	sends   []byteRange  // of wire.Sends
	targets []recvTarget // of wire.Recvs
	wire    transport.Step
}

// A byteRange is a range of bytes of a buffer, counted from where a run's memory of it begins.
type byteRange struct {
	buffer sched.Buffer
	lo, hi int
}

// A localCopy is a copy within the rank. If it combines, held is the other operand,
// most often the same as to.
type localCopy struct {
	from, to, held byteRange
	how            sched.Combine
}

// A recvTarget is where one of wire.Recvs writes to. Held is into itself unless a
// copy of the same step was fused with the receive.
type recvTarget struct {
	into, held byteRange
	how        sched.Combine
}

func (s *Stats) add(st step) {
	if len(st.sends)+len(st.targets) > 0 {
		s.Steps++
	}
	for i, send := range st.wire.Sends {
		s.Messages += len(send.To)
		s.Bytes += len(send.To) * (st.sends[i].hi - st.sends[i].lo)
	}
}

// Stats returns what one run takes.
func (p *Plan) Stats() Stats { return p.stats }

// InLen returns the bytes of in that Run needs.
func (p *Plan) InLen() int { return p.inLen }

// OutLen returns the bytes of out that Run needs.
func (p *Plan) OutLen() int { return p.outLen }

// Size returns about how many bytes the plan itself takes, without its Memory.
func (p *Plan) Size() int {
	n := int(unsafe.Sizeof(*p)) + cap(p.steps)*int(unsafe.Sizeof(step{}))
	for i := range p.steps {
		st := &p.steps[i]
		n += cap(st.copies) * int(unsafe.Sizeof(localCopy{}))
		n += cap(st.sends) * int(unsafe.Sizeof(byteRange{}))
		n += cap(st.targets) * int(unsafe.Sizeof(recvTarget{}))
		n += cap(st.wire.Recvs) * int(unsafe.Sizeof(transport.Recv{}))
		n += cap(st.wire.Sends) * int(unsafe.Sizeof(transport.Send{}))
		for _, send := range st.wire.Sends {
			n += cap(send.To) * int(unsafe.Sizeof(0))
		}
	}
	return n
}

// divide lays out the memory of a run: scratch, padded parts, and a copy of In.
func (p *Plan) divide(scratch sched.Range) {
	p.scratch = scratch
	p.copyAt = align(scratch.Len())
	if p.padding.gap > 0 {
		p.padding.inAt = p.copyAt
		p.padding.outAt = p.padding.inAt + align(p.in.Len())
		p.copyAt = p.padding.outAt + align(p.out.Len())
	}
}

// copiesInputToOutput reports whether the program copies all of In to all of Out, and does
// nothing else, as those of a single rank do.
func (p *Plan) copiesInputToOutput() bool {
	if len(p.steps) != 1 || len(p.steps[0].copies) != 1 || len(p.steps[0].sends)+len(p.steps[0].targets) > 0 {
		return false
	}
	c := &p.steps[0].copies[0]
	in, out := byteRange{sched.In, 0, p.in.Len()}, byteRange{sched.Out, 0, p.out.Len()}
	return c.how == sched.Replace && c.from == in && c.to == out
}

// UseMemory has the runs of a plan compute in another memory from now on.
func (p *Plan) UseMemory(m *Memory) { p.memory = m }
