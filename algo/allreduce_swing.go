package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Recursive halving with partners that are nearer to each other on a ring: a
// rank swings from one side to the other, and its partners are at distance 1, 1,
// 3, 5, 11, … and no more than a third of the ring, where powers of two go up to
// half of it. As there, partners exchange halves of what they still combine, and
// in the end the same steps reversed hand the pieces to everyone. On a torus the
// steps take turns among the dimensions.
//
// Cost: 2 lg p α + 2n (p−1)/p β + n (p−1)/p γ, that of recursive-halving; the gain
// is in the links that messages share.
//
// Prefer it for vectors of middling length on a ring or torus. The operator must
// commute, because partners of later steps are no neighbors. (The way to
// exchange whole vectors, which swing has as well, would sum in another order on
// every rank, and so is left out.)
//
// De Sensi, Bonato, Saam, Hoefler, Swing: Short-cutting Rings for Higher
// Bandwidth Allreduce, 2024, arXiv 2401.09356. The numbering of pieces that
// makes all exchanges runs of blocks is ours.
var allreduceSwing = Algorithm{
	Collective:   sched.AllReduce,
	Name:         "swing",
	Params:       []Param{torusParam},
	Restrictions: Restrictions{PowerOfTwo: true, Commutative: true},
	Formula:      "2 lg p α + 2n (p−1)/p β + n (p−1)/p γ",
	Prefer:       "vectors of middling length on a ring or torus",
	cost: func(c call, n float64) model.Cost {
		part := share(n, c.p)
		return model.Cost{Startups: float64(2 * ceilLog(c.p)), Words: 2 * part, Combines: part}
	},
	build: func(c call) generator {
		m := mesh(c.sizes("dims"))
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			swing(b, m.swings(rank), c.p)
		}}
	},
}

// A turnout is a step of swing for one rank: its partner, and whether it goes
// on with the upper half of its blocks.
type turnout struct {
	peer  int
	upper bool
}

// swings returns the steps of a rank, the dimensions taking turns.
func (m mesh) swings(rank int) (steps []turnout) {
	for s := 0; ; s++ {
		before := len(steps)
		for d, size := range m {
			if 1<<s < size {
				stride := m.stride(d)
				at := rank / stride % size
				to, upper := swingOn(size, at, s)
				steps = append(steps, turnout{rank + (to-at)*stride, upper})
			}
		}
		if len(steps) == before {
			return steps
		}
	}
}

// swingOn returns the partner of position i in step s on a ring, and whether i
// keeps the upper half. Even positions swing forward and odd ones back, by the
// alternating sum of powers of two.
//
// After the step, i deals with the positions that the later steps lead to.
// Among the even ones of these all are equal to i, or to the partner that i has
// in the next step, modulo 2^(s+2): bit s+1 separates the two halves. In the
// last step only the partner is left.
func swingOn(ring, i, s int) (to int, upper bool) {
	side := 1 - i%2*2
	to = (i + side*swingBy(s)) & (ring - 1)
	even := i
	switch {
	case 2<<s == ring:
		return to, i%2 == 1
	case i%2 == 1:
		even = i - swingBy(s+1)
	}
	return to, even>>(s+1)&1 == 1
}

// swingBy returns how far even positions swing in step s: 1 − 2 + 4 − 8 + …, with
// s + 1 terms, which is 1, -1, 3, -5, 11, ….
func swingBy(s int) (distance int) {
	for i, term := 0, 1; i <= s; i, term = i+1, -2*term {
		distance += term
	}
	return distance
}

func swing(b *sched.Builder, steps []turnout, p int) {
	mine, held := whole(p), sched.In
	given := make([]sched.Range, len(steps))
	for i, s := range steps {
		give, mid := mine, mine.Lo+mine.Len()/2
		if s.upper {
			mine.Lo, give.Hi = mid, mid
		} else {
			mine.Hi, give.Lo = mid, mid
		}
		b.Send(held, give, s.peer)
		recvCombine(b, held, sched.Out, mine, s.peer, sched.Right)
		b.EndStep()
		held, given[i] = sched.Out, give
	}
	b.Copy(held, mine, sched.Out, mine.Lo, sched.Replace)
	for i := len(steps) - 1; i >= 0; i-- {
		b.Send(sched.Out, mine, steps[i].peer)
		b.Recv(steps[i].peer, sched.Out, given[i], sched.Replace)
		b.EndStep()
		mine = join(mine, given[i])
	}
}

// torusParam is dimsParam for algorithms that are made for a ring, unless a
// torus is asked for.
var torusParam = Param{
	Key: "dims", Values: dimsParam.Values,
	Doc:      "the sizes of the torus, their product p; if not given, one ring",
	parse:    dimsParam.parse,
	choose:   func(c call) value { return sizesOf(c.p) },
	check:    dimsParam.check,
	variants: dimsParam.variants,
}
