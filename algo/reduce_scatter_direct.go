package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Every rank sends every other rank the block that the other combines, in a
// single step. It is pairwise without the end of a step after each message. The
// blocks are combined in the order that the schedule lists, so rank order is
// kept, and the result does not depend on the order of arrival.
//
// Cost: (p − 1) α + n (p−1)/p (β + γ) with one port. With a link for each pair
// of ranks, all of them used at once, α + n/p β + n (p−1)/p γ.
//
// Prefer it among few ranks, and in shared memory, where each rank reads the
// blocks of the others in place.
var reduceScatterDirect = Algorithm{
	Collective: sched.ReduceScatter,
	Name:       "direct",
	Formula:    "(p − 1) α + n (p−1)/p (β + γ); all ports: α + n/p β + n (p−1)/p γ",
	Prefer:     "few ranks, shared memory",
	cost:       func(c call, n float64) model.Cost { return sums(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			contribute(b, everyone(c.p), rank, location{sched.In, 0}, location{sched.Out, 0}, location{sched.Scratch, 0}, true)
		}}
	},
}
