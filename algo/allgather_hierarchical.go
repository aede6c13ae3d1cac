package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. The blocks of each host gather at one rank, its leader. The leaders
// exchange them by recursive doubling, and each leader hands all blocks to the ranks of
// its host. So each host sends and receives every block about once, and in few messages.
// Long blocks go round a ring of all ranks instead, one host after the other: each host
// gets every block once, and hands it on while the next one comes.
//
// If ranks are not placed by block, the blocks of a host are no run. They are then
// collected host by host in scratch, and copied to their positions in the end.
//
// Cost, h hosts of g ranks, h a power of two: (2 ⌈lg g⌉ + lg h) α + n ⌈lg g⌉ β for the
// hand-out, + n (p−1)/p β. Other h fold, as in recursive-doubling on h ranks. Hosts of
// different sizes take little longer than if all were as large as the largest. A ring:
// (p − 1) α + n (p−1)/p β.
//
// Prefer it where messages between hosts cost much more than within one, wherever the
// ranks are placed. By block, ring does the same as this ring.
//
// Träff, Efficient Allgather for Regular SMP-Clusters, EuroPVM/MPI 2006. Open MPI's
// component han gathers so, and NCCL round such a ring.
var allgatherHierarchical = Algorithm{
	Collective: sched.AllGather,
	Name:       "hierarchical",
	Params:     []Param{hostsParam, betweenParam("recursive-doubling", "ring", allgatherHostsCost)},
	Formula:    "(2 ⌈lg g⌉ + lg h) α + n (⌈lg g⌉ + (p−1)/p) β, h hosts of ≤ g ranks; h no power of two: as recursive-doubling on h ranks; ring: (p − 1) α + n (p−1)/p β",
	Prefer:     "ranks that share hosts",
	cost:       func(c call, n float64) model.Cost { return allgatherHostsCost(c, c.word("between"), n) },
	build: func(c call) generator {
		layout := c.layout()
		f, ring := foldRanks(c.hostSizes().hosts, 0), c.word("between") == "ring"
		kept, scratch := sched.Out, 0
		if !c.byBlock() {
			kept, scratch = sched.Scratch, c.p
		}
		return generator{blocks: c.p, scratch: scratch, program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, -1)
			b.Copy(sched.In, one(rank), kept, h.at(rank), sched.Replace)
			if ring {
				gatherRound(b, inOrder{h}, h.at(rank), kept, 0)
			} else {
				gather(b, within{h, host}, interval{0, h.size(host), leader}, me, kept, kept)
				if me == leader {
					gatherDoubling(b, f, h.leaders(0), host, kept)
				}
				broadcast(b, within{h, host}, leader, me, kept, whole(c.p))
			}
			if kept != sched.Out {
				h.sort(b, kept)
			}
		}}
	},
}

func allgatherHostsCost(c call, between string, n float64) model.Cost {
	s := c.hostSizes()
	part := n / float64(c.p)
	if between == "ring" {
		return moves(c.p-1, part)
	}
	cost := gatherHostCost(s, part).Plus(moves(ceilLog(s.largest), n))
	return cost.Plus(gatherDoublingCost(s.hosts, part*float64(s.largest), n))
}

// gatherHostCost is the cost of gathering the parts of the largest host at its leader,
// or of scattering them.
func gatherHostCost(s hostSizes, part float64) model.Cost {
	return model.Cost{Startups: float64(ceilLog(s.largest)), Words: part * float64(s.largest-1)}
}
