package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks exchange all blocks that they have, with partners at distance 1, 2, 4,
// …: a rank's blocks double with every step, and are always a run. Where p is
// no power of two, the first ranks pair up, one of each pair takes part, and
// the other gets all blocks from it at the end.
//
// Cost, p a power of two: lg p α + n (p−1)/p β. Other p: (⌊lg p⌋ + 2) α and up
// to twice the β.
//
// Prefer it for short blocks.
//
// Grama et al., 4.2.3; Thakur, Rabenseifner, Gropp 2005.
var allgatherRecursiveDoubling = Algorithm{
	Collective: sched.AllGather,
	Name:       "recursive-doubling",
	Formula:    "lg p α + n (p−1)/p β; p no power of two: (⌊lg p⌋ + 2) α and up to twice the β",
	Prefer:     "short blocks",
	cost: func(c call, n float64) model.Cost {
		f, part := foldRanks(c.p, 0), n/float64(c.p)
		cost := model.Cost{Startups: float64(floorLog(c.p)), Words: f.path() * part}
		if f.pairs > 0 {
			cost = cost.Plus(moves(1, part)).Plus(moves(1, n))
		}
		return cost
	},
	build: func(c call) generator {
		f := foldRanks(c.p, 0)
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			gatherDoubling(b, f, rank)
		}}
	},
}

// gatherDoubling exchanges blocks among the ranks of a fold until every Out has
// all. A rank's own is in its Out to begin with.
func gatherDoubling(b *sched.Builder, f fold, rank int) {
	all := f.ranks(0, f.groups)
	group := f.group(rank)
	keeper := f.keeper(group)
	if rank != keeper {
		b.Send(sched.Out, one(rank), keeper)
		b.EndStep()
		b.Recv(keeper, sched.Out, all, sched.Replace)
		return
	}
	if f.paired(group) {
		b.Recv(rank^1, sched.Out, one(rank^1), sched.Replace)
		b.EndStep()
	}
	for n := 1; n < f.groups; n *= 2 {
		peer := group ^ n
		b.Send(sched.Out, f.ranks(group, n), f.keeper(peer))
		b.Recv(f.keeper(peer), sched.Out, f.ranks(peer, n), sched.Replace)
		b.EndStep()
	}
	if f.paired(group) {
		b.Send(sched.Out, all, rank^1)
	}
}
