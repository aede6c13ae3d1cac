package algo

import (
	"math/bits"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Partners at distance 1, 2, 4, … exchange halves of what they still combine,
// and each goes on with one half. Because the nearest come first, what a rank
// holds stands for a run of ranks, and any operator will do. But a rank ends
// with the block of its mirror image, the rank whose number has its bits in
// reverse; so a last message brings each block to its owner. Where p is no
// power of two, ranks fold first: of each pair of ranks, one takes part with
// the sum of both.
//
// Cost, p a power of two, p > 2: (lg p + 1) α + nβ + n (p−1)/p γ. A fold adds α
// + nβ + nγ, and up to one more such last message.
//
// Prefer it for vectors of all lengths if the operator does not commute, unless
// they are very short or very long.
//
// Träff, An Improved Algorithm for (Non-commutative) Reduce-Scatter with an
// Application, 2005.
var reduceScatterButterfly = Algorithm{
	Collective: sched.ReduceScatter,
	Name:       "butterfly",
	Formula:    "(lg p + 1) α + nβ + n (p−1)/p γ; p no power of two: about 2α + nβ + nγ more",
	Prefer:     "vectors of middling length, any operator",
	cost: func(c call, n float64) model.Cost {
		f, part := foldRanks(c.p, 0), n/float64(c.p)
		words := f.path() * part
		cost := model.Cost{Startups: float64(floorLog(c.p)), Words: words, Combines: words}
		if f.pairs > 0 {
			cost = cost.Plus(sums(1, n))
		}
		switch home := moves(1, part); {
		case c.p <= 2: // every rank is its own mirror image
		case f.pairs < 2:
			cost = cost.Plus(home)
		default:
			cost = cost.Plus(home.Times(2))
		}
		return cost
	},
	build: func(c call) generator {
		f := foldRanks(c.p, 0)
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			scatterButterfly(b, f, rank)
		}}
	},
}

func scatterButterfly(b *sched.Builder, f fold, rank int) {
	group := f.group(rank)
	mirror := f.mirror(group)
	keeper := f.keeper(mirror) // will have the rank's block
	if rank != f.keeper(group) {
		b.Send(sched.In, f.ranks(0, f.groups), f.keeper(group))
		b.EndStep()
		b.Recv(keeper, sched.Out, one(rank), sched.Replace)
		return
	}
	held := halveNearestFirst(b, f, rank)
	home := f.first(mirror)
	if home == rank {
		b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
	} else {
		b.Send(held, one(home), home)
		b.Recv(keeper, sched.Out, one(rank), sched.Replace)
		b.EndStep()
	}
	if f.paired(mirror) {
		b.Send(held, one(home+1), home+1)
	}
}

// halveNearestFirst leaves each keeper of a fold with the blocks of its group's
// mirror image, and returns where they are.
func halveNearestFirst(b *sched.Builder, f fold, rank int) sched.Buffer {
	held, group := sched.In, f.group(rank)
	if f.paired(group) {
		recvCombine(b, held, sched.Scratch, f.ranks(0, f.groups), rank^1, sched.Right)
		b.EndStep()
		held = sched.Scratch
	}
	mine := 0 // the rank still combines the blocks of n groups from this one on
	for bit, n := 0, f.groups/2; n > 0; bit, n = bit+1, n/2 {
		peer, theirs := group^1<<bit, mine+n
		if group>>bit&1 == 1 {
			mine, theirs = theirs, mine
		}
		into := sched.Scratch
		if n == 1 && mine == group && !f.paired(group) {
			into = sched.Out
		}
		b.Send(held, f.ranks(theirs, n), f.keeper(peer))
		recvCombine(b, held, into, f.ranks(mine, n), f.keeper(peer), beside(group, peer))
		b.EndStep()
		held = into
	}
	return held
}

// mirror returns the group whose number has the bits of another in reverse.
func (f fold) mirror(group int) int {
	if f.groups == 1 {
		return 0
	}
	return int(bits.Reverse(uint(group)) >> (bits.UintSize - floorLog(f.groups)))
}
