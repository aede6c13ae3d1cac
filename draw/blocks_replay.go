package draw

import (
	"cmp"
	"slices"

	"github.com/chorale-go/chorale/sched"
)

// A holding is what one block of a rank's memory is made of: block Block of the
// In of the ranks From, combined. Where the operator commutes the ranks are
// sorted, else they stand in operand order.
type holding struct {
	block int
	from  []int
}

func (h holding) equal(g holding) bool { return h.block == g.block && slices.Equal(h.from, g.from) }

// A spot is a block of a rank's memory.
type spot struct {
	rank   int
	buffer sched.Buffer
	block  int
}

// histories replays a schedule on symbols, and returns what each rank holds
// before the first step and after each: of its memory that which it has just
// received, will still send or combine, or has as its result. What lies in
// several places counts once. For a barrier it is whose arrival a rank has heard of.
func histories(s *sched.Schedule) ([][][]holding, error) {
	t, err := s.Timeline()
	if err != nil {
		return nil, err
	}
	r := t.Replay()
	if s.Collective == sched.Barrier {
		return rumours(s, t, r)
	}
	alive := needed(s, t)
	states := [][][]holding{heldIn(s, r, alive[0])}
	for step := range t.Steps() {
		if err := r.Step(); err != nil {
			return nil, err
		}
		for _, g := range t.Messages(step) {
			for i := range g.Blocks.Len() {
				alive[step+1][spot{g.To, g.Dst, g.At + i}] = true
			}
		}
		states = append(states, heldIn(s, r, alive[step+1]))
	}
	return states, nil
}

// needed returns the places whose contents matter before the first step and
// after each, going back from the results.
func needed(s *sched.Schedule, t *sched.Timeline) []map[spot]bool {
	live := map[spot]bool{}
	for rank := range s.P {
		extent := s.Extent(sched.Out, rank)
		for b := extent.Lo; b < extent.Hi; b++ {
			if want := s.Expected(rank, b); want.Lo < want.Hi {
				live[spot{rank, sched.Out, b}] = true
			}
		}
	}
	alive := make([]map[spot]bool, t.Steps()+1)
	alive[t.Steps()] = live
	for step := t.Steps() - 1; step >= 0; step-- {
		live = cloned(live)
		messages := t.Messages(step)
		for _, m := range messages {
			for i := range m.Blocks.Len() {
				if m.How == sched.Replace {
					delete(live, spot{m.To, m.Dst, m.At + i})
				}
			}
		}
		for _, m := range messages {
			for b := m.Blocks.Lo; b < m.Blocks.Hi; b++ {
				live[spot{m.From, m.Src, b}] = true
			}
			for i := range m.Blocks.Len() {
				if m.How != sched.Replace && !replacedBefore(messages, m, m.At+i) {
					live[spot{m.To, m.Dst, m.At + i}] = true
				}
			}
		}
		for _, c := range slices.Backward(t.Copies(step)) {
			for i := range c.Blocks.Len() {
				at := spot{c.Rank, c.Dst, c.At + i}
				if live[at] {
					live[spot{c.Rank, c.Src, c.Blocks.Lo + i}] = true
				}
				if c.How == sched.Replace {
					delete(live, at)
				}
			}
		}
		alive[step] = live
	}
	return alive
}

// replacedBefore tells whether an earlier message of the step replaces the
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

func cloned(set map[spot]bool) map[spot]bool {
	all := make(map[spot]bool, len(set))
	for at := range set {
		all[at] = true
	}
	return all
}

// heldIn returns what each rank holds in those places, by block and then by
// contributions.
func heldIn(s *sched.Schedule, r *sched.Replay, places map[spot]bool) [][]holding {
	all := make([][]holding, s.P)
	for at := range places {
		if v := r.Value(at.rank, at.buffer, at.block); v.Defined() {
			all[at.rank] = append(all[at.rank], holding{v.Block(), v.Ranks()})
		}
	}
	for rank, list := range all {
		slices.SortFunc(list, func(a, b holding) int {
			return cmp.Or(cmp.Compare(a.block, b.block), slices.Compare(a.from, b.from))
		})
		all[rank] = slices.CompactFunc(list, holding.equal)
	}
	return all
}

// rumours returns of whose arrival at the barrier each rank has heard.
func rumours(s *sched.Schedule, t *sched.Timeline, r *sched.Replay) ([][][]holding, error) {
	state := func() [][]holding {
		all := make([][]holding, s.P)
		for rank := range all {
			h := holding{}
			for other := range s.P {
				if r.Knows(rank, other) {
					h.from = append(h.from, other)
				}
			}
			all[rank] = []holding{h}
		}
		return all
	}
	states := [][][]holding{state()}
	for range t.Steps() {
		if err := r.Step(); err != nil {
			return nil, err
		}
		states = append(states, state())
	}
	return states, nil
}
