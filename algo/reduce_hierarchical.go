package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. Each host reduces to one rank, its leader, as binomial does, and
// the leaders reduce to the root, which is the leader of its host. So every other host
// sends one vector: h − 1 messages go between h hosts. The leaders do as binomial does,
// or with long vectors as reduce-scatter-gather: then no leader receives much more than
// two vectors.
//
// Cost, h hosts of g ranks: (⌈lg h⌉ + ⌈lg g⌉)(α + nβ + nγ). With reduce-scatter-gather,
// h a power of two, the leaders' part of that is 2 lg h α + 2n (h−1)/h β + n (h−1)/h γ.
// Hosts of different sizes take no longer than if all were as large as the largest.
//
// Ranks that are placed by block stay in order; other placements need an operator that
// commutes. Prefer it where messages between hosts cost much more than within one.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000. MPICH reduces so among nodes.
var reduceHierarchical = Algorithm{
	Collective: sched.Reduce,
	Name:       "hierarchical",
	Params:     []Param{hostsParam, betweenParam("binomial", "reduce-scatter-gather", reduceHostsCost)},
	Formula:    "(⌈lg h⌉ + ⌈lg g⌉)(α + nβ + nγ), h hosts of ≤ g ranks; reduce-scatter-gather: that of it on h ranks for ⌈lg h⌉ (α + nβ + nγ)",
	Prefer:     "ranks that share hosts",
	cost:       func(c call, n float64) model.Cost { return reduceHostsCost(c, c.word("between"), n) },
	build: func(c call) generator {
		layout, count := c.layout(), c.hostSizes().hosts
		groups, blocks, scratch := foldRanks(count, 0).groups, 1, spare(c.p, 1)
		inPieces := c.word("between") == "reduce-scatter-gather"
		if inPieces {
			blocks, scratch = groups, min(c.p-1, 1)*groups
		}
		return generator{blocks: blocks, scratch: scratch, program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, c.root)
			kept := keptBy(rank, c.root)
			held := reduce(b, within{h, host}, interval{0, h.size(host), leader}, me, sched.In, kept, whole(blocks))
			if me != leader {
				return
			}
			all := h.leadersFor(c.root)
			if inPieces {
				reduceScatterGather(b, foldRanks(count, all.rootHost), all, host, held, whole(blocks), kept)
				return
			}
			held = reduce(b, all, interval{0, count, all.rootHost}, host, held, kept, whole(1))
			if rank == c.root {
				b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
			}
		}}
	},
}

func reduceHostsCost(c call, between string, n float64) model.Cost {
	s := c.hostSizes()
	cost := sums(ceilLog(s.largest), n)
	if between == "binomial" {
		return cost.Plus(sums(ceilLog(s.hosts), n))
	}
	return cost.Plus(reduceScatterGatherCost(s.hosts, n))
}
