package algo

import "github.com/chorale-go/chorale/sched"

// A circulant is a graph of p positions round a circle, each linked to those
// that lie a skip further. The skips are p, halved and rounded up again and
// again, down to 1: each is half of the next, or half of one more. So twice as
// many positions as a run of positions have its blocks one round later, by a
// skip as long as the run, and for any p it takes ⌈lg p⌉ rounds until all
// positions have them.
type circulant struct {
	p     int
	skips []int // ascending, the last is p
}

func newCirculant(p int) circulant {
	g := circulant{p, make([]int, ceilLog(p)+1)}
	skip := p
	for k := len(g.skips) - 1; k >= 0; k-- {
		g.skips[k] = skip
		skip -= skip / 2
	}
	return g
}

// rounds returns the number of skips, p itself not counted.
func (g circulant) rounds() int { return len(g.skips) - 1 }

// A relay is one round of a position in a broadcast from position 0: it takes a
// block from one position and gives another block to one. A block of -1 is
// none.
type relay struct{ from, take, to, give int }

// relays returns the rounds of a position in the broadcast of n blocks: as many as
// a broadcast needs, n − 1 + rounds.
//
// Rounds come in phases, one round for each skip. In round k of a phase every
// position gives to the one skips[k] further, and position 0 feeds in a new block.
// Another position takes, in one phase, all blocks that were fed in during the phase
// before, but for one which it already has, and instead of this it takes one of
// those that are being fed in. Which block it takes in which round is the same
// in all phases, if blocks are numbered from the first of the phase. The first
// phase begins in the middle, so that the last ends with the last block.
func (g circulant) relays(position, n int) []relay {
	q := g.rounds()
	if q == 0 {
		return nil
	}
	takes, gives := g.takes(position), g.gives(position)
	skipped := (q - (n-1)%q) % q
	// block turns a number of one phase into a block: those before the first
	// are none, those after the last stand for it.
	block := func(number, phase int) int { return max(-1, min(number+phase*q-skipped, n-1)) }
	all := make([]relay, n-1+q)
	for i := range all {
		phase, k := (skipped+i)/q, (skipped+i)%q
		all[i] = relay{
			from: (position - g.skips[k] + g.p) % g.p, take: -1,
			to: (position + g.skips[k]) % g.p, give: -1,
		}
		if position > 0 {
			all[i].take = block(takes[k], phase)
		}
		if all[i].to > 0 {
			all[i].give = block(gives[k], phase)
		}
	}
	return all
}

// gives returns the number of the block that a position gives in each round of a
// phase: that which the other takes.
func (g circulant) gives(position int) []int {
	numbers := make([]int, g.rounds())
	for k := range numbers {
		numbers[k] = k
		if position > 0 {
			numbers[k] = g.takes((position + g.skips[k]) % g.p)[k]
		}
	}
	return numbers
}

// takes returns the number of the block that a position takes in each round of a
// phase. Those fed in during the phase before have numbers from −q to −1.
func (g circulant) takes(position int) []int {
	q := g.rounds()
	s := search{g, position + g.p, 2 * g.p, 1<<(q+1) - 1, make([]int, 0, q)}
	own := g.fed(position)
	s.closed(own)
	s.from(0, q)
	for k, number := range s.found {
		if number == q {
			s.found[k] = own
		} else {
			s.found[k] = number - q
		}
	}
	return s.found
}

// fed returns in which round of a phase position 0 feeds in the block that another
// position takes in the same phase: that of the smallest skip on the way of
// descending skips from 0.
func (g circulant) fed(position int) int {
	k := g.rounds()
	for smaller := k - 1; position > 0; smaller-- {
		if g.skips[smaller] <= position {
			position -= g.skips[smaller]
			k = smaller
		}
	}
	return k
}

// A search follows paths of descending skips from position 0 to positions
// before a goal. For each round k it looks for a position that lies at least
// skips[k] before the goal, but less than skips[k+1]. Each position lies before
// the one found last, and has another smallest skip on its path. This skip says
// which block can come from there. Few paths lead nowhere: the search takes
// O(log p) time in all.
type search struct {
	g      circulant
	goal   int    // counted once more round the circle, so that 0 has positions before it
	before int    // the next position found lies before this
	open   uint64 // a bit for each skip that may still be found
	found  []int  // a skip for each round, up to the one that is looked at
}

func (s *search) closed(skip int) { s.open &^= 1 << skip }

// from searches beyond a position that was reached by a skip.
func (s *search) from(at, skip int) {
	short := func(position, k int) bool { return position <= s.goal-s.g.skips[k] }
	for ; skip >= 0; skip-- {
		next := at + s.g.skips[skip]
		k := len(s.found)
		if s.open>>skip&1 == 0 || next >= s.before || !short(next, k) {
			continue
		}
		if short(next, k+1) {
			s.from(next, skip)
			k = len(s.found)
		}
		if k == s.g.rounds() || !short(at, k+1) {
			return
		}
		s.before = next
		s.found = append(s.found, skip)
		s.closed(skip)
		if k+1 == s.g.rounds() {
			return
		}
	}
}

// window returns the blocks of n ranks from one on, round the circle. Scratch
// repeats the vector, so they are one range there.
func window(first, n int) sched.Range { return sched.Range{Lo: first, Hi: first + n} }

// openWindow copies the whole vector of p blocks to the window from rank on.
func openWindow(b *sched.Builder, p, rank int) {
	b.Copy(sched.In, sched.Range{Lo: rank, Hi: p}, sched.Scratch, rank, sched.Replace)
	b.Copy(sched.In, whole(rank), sched.Scratch, p, sched.Replace)
}

// closeWindow copies it back to where the blocks belong.
func closeWindow(b *sched.Builder, p, rank int) {
	b.Copy(sched.Scratch, sched.Range{Lo: rank, Hi: p}, sched.Out, rank, sched.Replace)
	b.Copy(sched.Scratch, sched.Range{Lo: p, Hi: p + rank}, sched.Out, 0, sched.Replace)
}
