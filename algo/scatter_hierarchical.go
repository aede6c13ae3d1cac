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
// take no longer than with n (1 + (g − s)/p) β, where g ranks are on the largest and s on
// the smallest.
//
// Prefer it for parts that are not long: then direct sends each of them once.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000. Open MPI's component han scatters so.
var scatterHierarchical = Algorithm{
	Collective: sched.Scatter,
	Name:       "hierarchical",
	Params:     []Param{hostsParam},
	Formula:    "(⌈lg h⌉ + ⌈lg g⌉) α + n (p−1)/p β, h hosts of ≤ g ranks, s on the smallest: n (g−s)/p β more at most",
	Prefer:     "ranks that share hosts, all but long parts",
	cost: func(c call, n float64) model.Cost {
		s, part := c.hostSizes(), n/float64(c.p)
		between := model.Cost{Startups: float64(ceilLog(s.hosts)), Words: part * float64(c.p-s.smallest)}
		return gatherHostCost(s, part).Plus(between)
	},
	build: func(c call) generator {
		layout, byBlock := c.layout(), c.byBlock()
		scratch := spare(c.p, c.p)
		if !byBlock {
			scratch = c.p
		}
		return generator{blocks: c.p, scratch: scratch, program: func(b *sched.Builder, rank int) {
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
