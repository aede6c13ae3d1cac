package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. The root, which is the leader of its host, scatters the parts of
// all hosts to one rank of each, its leader, and each leader scatters them to the ranks
// of its host; both levels do as binomial does. So every part goes between hosts once
// for each level of the leaders' tree, in h − 1 messages among h hosts.
//
// If ranks are not placed by block, the parts of a host are no run. The root then copies
// them to scratch first, host by host.
//
// Cost, h hosts of g ranks: (⌈lg h⌉ + ⌈lg g⌉) α + n (p−1)/p β. Hosts of different sizes
// take no longer than if all were as large as the largest, with parts of the same length:
// n (hg−1)/p β.
//
// Prefer it for parts that are not long: then direct sends each of them once.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000. Open MPI's component han scatters so.
var scatterHierarchical = Algorithm{
	Collective: sched.Scatter,
	Name:       "hierarchical",
	Params:     []Param{hostsParam},
	Formula:    "(⌈lg h⌉ + ⌈lg g⌉) α + n (hg−1)/p β, h hosts of ≤ g ranks",
	Prefer:     "ranks that share hosts, all but long parts",
	cost: func(c call, n float64) model.Cost {
		s, part := c.hostSizes(), n/float64(c.p)
		between := model.Cost{Startups: float64(ceilLog(s.hosts)), Words: part * float64((s.hosts-1)*s.largest)}
		return gatherHostCost(s, part).Plus(between)
	},
	build: func(c call) generator {
		layout, byBlock := c.layout(), c.byBlock()
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, c.root)
			held := location{sched.Scratch, 0}
			if rank == c.root {
				b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
				if byBlock {
					held.buffer = sched.In
				} else {
					h.collect(b, sched.In, held)
				}
			}
			if me == leader {
				all := h.leadersFor(c.root)
				scatter(b, all, all.rootHost, host, held)
			}
			scatter(b, within{h, host}, leader, me, held)
		}}
	},
}
