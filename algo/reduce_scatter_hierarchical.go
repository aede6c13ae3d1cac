package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. Each host reduces its vectors to one rank, its leader. The leaders
// reduce-scatter: each gets the combination of the blocks of its host, by recursive
// doubling or pairwise. Then it scatters them to the ranks of its host. So between
// hosts, no vector goes that does not stand for a whole host.
//
// Cost, h hosts of g ranks: (2 ⌈lg g⌉) α + n ⌈lg g⌉ (β + γ) + n (g−1)/p β within the
// hosts, and between them that of recursive-doubling or pairwise on h ranks. Hosts of
// different sizes take no longer than if all were as large as the largest.
//
// Ranks that are placed by block stay in order; other placements need an operator that
// commutes, and the leader sorts the blocks by hosts. Prefer it where messages between
// hosts cost much more than within one.
//
// Open MPI's component han combines the levels of a cluster so; Karonis et al.,
// Exploiting Hierarchy in Parallel Computer Networks to Optimize Collective Operation
// Performance, 2000.
var reduceScatterHierarchical = Algorithm{
	Collective: sched.ReduceScatter,
	Name:       "hierarchical",
	Params:     []Param{hostsParam, betweenParam("recursive-doubling", "pairwise", reduceScatterHostsCost)},
	Formula:    "2 ⌈lg g⌉ α + n ⌈lg g⌉ (β + γ) + n (g−1)/p β + that of recursive-doubling on h ranks, h hosts of ≤ g ranks; pairwise: that of it on h ranks",
	Prefer:     "ranks that share hosts",
	cost:       func(c call, n float64) model.Cost { return reduceScatterHostsCost(c, c.word("between"), n) },
	build: func(c call) generator {
		layout, byBlock := c.layout(), c.byBlock()
		f, pairwise := foldRanks(c.hostSizes().hosts, 0), c.word("between") == "pairwise"
		return generator{blocks: c.p, scratch: min(c.p-1, 1) * 2 * c.p, program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, -1)
			held := location{reduce(b, within{h, host}, interval{0, h.size(host), leader}, me, sched.In, sched.Scratch, whole(c.p)), 0}
			mine, second := location{sched.Scratch, 0}, location{sched.Scratch, c.p}
			if me == leader {
				if !byBlock {
					h.collect(b, held.buffer, second)
					held = second
				}
				if h.size(host) == 1 {
					mine = location{sched.Out, rank - h.at(rank)}
				}
				if pairwise {
					contribute(b, h.leaders(0), host, held, mine, second, false)
				} else {
					scatterDoubling(b, f, h.leaders(0), host, held, mine)
				}
				b.Copy(mine.buffer, mine.blocks(one(h.at(rank))), sched.Out, rank, sched.Replace)
			}
			scatter(b, within{h, host}, leader, me, mine)
		}}
	},
}

func reduceScatterHostsCost(c call, between string, n float64) model.Cost {
	s, part := c.hostSizes(), n/float64(c.p)
	cost := sums(ceilLog(s.largest), n).Plus(gatherHostCost(s, part))
	part *= float64(s.largest)
	if between == "pairwise" {
		return cost.Plus(contributeCost(s.hosts, part))
	}
	return cost.Plus(scatterDoublingCost(s.hosts, part, n))
}
