package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Every rank first reduces a piece of the vector, and then the pieces are
// gathered at the root: the dual of broadcast by scatter and allgather. Pieces
// are reduced by vector halving, nearest partner first, so what is combined is
// a run of ranks and any operator will do. The gather goes back along the same
// partners; of each two, the one on the root's side receives. Other p than
// powers of two fold first.
//
// Cost, p a power of two: 2 lg p α + 2n (p−1)/p β + n (p−1)/p γ. A fold adds
// α + nβ + nγ.
//
// Prefer it to binomial for long vectors.
//
// Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004;
// Thakur, Rabenseifner, Gropp, Optimization of Collective Communication
// Operations in MPICH, 2005.
var reduceReduceScatterGather = Algorithm{
	Collective: sched.Reduce,
	Name:       "reduce-scatter-gather",
	Formula:    "2 lg p α + 2n (p−1)/p β + n (p−1)/p γ",
	Prefer:     "long vectors",
	cost: func(c call, n float64) model.Cost {
		f := foldRanks(c.p, c.root)
		stages, part := floorLog(c.p), share(n, f.groups)
		cost := model.Cost{Startups: float64(2 * stages), Words: 2 * part, Combines: part}
		if f.pairs > 0 {
			cost = cost.Plus(sums(1, n))
		}
		return cost
	},
	build: func(c call) generator {
		f := foldRanks(c.p, c.root)
		scratch := f.groups
		if c.p == 1 {
			scratch = 0
		}
		return generator{blocks: f.groups, scratch: scratch, program: func(b *sched.Builder, rank int) {
			reduceScatterGather(b, f, rank)
		}}
	},
}

func reduceScatterGather(b *sched.Builder, f fold, rank int) {
	kept := keptBy(rank, f.root)
	x, ok := foldVector(b, f, rank, f.groups, kept)
	if !ok {
		return
	}
	stages := floorLog(f.groups)
	for bit := range stages {
		x.halve(bit, kept)
	}
	for bit := stages - 1; bit >= 0; bit-- {
		peer := f.keeper(x.group ^ 1<<bit)
		if (x.group^f.group(f.root))>>bit&1 == 1 {
			b.Send(x.held, x.mine, peer)
			return
		}
		sibling := x.sibling(bit)
		b.Recv(peer, kept, sibling, sched.Replace)
		b.EndStep()
		x.mine = join(x.mine, sibling)
	}
	b.Copy(x.held, x.mine, sched.Out, x.mine.Lo, sched.Replace)
}
