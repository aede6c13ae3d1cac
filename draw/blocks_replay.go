package draw

import (
	"cmp"
	"slices"

	"github.com/chorale-go/chorale/sched"
)

// blockContents is the symbolic value of one block of a rank's memory: the given
// block of the In buffers of some ranks, combined. The ranks are sorted if the
// operator commutes, and in operand order otherwise.
type blockContents struct {
	block int
	from  []int
}

func (c blockContents) equal(d blockContents) bool {
	return c.block == d.block && slices.Equal(c.from, d.from)
}

// A location is a block of a rank's memory.
type location struct {
	rank   int
	buffer sched.Buffer
	block  int
}

// replay runs a schedule on symbolic values. It returns the contents of each rank
// before the first step and after every step: the blocks that the rank has just
// received, will still send or combine, or has as its result. Equal blocks in
// several locations count once. The contents of a rank at a barrier are the ranks
// whose arrival it knows.
func replay(s *sched.Schedule) ([][][]blockContents, error) {
	t, err := s.Timeline()
	if err != nil {
		return nil, err
	}
	r := t.Replay()
	if s.Collective == sched.Barrier {
		return barrierKnowledge(s, t, r)
	}
	live := liveLocations(s, t)
	states := [][][]blockContents{contentsOf(s, r, live[0])}
	for step := range t.Steps() {
		if err := r.Step(); err != nil {
			return nil, err
		}
		for _, g := range t.Messages(step) {
			for i := range g.Blocks.Len() {
				live[step+1][location{g.To, g.Dst, g.At + i}] = true
			}
		}
		states = append(states, contentsOf(s, r, live[step+1]))
	}
	return states, nil
}

// liveLocations returns the live locations before the first step and after every
// step, from a backward pass that starts with the results.
func liveLocations(s *sched.Schedule, t *sched.Timeline) []map[location]bool {
	live := map[location]bool{}
	for rank := range s.P {
		extent := s.Extent(sched.Out, rank)
		for b := extent.Lo; b < extent.Hi; b++ {
			if want := s.Expected(rank, b); want.Lo < want.Hi {
				live[location{rank, sched.Out, b}] = true
			}
		}
	}
	all := make([]map[location]bool, t.Steps()+1)
	all[t.Steps()] = live
	for step := t.Steps() - 1; step >= 0; step-- {
		live = cloned(live)
		messages := t.Messages(step)
		for _, m := range messages {
			for i := range m.Blocks.Len() {
				if m.How == sched.Replace {
					delete(live, location{m.To, m.Dst, m.At + i})
				}
			}
		}
		for _, m := range messages {
			for b := m.Blocks.Lo; b < m.Blocks.Hi; b++ {
				live[location{m.From, m.Src, b}] = true
			}
			for i := range m.Blocks.Len() {
				if m.How != sched.Replace && !replacedBefore(messages, m, m.At+i) {
					live[location{m.To, m.Dst, m.At + i}] = true
				}
			}
		}
		for _, c := range slices.Backward(t.Copies(step)) {
			for i := range c.Blocks.Len() {
				dst := location{c.Rank, c.Dst, c.At + i}
				if live[dst] {
					live[location{c.Rank, c.Src, c.Blocks.Lo + i}] = true
				}
				if c.How == sched.Replace {
					delete(live, dst)
				}
			}
		}
		all[step] = live
	}
	return all
}

// replacedBefore reports whether an earlier message of the step replaces the
// block that m combines with.
func replacedBefore(messages []sched.Message, m sched.Message, block int) bool {
	for _, other := range messages {
		if other == m {
			return false
		}
		into := other.Into()
		if other.To == m.To && other.Dst == m.Dst && other.How == sched.Replace && into.Lo <= block && block < into.Hi {
			return true
		}
	}
	return false
}

func cloned(set map[location]bool) map[location]bool {
	all := make(map[location]bool, len(set))
	for at := range set {
		all[at] = true
	}
	return all
}

// contentsOf returns the contents of the locations by rank, each sorted by block
// and then by contributors.
func contentsOf(s *sched.Schedule, r *sched.Replay, locations map[location]bool) [][]blockContents {
	all := make([][]blockContents, s.P)
	for loc := range locations {
		if v := r.Value(loc.rank, loc.buffer, loc.block); v.Defined() {
			all[loc.rank] = append(all[loc.rank], blockContents{v.Block(), v.Ranks()})
		}
	}
	for rank, contents := range all {
		slices.SortFunc(contents, func(a, b blockContents) int {
			return cmp.Or(cmp.Compare(a.block, b.block), slices.Compare(a.from, b.from))
		})
		all[rank] = slices.CompactFunc(contents, blockContents.equal)
	}
	return all
}

// barrierKnowledge returns the ranks whose arrival at the barrier each rank knows,
// before the first step and after every step.
func barrierKnowledge(s *sched.Schedule, t *sched.Timeline, r *sched.Replay) ([][][]blockContents, error) {
	state := func() [][]blockContents {
		all := make([][]blockContents, s.P)
		for rank := range all {
			c := blockContents{}
			for other := range s.P {
				if r.Knows(rank, other) {
					c.from = append(c.from, other)
				}
			}
			all[rank] = []blockContents{c}
		}
		return all
	}
	states := [][][]blockContents{state()}
	for range t.Steps() {
		if err := r.Step(); err != nil {
			return nil, err
		}
		states = append(states, state())
	}
	return states, nil
}
