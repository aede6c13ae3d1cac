package exec

import (
	"unsafe"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// A Plan is a program compiled for the sizes of one call. It holds the scratch
// memory that the program needs, and everything else that a run uses, so that runs
// allocate nothing. A plan is for one run at a time.
type Plan struct {
	steps     []step
	in, out   sched.Range // the bytes of the vector that the rank's In and Out hold
	scratch   memory
	inputCopy memory // stands in for In where In and Out share memory and the program needs both
	needsCopy bool   // the program reads bytes of In after it has written them in Out
	padding   padding
	temporal  bool // copies keep what they write in cache
	stats     Stats
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
	sends   []byteRange  // of wire.Sends
	targets []recvTarget // of wire.Recvs
	wire    transport.Step
}

// A byteRange is a range of bytes of a buffer.
type byteRange struct {
	buffer sched.Buffer
	lo, hi int
}

// A localCopy is a copy within the rank.
type localCopy struct {
	from, to byteRange
	how      sched.Combine
}

// A recvTarget is where one of wire.Recvs writes to. Held is into itself unless a
// copy of the same step was fused with the receive.
type recvTarget struct {
	into, held byteRange
	how        sched.Combine
}

// A memory is a buffer that covers the bytes lo ≤ b < lo+len(bytes) of its kind.
type memory struct {
	lo    int
	bytes []byte
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
func (p *Plan) InLen() int { return p.padding.unpaddedLen(p.in.Len()) }

// OutLen returns the bytes of out that Run needs.
func (p *Plan) OutLen() int { return p.padding.unpaddedLen(p.out.Len()) }

// allocate returns n bytes aligned for any element type.
func allocate(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}
