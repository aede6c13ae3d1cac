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
// Messages are numbered by sender, step, and index in the step. A step of copies
// alone is a step of its own only with Config.Sync, where it begins when the
// others begin theirs; otherwise its copies belong to the next step.
type programTable struct {
	ranks     int
	first     []int32
	steps     []step // and one more, which ends the last
	messages  []message
	messageOf []int32 // per receive, by receiver, step, and index in the step: its message
	lengths   []int   // the distinct lengths of messages, in words

	before      []int  // per step: words that copies combine before it; nil if none do
	after       []int  // per rank: words that copies combine after its last step
	copiesAfter []bool // per rank: whether it copies after its last step
	copiesAlone bool   // whether there are steps of copies alone
}

// A step of one rank. Its messages and receives end where those of the next
// step begin.
type step struct {
	sends, recvs int32
	cause        int32   // once solved: the last of its messages to arrive
	end          float64 // once solved: when it is done
}

type message struct {
	from, to     int32
	timelineStep int32  // 1 + the step of the timeline that it belongs to, once known; see contentionFree
	size         uint32 // twice its index in lengths, and 1 if the receiver combines it
}

func (m *message) combine() bool          { return m.size&1 != 0 }
func (m *message) ends() (from, to int32) { return m.from, m.to }

// words returns the length of a message.
func (t *programTable) words(m *message) int { return t.lengths[m.size>>1] }

// newProgramTable collects the programs of all parts, and finds the message of
// each receive.
func newProgramTable(ranks int, parts []Part, e estimate, sync bool) (*programTable, error) {
	bound := make([]boundPart, len(parts))
	for i, p := range parts {
		bound[i] = bind(p, ranks)
	}
	steps, messages := e.capacities()
	t := &programTable{
		ranks:       ranks,
		first:       make([]int32, 1, ranks+1),
		steps:       make([]step, 1, steps+1),
		messages:    make([]message, 0, messages),
		after:       make([]int, ranks),
		copiesAfter: make([]bool, ranks),
	}
	b := tableBuilder{programTable: t, sync: sync, recvs: make([]recv, 0, messages), indexOf: make(map[int]uint32)}
	for rank := range ranks {
		for i := range bound {
			if err := b.add(rank, &bound[i]); err != nil {
				return nil, err
			}
		}
		t.first = append(t.first, int32(len(t.steps)-1))
		t.after[rank], t.copiesAfter[rank] = b.combined, b.copied
		b.combined, b.copied = 0, false
	}
	return t, b.match()
}

// sent returns the range of messages that a step sends, and received the range
// of its receives.
func (t *programTable) sent(step int32) (lo, hi int32) {
	return t.steps[step].sends, t.steps[step+1].sends
}

func (t *programTable) received(step int32) (lo, hi int32) {
	return t.steps[step].recvs, t.steps[step+1].recvs
}

// lastBefore returns the message that let a step of copies alone begin: the one
// that all ranks waited for, or if nothing took time the last of the rank's own;
// -1 if there is none.
func (t *programTable) lastBefore(step, rank, awaited int32) int32 {
	if awaited < 0 && step > t.first[rank] {
		return t.steps[step-1].cause
	}
	return awaited
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
// the rank has no part in the schedule.
func (p *boundPart) program(rank int) sched.Program {
	if p.rankIn != nil {
		rank = int(p.rankIn[rank])
	}
	if rank < 0 || rank >= p.Schedule.P {
		return nil
	}
	return p.Schedule.Program(rank)
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
	sync     bool
	recvs    []recv
	indexOf  map[int]uint32 // of each length in lengths
	combined int            // words that copies have combined since the last step
	copied   bool           // whether there were copies since the last step
}

// A recv is a receive: its ranks, and whether it combines.
type recv struct {
	to     int32
	source uint32 // twice the sender, and 1 if the receive combines
}

func newRecv(from, to int, how sched.Combine) recv {
	r := recv{int32(to), 2 * uint32(from)}
	if how != sched.Replace {
		r.source++
	}
	return r
}

func (r *recv) ends() (from, to int32) { return int32(r.source >> 1), r.to }
func (r *recv) combine() uint32        { return r.source & 1 }

// add appends a rank's program of one part.
func (b *tableBuilder) add(rank int, p *boundPart) error {
	for _, step := range p.program(rank) {
		for _, c := range step.Copies {
			b.copied = true
			if c.How != sched.Replace {
				b.combined += p.blocks.Len(c.Blocks)
			}
		}
		if len(step.Sends)+len(step.Recvs) == 0 {
			if !b.sync {
				continue
			}
			b.copiesAlone = true
		}
		for _, send := range step.Sends {
			size := b.size(p.blocks.Len(send.Blocks))
			for _, to := range send.To {
				if to < 0 || to >= p.Schedule.P {
					return fmt.Errorf("rank %d sends to rank %d of %d", rank, to, p.Schedule.P)
				}
				if p.rank(to) == rank {
					return fmt.Errorf("rank %d sends to itself: want a copy", rank)
				}
				b.messages = append(b.messages, message{from: int32(rank), to: int32(p.rank(to)), size: size})
			}
		}
		for _, r := range step.Recvs {
			if r.From < 0 || r.From >= p.Schedule.P {
				return fmt.Errorf("rank %d receives from rank %d of %d", rank, r.From, p.Schedule.P)
			}
			b.recvs = append(b.recvs, newRecv(p.rank(r.From), rank, r.How))
		}
		b.endStep()
	}
	return nil
}

// size returns twice the index of a length in lengths.
func (b *tableBuilder) size(words int) uint32 {
	i, ok := b.indexOf[words]
	if !ok {
		i = uint32(len(b.lengths))
		b.indexOf[words] = i
		b.lengths = append(b.lengths, words)
	}
	return 2 * i
}

func (b *tableBuilder) endStep() {
	if b.combined > 0 && b.before == nil {
		b.before = make([]int, len(b.steps)-1, cap(b.steps))
	}
	if b.before != nil {
		b.before = append(b.before, b.combined)
	}
	b.combined, b.copied = 0, false
	b.steps = append(b.steps, step{sends: int32(len(b.messages)), recvs: int32(len(b.recvs))})
}

// match gives every receive its message.
func (b *tableBuilder) match() error {
	b.messageOf = make([]int32, len(b.recvs))
	for i, k := range sched.Match(b.ranks, b.messages, (*message).ends, b.recvs, (*recv).ends) {
		switch {
		case k < 0:
			m := &b.messages[i]
			return fmt.Errorf("the programs do not fit together: rank %d sends a message that rank %d does not receive", m.from, m.to)
		case i < 0:
			from, to := b.recvs[k].ends()
			return fmt.Errorf("the programs do not fit together: rank %d awaits a message of rank %d that is not sent", to, from)
		}
		b.messageOf[k] = int32(i)
		b.messages[i].size |= b.recvs[k].combine()
	}
	return nil
}
