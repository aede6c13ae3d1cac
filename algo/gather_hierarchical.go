package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. The parts of each host gather at one rank, its leader, and those of
// all hosts at the root, which is the leader of its host; both levels do as binomial
// does. So every part goes between hosts once for each level of the leaders' tree, in
// h − 1 messages among h hosts.
//
// If ranks are not placed by block, the parts of a host are no run. They are then
// collected host by host in scratch, and the root copies them to their positions.
//
// Cost, h hosts of g ranks: (⌈lg h⌉ + ⌈lg g⌉) α + n (p−1)/p β. Hosts of different sizes
// take no longer than if all were as large as the largest, with parts of the same length:
// n (hg−1)/p β.
//
// Prefer it for parts that are not long: then direct sends each of them once.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000. Open MPI's component han gathers so.
var gatherHierarchical = Algorithm{
	Collective: sched.Gather,
	Name:       "hierarchical",
	Params:     []Param{hostsParam},
	Formula:    "(⌈lg h⌉ + ⌈lg g⌉) α + n (hg−1)/p β, h hosts of ≤ g ranks",
	Prefer:     "ranks that share hosts, all but long parts",
	cost:       func(c call, n float64) model.Cost { return scatterHierarchical.cost(c, n) },
	build: func(c call) generator {
		layout, byBlock := c.layout(), c.byBlock()
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, c.root)
			kept := sched.Scratch
			if byBlock {
				kept = keptBy(rank, c.root)
			}
			held := gather(b, within{h, host}, interval{0, h.size(host), leader}, me, sched.In, kept)
			if me == leader {
				all := h.leadersFor(c.root)
				held = gather(b, all, interval{0, h.count(), all.rootHost}, host, held, kept)
			}
			switch {
			case rank != c.root:
			case held == sched.In:
				b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
			case held != sched.Out:
				h.sort(b, held)
			}
		}}
	},
}
