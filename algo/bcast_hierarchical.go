package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. The root sends the vector to one rank of each other host, its
// leader, and each leader hands it to the ranks of its host; both levels do as binomial
// does. So every other host gets the vector once: h − 1 messages go between h hosts. A
// long vector is cut in h pieces, which are scattered to the leaders and gathered by all
// of them, as in scatter-allgather: then no leader sends the vector more than twice.
//
// Cost, h hosts of g ranks: (⌈lg h⌉ + ⌈lg g⌉)(α + nβ). With scatter-allgather, h a power
// of two, the leaders' part of that is 2 lg h α + 2n (h−1)/h β. Hosts of different sizes
// take no longer than if all were as large as the largest.
//
// Prefer it where messages between hosts cost much more than within one, wherever the
// ranks are placed.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000. MPICH broadcasts so among nodes.
var bcastHierarchical = Algorithm{
	Collective: sched.Bcast,
	Name:       "hierarchical",
	Params:     []Param{hostsParam, betweenParam("binomial", "scatter-allgather", bcastHostsCost)},
	Formula:    "(⌈lg h⌉ + ⌈lg g⌉)(α + nβ), h hosts of ≤ g ranks; scatter-allgather: that of it on h ranks for ⌈lg h⌉ (α + nβ)",
	Prefer:     "ranks that share hosts",
	cost:       func(c call, n float64) model.Cost { return bcastHostsCost(c, c.word("between"), n) },
	build: func(c call) generator {
		layout, count := c.layout(), c.hostSizes().hosts
		f, blocks := foldRanks(count, 0), 1
		inPieces := c.word("between") == "scatter-allgather"
		if inPieces {
			blocks = count
		}
		return generator{blocks: blocks, program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, c.root)
			if rank == c.root {
				b.Copy(sched.In, whole(blocks), sched.Out, 0, sched.Replace)
			}
			if all := h.leadersFor(c.root); me == leader && inPieces {
				l := pieces{all, blocks, 1}
				scatter(b, l, all.rootHost, host, location{sched.Out, 0})
				gatherDoubling(b, f, l, host, sched.Out)
			} else if me == leader {
				broadcast(b, all, all.rootHost, host, sched.Out, whole(1))
			}
			broadcast(b, within{h, host}, leader, me, sched.Out, whole(blocks))
		}}
	},
}

func bcastHostsCost(c call, between string, n float64) model.Cost {
	s := c.hostSizes()
	cost := moves(ceilLog(s.largest), n)
	if between == "binomial" {
		return cost.Plus(moves(ceilLog(s.hosts), n))
	}
	scatter := model.Cost{Startups: float64(ceilLog(s.hosts)), Words: share(n, s.hosts)}
	return cost.Plus(scatter).Plus(gatherDoublingCost(s.hosts, n/float64(s.hosts), n))
}
