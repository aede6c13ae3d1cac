package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks exchange their whole vectors and combine them, with partners at distance
// 1, 2, 4, …, as an allreduce does. But the last exchange gives each partner no
// more than its own block. For other p than powers of two, the first ranks pair
// up, one of each two takes part with the sum of both, and the other gets its
// block from it in the end.
//
// Cost, p a power of two: lg p α + n (lg p − 1 + 1/p)(β + γ). Other p:
// (⌊lg p⌋ + 2) α and n (⌊lg p⌋ + 3/p) β + n (⌊lg p⌋ + 2/p) γ.
//
// Ranks stay in order: a vector stands for neighbors from the first exchange
// on. Prefer it for short vectors if the operator does not commute; recursive-
// halving moves less, but needs one that does.
//
// Thakur, Rabenseifner, Gropp 2005.
var reduceScatterRecursiveDoubling = Algorithm{
	Collective: sched.ReduceScatter,
	Name:       "recursive-doubling",
	Formula:    "lg p α + n (lg p − 1 + 1/p)(β + γ); p no power of two: (⌊lg p⌋ + 2) α and nβ + nγ more, about",
	Prefer:     "short vectors, an operator that does not commute",
	cost:       func(c call, n float64) model.Cost { return scatterDoublingCost(c.p, n/float64(c.p), n) },
	build: func(c call) generator {
		f := foldRanks(c.p, 0)
		return generator{blocks: c.p, scratch: spare(c.p, 2*c.p), program: func(b *sched.Builder, rank int) {
			scatterDoubling(b, f, everyone(c.p), rank, location{sched.In, 0}, location{sched.Out, 0})
		}}
	},
}

// scatterDoublingCost is the cost of scatterDoubling among p positions, for parts of so
// many words each, which are n words in all.
func scatterDoublingCost(p int, part, n float64) model.Cost {
	switch {
	case p == 1:
		return model.Cost{}
	case foldRanks(p, 0).pairs > 0:
		return sums(floorLog(p), n).Plus(sums(1, 2*part)).Plus(moves(1, part))
	}
	return sums(floorLog(p)-1, n).Plus(sums(1, part))
}

// scatterDoubling combines the vectors that all positions of a row hold, and leaves the
// parts that position me stands for at out. Two vectors in scratch, at 0 and after it,
// take turns, because an exchange cannot write what it sends. The vector is held in In,
// or is one of the two.
func scatterDoubling(b *sched.Builder, f fold, l partRow, me int, held, out location) {
	parts := func(r sched.Range) sched.Range { return l.parts(r.Lo, r.Hi) }
	all := parts(f.ranks(0, f.groups))
	group := f.group(me)
	keeper := f.keeper(group)
	if me != keeper {
		b.Send(held.buffer, held.blocks(all), l.rank(keeper))
		b.EndStep()
		b.Recv(l.rank(keeper), out.buffer, out.blocks(parts(one(me))), sched.Replace)
		b.EndStep()
		return
	}
	into := location{sched.Scratch, 0}
	if held == into {
		into.at = all.Len()
	}
	if f.paired(group) {
		into.combine(b, held, all, l.rank(me^1), sched.Right)
		b.EndStep()
		held, into = into, location{sched.Scratch, all.Len() - into.at}
	}
	for n := 1; n < f.groups; n *= 2 {
		peer, give, keep := group^n, all, all
		if n == f.groups/2 {
			give, keep = parts(f.ranks(peer, 1)), parts(f.ranks(group, 1))
			if out != held && !f.paired(group) {
				into = out
			}
		}
		b.Send(held.buffer, held.blocks(give), l.rank(f.keeper(peer)))
		into.combine(b, held, keep, l.rank(f.keeper(peer)), beside(group, peer))
		b.EndStep()
		held, into = into, location{sched.Scratch, all.Len() - into.at}
	}
	mine := parts(one(me))
	b.Copy(held.buffer, held.blocks(mine), out.buffer, out.blocks(mine).Lo, sched.Replace)
	if f.paired(group) {
		b.Send(held.buffer, held.blocks(parts(one(me^1))), l.rank(me^1))
		b.EndStep()
	}
}

// A location is where a vector lies: a buffer, and the number of its block 0 in
// it.
type location struct {
	buffer sched.Buffer
	at     int
}

// blocks returns where blocks of the vector are.
func (s location) blocks(r sched.Range) sched.Range {
	return sched.Range{Lo: s.at + r.Lo, Hi: s.at + r.Hi}
}

// combine receives blocks from a rank, and leaves at s the combination of the
// held blocks and the received ones.
func (s location) combine(b *sched.Builder, held location, blocks sched.Range, from int, how sched.Combine) {
	b.Copy(held.buffer, held.blocks(blocks), s.buffer, s.blocks(blocks).Lo, sched.Replace)
	b.Recv(from, s.buffer, s.blocks(blocks), how)
}
