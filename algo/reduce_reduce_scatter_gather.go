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
	cost:       func(c call, n float64) model.Cost { return reduceScatterGatherCost(c.p, n) },
	build: func(c call) generator {
		f := foldRanks(c.p, c.root)
		scratch := f.groups
		if c.p == 1 {
			scratch = 0
		}
		return generator{blocks: f.groups, scratch: scratch, program: func(b *sched.Builder, rank int) {
			reduceScatterGather(b, f, everyone(c.p), rank, sched.In, whole(f.groups), keptBy(rank, c.root), sched.Out)
		}}
	},
}

// reduceScatterGatherCost is the cost of reduceScatterGather among p positions.
func reduceScatterGatherCost(p int, n float64) model.Cost {
	f := foldRanks(p, 0)
	stages, part := floorLog(p), share(n, f.groups)
	cost := model.Cost{Startups: float64(2 * stages), Words: 2 * part, Combines: part}
	if f.pairs > 0 {
		cost = cost.Plus(sums(1, n))
	}
	return cost
}

// reduceScatterGather combines some blocks, one for each group of the fold, that all
// positions of a sequence hold. The root leaves them in result; other ranks use kept.
func reduceScatterGather(b *sched.Builder, f fold, l sequence, me int, held sched.Buffer, blocks sched.Range, kept, result sched.Buffer) {
	x, ok := foldVector(b, f, l, me, held, blocks, kept)
	if !ok {
		return
	}
	stages := floorLog(f.groups)
	for bit := range stages {
		x.halve(bit, kept)
	}
	for bit := stages - 1; bit >= 0; bit-- {
		peer := l.rank(f.keeper(x.group ^ 1<<bit))
		if (x.group^f.group(f.root))>>bit&1 == 1 {
			b.Send(x.held, x.mine, peer)
			b.EndStep()
			return
		}
		sibling := x.sibling(bit)
		b.Recv(peer, kept, sibling, sched.Replace)
		b.EndStep()
		x.mine = join(x.mine, sibling)
	}
	b.Copy(x.held, x.mine, result, x.mine.Lo, sched.Replace)
}
