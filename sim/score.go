package sim

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/sched"
)

// A score is the programs of all ranks, flat: what a simulation needs of them
// and no more, since there may be many millions of messages. What belongs
// together lies together, because the time goes into fetching it.
//
// Steps are numbered rank by rank, those of rank r from first[r] to first[r+1].
// Messages are numbered by sender, step, and place in the step. A step of
// copies alone is none: it is part of the next.
type score struct {
	ranks    int
	first    []int32
	steps    []step // and one more, which ends the last
	messages []message
	meets    []int32 // per receive, by receiver, step, and place in the step: its message
	lengths  []int   // the words that messages have; there are few such numbers

	before  []int  // per step: words that copies combine before it; nil if none do
	tail    []int  // per rank: words that copies combine after its last step
	copying []bool // per rank: whether it copies after its last step
}

// A step of one rank. Its messages and receives end where those of the next
// step begin.
type step struct {
	sends, recvs int32
	cause        int32   // of its messages the last to arrive, once that is known
	end          float64 // when it is done, once that is known
}

type message struct {
	from, to int32
	round    int32  // 1 + the step that it belongs to; see rounds
	size     uint32 // twice its place in lengths, and 1 if the receiver combines it
}

func (m *message) combine() bool          { return m.size&1 != 0 }
func (m *message) ends() (from, to int32) { return m.from, m.to }

// words returns the length of a message.
func (s *score) words(m *message) int { return s.lengths[m.size>>1] }

// newScore collects the programs of all parts, and finds each receive its
// message.
func newScore(ranks int, parts []Part, e estimate) (*score, error) {
	players := make([]player, len(parts))
	for i, p := range parts {
		players[i] = newPlayer(p, ranks)
	}
	steps, messages := e.capacities()
	s := &score{
		ranks:    ranks,
		first:    make([]int32, 1, ranks+1),
		steps:    make([]step, 1, steps+1),
		messages: make([]message, 0, messages),
		tail:     make([]int, ranks),
		copying:  make([]bool, ranks),
	}
	c := collector{score: s, recvs: make([]recv, 0, messages), known: make(map[int]uint32)}
	for rank := range ranks {
		for i := range players {
			if err := c.add(rank, &players[i]); err != nil {
				return nil, err
			}
		}
		s.first = append(s.first, int32(len(s.steps)-1))
		s.tail[rank], s.copying[rank] = c.pending, c.copies
		c.pending, c.copies = 0, false
	}
	return s, c.match()
}

// sent returns the range of messages of a step, and received that of its
// receives.
func (s *score) sent(step int32) (lo, hi int32) { return s.steps[step].sends, s.steps[step+1].sends }
func (s *score) received(step int32) (lo, hi int32) {
	return s.steps[step].recvs, s.steps[step+1].recvs
}

// A player is a part and how its numbers become those of the whole.
type player struct {
	Part
	seat   []int32         // per rank of the whole: its rank in the schedule, or -1; nil if they are the same
	blocks sched.Partition // in words
}

func newPlayer(p Part, ranks int) player {
	pl := player{Part: p, blocks: p.Schedule.Partition(p.Words)}
	if p.Ranks != nil {
		pl.seat = slices.Repeat([]int32{-1}, ranks)
		for i, r := range p.Ranks {
			pl.seat[r] = int32(i)
		}
	}
	return pl
}

// program returns a rank's part, empty if it has none.
func (p *player) program(rank int) sched.Program {
	if p.seat != nil {
		rank = int(p.seat[rank])
	}
	if rank < 0 || rank >= p.Schedule.P {
		return nil
	}
	return p.Schedule.Program(rank)
}

// rank returns the rank of the whole that plays a rank of the schedule.
func (p *player) rank(peer int) int {
	if p.Ranks == nil {
		return peer
	}
	return p.Ranks[peer]
}

// A collector fills a score.
type collector struct {
	*score
	recvs   []recv
	known   map[int]uint32 // the place of each length
	pending int            // words that copies have combined since the last step
	copies  bool           // whether there were copies since the last step
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

// add appends one part's program of a rank.
func (c *collector) add(rank int, p *player) error {
	for _, step := range p.program(rank) {
		for _, copied := range step.Copies {
			c.copies = true
			if copied.How != sched.Replace {
				c.pending += p.blocks.Len(copied.Blocks)
			}
		}
		if len(step.Sends)+len(step.Recvs) == 0 {
			continue
		}
		for _, send := range step.Sends {
			size := c.size(p.blocks.Len(send.Blocks))
			for _, to := range send.To {
				if to < 0 || to >= p.Schedule.P {
					return fmt.Errorf("rank %d sends to rank %d of %d", rank, to, p.Schedule.P)
				}
				if p.rank(to) == rank {
					return fmt.Errorf("rank %d sends to itself: want a copy", rank)
				}
				c.messages = append(c.messages, message{from: int32(rank), to: int32(p.rank(to)), size: size})
			}
		}
		for _, r := range step.Recvs {
			if r.From < 0 || r.From >= p.Schedule.P {
				return fmt.Errorf("rank %d receives from rank %d of %d", rank, r.From, p.Schedule.P)
			}
			c.recvs = append(c.recvs, newRecv(p.rank(r.From), rank, r.How))
		}
		c.endStep()
	}
	return nil
}

// size returns twice the place of a length in the list.
func (c *collector) size(words int) uint32 {
	place, ok := c.known[words]
	if !ok {
		place = uint32(len(c.lengths))
		c.known[words] = place
		c.lengths = append(c.lengths, words)
	}
	return 2 * place
}

func (c *collector) endStep() {
	if c.pending > 0 && c.before == nil {
		c.before = make([]int, len(c.steps)-1, cap(c.steps))
	}
	if c.before != nil {
		c.before = append(c.before, c.pending)
	}
	c.pending, c.copies = 0, false
	c.steps = append(c.steps, step{sends: int32(len(c.messages)), recvs: int32(len(c.recvs))})
}

// match gives every receive its message.
func (c *collector) match() error {
	c.meets = make([]int32, len(c.recvs))
	for i, k := range sched.Match(c.ranks, c.messages, (*message).ends, c.recvs, (*recv).ends) {
		switch {
		case k < 0:
			m := &c.messages[i]
			return fmt.Errorf("the programs do not fit together: rank %d sends a message that rank %d does not receive", m.from, m.to)
		case i < 0:
			from, to := c.recvs[k].ends()
			return fmt.Errorf("the programs do not fit together: rank %d awaits a message of rank %d that is not sent", to, from)
		}
		c.meets[k] = int32(i)
		c.messages[i].size |= c.recvs[k].combine()
	}
	return nil
}
