package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. The word that all ranks of a host have come gathers along a
// binomial tree at one of them, its leader; the leaders do as dissemination does; and
// each leader releases its host along the same tree.
//
// Cost, h hosts of g ranks: (2 ⌈lg g⌉ + ⌈lg h⌉) α. Hosts of different sizes take no
// longer than if all were as large as the largest.
//
// Each leader sends ⌈lg h⌉ messages to other hosts, where by dissemination every rank
// may send ⌈lg p⌉. Prefer it where those cost much more than messages within a host.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000. MPICH waits so for all nodes.
var barrierHierarchical = Algorithm{
	Collective: sched.Barrier,
	Name:       "hierarchical",
	Params:     []Param{hostsParam},
	Formula:    "(2 ⌈lg g⌉ + ⌈lg h⌉) α, h hosts of ≤ g ranks",
	Prefer:     "ranks that share hosts",
	cost: func(c call, _ float64) model.Cost {
		s := c.hostSizes()
		return moves(2*ceilLog(s.largest)+ceilLog(s.hosts), 0)
	},
	build: func(c call) generator {
		layout := c.layout()
		return generator{program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, -1)
			arrive(b, within{h, host}, me)
			if me == leader {
				disseminate(b, h.leaders(0), host)
			}
			release(b, within{h, host}, me)
		}}
	},
}
