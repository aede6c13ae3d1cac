package sim

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/sched"
)

// A programTable is the programs of all ranks in flat lists. It keeps only what
// a simulation needs, because there may be many millions of messages; most of
// the time of a simulation is the memory's latency.
//
// Steps are numbered rank by rank: those of rank r from first[r] to first[r+1].
// Messages are numbered by sender, step, and index in the step, and receives by
// receiver likewise. A step of copies alone is a step of its own only with
// Config.Sync, where it begins when the others begin theirs; otherwise its copies
// belong to the next step.
type programTable struct {
	ranks    int
	first    []int32
	steps    []step // and one more, which ends the last
	messages []message
	recvs    []recv
	lengths  []int // the distinct lengths of messages, in words

	before      []int  // per step: words that copies combine before it; nil if none do
	after       []int  // per rank: words that copies combine after its last step
	moved       []int  // per step, and then per rank after its last step: words that other copies copy, on a Machine; nil if none do
	copiesAfter []bool // per rank: whether it copies after its last step
	copiesAlone bool   // whether there are steps of copies alone

	// On a Machine, the calls that ranks make: before a step, where these are not one before a
	// rank's first step and none before another; and per rank after its last step, nil if none.
	calls      map[int32]int32
	callsAfter []int32

	// Whether a message that holds the ports of its ends has its route, too: all
	// routes have one link, which is that of one sender and one receiver. Each step
	// of a rank then sends to another rank at most once.
	linksFollowPorts bool
}

// A step of one rank. Its messages and receives end where those of the next
// step begin.
type step struct {
	sends, recvs int32
	timelineStep int32 // once begun: the first step of the timeline in which it can begin
}

// A message of a rank's program. When a rank begins the step that sends or
// receives it, and the other end has, the message is matched with its receive:
// the first that is left in the step of those of its sender.
type message struct {
	to   int32  // the receiver; once matched, the complement of its receive; where messages wait, its number in queued: see times
	size uint32 // its index in lengths, above the flags of a message
}

// The flags of a message, which are set once it has been matched or has arrived.
const (
	combines     = 1 << iota // the receiver combines it
	senderLast               // its sender was ready when its receiver was, or later
	lastSent                 // it is what the step of its sender waited for last
	lastReceived             // it is what the step of its receiver waited for last

	flagBits = iota
	flags    = 1<<flagBits - 1
)

func (m *message) combine() bool { return m.size&combines != 0 }

// A recv is a receive: twice its sender, and 1 if it combines; once matched, its
// message and the bit matched.
type recv uint32

const matched recv = 1 << 31

func newRecv(from int, how sched.Combine) recv {
	r := 2 * recv(from)
	if how != sched.Replace {
		r++
	}
	return r
}

// from returns the sender of a receive that is not matched; for any other, what
// is no rank.
func (r recv) from() int32    { return int32(r >> 1) }
func (r recv) message() int32 { return int32(r &^ matched) }

// words returns the length of a message.
func (t *programTable) words(m *message) int { return t.lengths[m.size>>flagBits] }

// newProgramTable collects the programs of all parts.
func newProgramTable(n *network, parts []Part, e estimate, sync bool) (*programTable, error) {
	ranks := n.ranks
	bound := make([]boundPart, len(parts))
	for i, p := range parts {
		bound[i] = bind(p, ranks)
	}
	steps, messages := e.capacities()
	t := &programTable{
		ranks:       ranks,
		first:       make([]int32, 1, ranks+1),
		steps:       makeList[step](1, steps+1),
		messages:    makeList[message](0, messages),
		recvs:       makeList[recv](0, messages),
		after:       make([]int, ranks),
		copiesAfter: make([]bool, ranks),

		linksFollowPorts: !n.allPort,
	}
	b := tableBuilder{programTable: t, network: n, sync: sync, indexOf: make(map[int]uint32)}
	b.copies = n.machine != nil && n.machine.Copy != nil
	var movedAfter []int
	for rank := range ranks {
		for i := range bound {
			if n.machine != nil && bound[i].rankOf(rank) >= 0 {
				b.called++
			}
			if err := b.add(rank, &bound[i]); err != nil {
				return nil, err
			}
		}
		t.first = append(t.first, int32(len(t.steps)-1))
		t.after[rank], t.copiesAfter[rank] = b.combined, b.copied
		if b.copies {
			movedAfter = append(movedAfter, b.movedNow)
		}
		if b.called > 0 {
			if t.callsAfter == nil {
				t.callsAfter = make([]int32, ranks)
			}
			t.callsAfter[rank] = b.called
		}
		b.combined, b.copied, b.movedNow, b.called = 0, false, 0, 0
	}
	if t.moved != nil || slices.Max(append(movedAfter, 0)) > 0 {
		t.moved = slices.Concat(t.moved, make([]int, len(t.steps)-1-len(t.moved)), movedAfter)
	}
	return t, nil
}

