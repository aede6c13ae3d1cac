package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks exchange the blocks of the other's half of the ranks, with partners at
// distance p/2, p/4, …, 1: the blocks that a rank still combines halve with
// every step and are always a run. It is the recursive doubling of allgather
// reversed. Where p is no power of two, the first ranks pair up, one of each
// pair takes part with the sum of both, and the other gets its block from it at
// the end.
//
// Cost, p a power of two: lg p α + n (p−1)/p (β + γ). Other p: (⌊lg p⌋ + 2) α
// and up to 1.5 n (β + γ) more.
//
// Prefer it unless blocks are long and p is no power of two. The operator must
// commute, because a rank first meets one half the ranks away.
//
// Grama et al., 4.2.3; Thakur, Rabenseifner, Gropp 2005.
var reduceScatterRecursiveHalving = Algorithm{
	Collective:   sched.ReduceScatter,
	Name:         "recursive-halving",
	Restrictions: Restrictions{Commutative: true},
	Formula:      "lg p α + n (p−1)/p (β + γ); p no power of two: (⌊lg p⌋ + 2) α and up to 1.5 n (β + γ) more",
	Prefer:       "short blocks; any blocks if p is a power of two",
	cost: func(c call, n float64) model.Cost {
		f, part := foldRanks(c.p, 0), n/float64(c.p)
		words := f.path() * part
		cost := model.Cost{Startups: float64(floorLog(c.p)), Words: words, Combines: words}
		if f.pairs > 0 {
			cost = cost.Plus(sums(1, n)).Plus(moves(1, part))
		}
		return cost
	},
	build: func(c call) generator {
		f := foldRanks(c.p, 0)
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			scatterHalving(b, f, rank)
		}}
	},
}

func scatterHalving(b *sched.Builder, f fold, rank int) {
	all := f.ranks(0, f.groups)
	group := f.group(rank)
	keeper := f.keeper(group)
	if rank != keeper {
		b.Send(sched.In, all, keeper)
		b.EndStep()
		b.Recv(keeper, sched.Out, one(rank), sched.Replace)
		return
	}
	held := sched.In
	if f.paired(group) {
		recvCombine(b, held, sched.Scratch, all, rank^1, sched.Right)
		b.EndStep()
		held = sched.Scratch
	}
	for n := f.groups / 2; n > 0; n /= 2 {
		into, peer := sched.Scratch, group^n
		if n == 1 && !f.paired(group) {
			into = sched.Out
		}
		b.Send(held, f.ranks(peer, n), f.keeper(peer))
		recvCombine(b, held, into, f.ranks(group, n), f.keeper(peer), beside(group, peer))
		b.EndStep()
		held = into
	}
	b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
	if f.paired(group) {
		b.Send(held, one(rank^1), rank^1)
	}
}
