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
	cost:       func(c call, n float64) model.Cost { return gatherDoublingCost(c.p, n/float64(c.p), n) },
	build: func(c call) generator {
		f := foldRanks(c.p, 0)
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			gatherDoubling(b, f, everyone(c.p), rank, sched.Out)
		}}
	},
}

// gatherDoublingCost is the cost of gatherDoubling among p positions, for parts of so
// many words each, which are n words in all.
func gatherDoublingCost(p int, part, n float64) model.Cost {
	f := foldRanks(p, 0)
	cost := model.Cost{Startups: float64(floorLog(p)), Words: f.path() * part}
	if f.pairs > 0 {
		cost = cost.Plus(moves(1, part)).Plus(moves(1, n))
	}
	return cost
}

// gatherDoubling exchanges parts among the positions of a row, folded, until each has
// all of them in a buffer. Those that it stands for are there to begin with.
func gatherDoubling(b *sched.Builder, f fold, l partRow, me int, buffer sched.Buffer) {
	parts := func(r sched.Range) sched.Range { return l.parts(r.Lo, r.Hi) }
	all := parts(f.ranks(0, f.groups))
	group := f.group(me)
	keeper := f.keeper(group)
	if me != keeper {
		b.Send(buffer, parts(one(me)), l.rank(keeper))
		b.EndStep()
		b.Recv(l.rank(keeper), buffer, all, sched.Replace)
		b.EndStep()
		return
	}
	if f.paired(group) {
		b.Recv(l.rank(me^1), buffer, parts(one(me^1)), sched.Replace)
		b.EndStep()
	}
	for n := 1; n < f.groups; n *= 2 {
		peer := group ^ n
		b.Send(buffer, parts(f.ranks(group, n)), l.rank(f.keeper(peer)))
		b.Recv(l.rank(f.keeper(peer)), buffer, parts(f.ranks(peer, n)), sched.Replace)
		b.EndStep()
	}
	if f.paired(group) {
		b.Send(buffer, all, l.rank(me^1))
		b.EndStep()
	}
}