// sent returns the range of messages that a step sends, and received the range
// of its receives.
func (t *programTable) sent(step int32) (lo, hi int32) {
	return t.steps[step].sends, t.steps[step+1].sends
}

func (t *programTable) received(step int32) (lo, hi int32) {
	return t.steps[step].recvs, t.steps[step+1].recvs
}

// sentBy returns the range of all messages that a rank sends, and receivedBy the
// range of all its receives.
func (t *programTable) sentBy(rank int32) (lo, hi int32) {
	return t.steps[t.first[rank]].sends, t.steps[t.first[rank+1]].sends
}

func (t *programTable) receivedBy(rank int32) (lo, hi int32) {
	return t.steps[t.first[rank]].recvs, t.steps[t.first[rank+1]].recvs
}

// match makes a receive that of a message.
func (t *programTable) match(message, receive int32) {
	m, r := &t.messages[message], &t.recvs[receive]
	m.to = ^receive
	m.size |= uint32(*r) & combines
	*r = matched | recv(message)
}

// unmatch undoes all matches, and clears all flags.
func (t *programTable) unmatch() {
	all := t.ends()
	for i := range t.messages {
		m := &t.messages[i]
		if m.to < 0 {
			t.recvs[^m.to] = 2*recv(all[i].from) + recv(m.size&combines)
			m.to = all[i].to
		}
		m.size &^= flags
	}
}

// An ends is the two ranks of a message.
type ends struct{ from, to int32 }

// ends returns the ends of every message.
func (t *programTable) ends() []ends {
	all := make([]ends, len(t.messages))
	t.findEnds(func(i int32) *ends { return &all[i] })
	return all
}

// findEnds stores the ends of every message where a function says.
func (t *programTable) findEnds(of func(message int32) *ends) {
	for rank := range int32(t.ranks) {
		lo, hi := t.sentBy(rank)
		for i := lo; i < hi; i++ {
			e := of(i)
			e.from = rank
			if to := t.messages[i].to; to >= 0 {
				e.to = to
			}
		}
		lo, hi = t.receivedBy(rank)
		for _, r := range t.recvs[lo:hi] {
			if r&matched != 0 {
				of(r.message()).to = rank
			}
		}
	}
}

// A boundPart is a part, and the mapping between its ranks and words and those
// of the whole simulation.
type boundPart struct {
	Part
	rankIn []int32         // per rank of the simulation: its rank in the schedule, or -1; nil if the two are equal
	blocks sched.Partition // in words
}

func bind(p Part, ranks int) boundPart {
	b := boundPart{Part: p, blocks: p.Schedule.Partition(p.Words)}
	if p.Ranks != nil {
		b.rankIn = slices.Repeat([]int32{-1}, ranks)
		for i, r := range p.Ranks {
			b.rankIn[r] = int32(i)
		}
	}
	return b
}

// program returns the program of a rank of the simulation, which is empty if
// the rank has no part in the schedule. It is valid until the next use of the
// builder.
func (p *boundPart) program(reused *sched.Builder, rank int) sched.Program {
	if rank = p.rankOf(rank); rank < 0 {
		return nil
	}
	return p.Schedule.Make(reused, rank)
}

// rankOf returns the rank in the schedule of a rank of the simulation, or -1 if it has no part
// in the schedule.
func (p *boundPart) rankOf(rank int) int {
	switch {
	case p.rankIn != nil:
		return int(p.rankIn[rank])
	case rank >= p.Schedule.P:
		return -1
	}
	return rank
}

// rank returns the rank of the simulation that runs a rank of the schedule.
func (p *boundPart) rank(peer int) int {
	if p.Ranks == nil {
		return peer
	}
	return p.Ranks[peer]
}

// A tableBuilder fills a table.
type tableBuilder struct {
	*programTable
	network  *network
	builder  sched.Builder // for the programs
	sync     bool
	indexOf  map[int]uint32 // of each length in lengths
	words    int            // the last length,
	size     uint32         // and the size of its messages
	combined int            // words that copies have combined since the last step
	copied   bool           // whether there were copies since the last step
	copies   bool           // whether copies that replace take time
	movedNow int            // words that those have copied since the last step
	called   int32          // calls that the rank has begun since the last step
	lastStep []int32        // per rank: the last step that sends to it, of those with several messages; nil before the first
}

