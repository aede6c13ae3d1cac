package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Recursive doubling with a radix: in every round k ranks, at distance 1, then
// k, then k², and so on, send each other their whole vectors and combine them
// all, so the number of ranks that a vector stands for grows k times. The last
// round may be one of fewer ranks. The remaining ranks pair up first, as in
// recursive-doubling: of each pair, one takes part and sends the other the
// result.
//
// Cost with one port, p a power of k: (k − 1) log_k p (α + nβ + nγ), more than
// recursive-doubling. But the messages of a round are one multicast. Where that
// is no dearer than a message, as in memory, or start-ups overlap, log_k p rounds
// are what counts. A pair adds 2α + 2nβ + nγ.
//
// Ranks stay in order. Prefer it for short vectors in memory. With k = p it is
// direct, with k = 2 recursive-doubling.
//
// Ruefenacht, Bull, Booth, Generalisation of Recursive Doubling for AllReduce,
// 2017.
var allreduceRecursiveMultiplying = Algorithm{
	Collective: sched.AllReduce,
	Name:       "recursive-multiplying",
	Params:     []Param{radixParam},
	Formula:    "≤ (k − 1) ⌈log_k p⌉ (α + nβ + nγ), in ⌈log_k p⌉ rounds; with pairs, 2α + 2nβ + nγ more",
	Prefer:     "short vectors in memory",
	cost:       func(c call, n float64) model.Cost { return multiplyCost(c.p, c.number("k"), n) },
	build: func(c call) generator {
		k := c.number("k")
		return generator{blocks: 1, scratch: spare(c.p, 1+max(0, min(k, c.p)-3)), program: func(b *sched.Builder, rank int) {
			multiply(b, everyone(c.p), rank, k, sched.In)
		}}
	},
}

// radices returns the number of ranks that exchange in each round of recursive
// multiplying, and the number of positions: the product of the radices is the
// largest c·k^i that is not above p, with c < k, and the ranks beyond it pair
// up.
func radices(p, k int) (rounds []int, pairs int) {
	groups := 1
	for ; groups*k <= p; groups *= k {
		rounds = append(rounds, k)
	}
	if c := p / groups; c > 1 {
		rounds = append(rounds, c)
		groups *= c
	}
	return rounds, p - groups
}

// multiply combines block 0 of what all positions of a sequence hold in their Out.
// A position holds it in In, or else where turn says for as many exchanges as
// there are rounds. It uses up to k − 2 blocks of scratch.
func multiply(b *sched.Builder, l sequence, me, k int, held sched.Buffer) {
	rounds, pairs := radices(l.size(), k)
	f := fold{l.size() - pairs, pairs, 0}
	group := f.group(me)
	if f.paired(group) {
		other := l.rank(me ^ 1)
		if me != f.first(group) {
			b.Send(held, whole(1), other)
			b.EndStep()
			b.Recv(other, sched.Out, whole(1), sched.Replace)
			return
		}
		into := turn(len(rounds))
		recvCombine(b, held, into, whole(1), other, sched.Right)
		b.EndStep()
		held = into
	}
	distance := 1
	for i, k := range rounds {
		into := turn(len(rounds) - 1 - i)
		position := group / distance % k
		ranks := make([]int, k)
		for j := range ranks {
			ranks[j] = l.rank(f.first(group + (j-position)*distance))
		}
		exchangeAll(b, ranks, position, held, into, 1)
		held = into
		distance *= k
	}
	b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
	if f.paired(group) {
		b.Send(sched.Out, whole(1), l.rank(me^1))
	}
}

// multiplyCost is the cost of multiply.
func multiplyCost(p, k int, n float64) (cost model.Cost) {
	rounds, pairs := radices(p, k)
	for _, k := range rounds {
		cost = cost.Plus(sums(k-1, n))
	}
	if pairs > 0 {
		cost = cost.Plus(sums(1, n)).Plus(moves(1, n))
	}
	return cost
}