// add appends a rank's program of one part.
func (b *tableBuilder) add(rank int, p *boundPart) error {
	for _, step := range p.program(&b.builder, rank) {
		for i := range step.Copies {
			c := &step.Copies[i]
			b.copied = true
			if c.How != sched.Replace {
				b.combined += p.blocks.Len(c.Blocks)
			}
		}
		if b.copies {
			b.movedNow += p.movedWords(step)
		}
		if len(step.Sends)+len(step.Recvs) == 0 {
			if !b.sync {
				continue
			}
			b.copiesAlone = true
		}
		for i := range step.Sends {
			send := &step.Sends[i]
			size := b.sizeOf(p.blocks.Len(send.Blocks))
			for _, to := range send.To {
				if to < 0 || to >= p.Schedule.P {
					return fmt.Errorf("rank %d sends to rank %d of %d", rank, to, p.Schedule.P)
				}
				at := p.rank(to)
				if at == rank {
					return fmt.Errorf("rank %d sends to itself: want a copy", rank)
				}
				b.messages = append(b.messages, message{to: int32(at), size: size})
			}
		}
		for i := range step.Recvs {
			r := &step.Recvs[i]
			if r.From < 0 || r.From >= p.Schedule.P {
				return fmt.Errorf("rank %d receives from rank %d of %d", rank, r.From, p.Schedule.P)
			}
			b.recvs = append(b.recvs, newRecv(p.rank(r.From), r.How))
		}
		b.endStep(rank)
	}
	return nil
}

// movedWords returns the words of the copies of a step that replace and are made: those that
// only provide the operand of a receive are not, nor is one within the one buffer of a
// broadcast.
func (p *boundPart) movedWords(step sched.Step) (words int) {
	for i := range step.Copies {
		c := &step.Copies[i]
		inPlace := p.Schedule.Collective == sched.Bcast && c.Src == sched.In && c.Dst == sched.Out && c.Blocks == c.Into()
		if c.How == sched.Replace && !inPlace {
			words += p.blocks.Len(c.Blocks)
		}
	}
	for k := range step.Recvs {
		if i := step.FusibleCopy(k); i >= 0 {
			words -= p.blocks.Len(step.Copies[i].Blocks)
		}
	}
	return words
}

// sizeOf returns the size of a message without flags.
func (b *tableBuilder) sizeOf(words int) uint32 {
	if words == b.words && len(b.lengths) > 0 {
		return b.size
	}
	i, ok := b.indexOf[words]
	if !ok {
		i = uint32(len(b.lengths))
		b.indexOf[words] = i
		b.lengths = append(b.lengths, words)
	}
	b.words, b.size = words, i<<flagBits
	return b.size
}

func (b *tableBuilder) endStep(rank int) {
	if b.combined > 0 && b.before == nil {
		b.before = make([]int, len(b.steps)-1, cap(b.steps))
	}
	if b.before != nil {
		b.before = append(b.before, b.combined)
	}
	if b.movedNow > 0 && b.moved == nil {
		b.moved = make([]int, len(b.steps)-1, cap(b.steps))
	}
	if b.moved != nil {
		b.moved = append(b.moved, b.movedNow)
	}
	b.combined, b.copied, b.movedNow = 0, false, 0
	if b.network.machine != nil {
		b.endCalls(rank)
	}
	if b.linksFollowPorts {
		b.linksFollowPorts = b.sendsOverOwnLinks(rank)
	}
	b.steps = append(b.steps, step{sends: int32(len(b.messages)), recvs: int32(len(b.recvs))})
}

// endCalls stores the calls that a rank has begun before its current step.
func (b *tableBuilder) endCalls(rank int) {
	step := int32(len(b.steps) - 1)
	if b.called != b.callsBefore(step, int32(rank)) {
		if b.calls == nil {
			b.calls = make(map[int32]int32)
		}
		b.calls[step] = b.called
	}
	b.called = 0
}

// sendsOverOwnLinks reports whether all messages of the current step of a rank go
// to different ranks, each over a single link.
func (b *tableBuilder) sendsOverOwnLinks(rank int) bool {
	n := int32(len(b.steps))
	sends := b.messages[b.steps[n-1].sends:]
	if len(sends) > 1 && b.lastStep == nil {
		b.lastStep = make([]int32, b.ranks)
	}
	for i := range sends {
		to := sends[i].to
		if len(b.network.route(int32(rank), to)) != 1 {
			return false
		}
		if len(sends) > 1 {
			if b.lastStep[to] == n {
				return false
			}
			b.lastStep[to] = n
		}
	}
	return true
}
