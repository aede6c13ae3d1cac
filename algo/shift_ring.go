package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vectors go round the ring of ranks, all at once, from neighbour to
// neighbour, until each is as far as the shift says. They take the shorter way
// round.
//
// Cost, for a shift by q: min(q, p − q)(α + nβ).
//
// It shows what a shift costs where there are no other links than those of a
// ring; a network that finds its way does so by itself, with direct.
//
// Grama et al., 4.6.
var shiftRing = Algorithm{
	Collective: sched.Shift,
	Name:       "ring",
	Formula:    "min(q, p − q)(α + nβ), a shift by q",
	Prefer:     "a ring, and no more",
	cost:       func(c call, n float64) model.Cost { return moves(min(c.root, c.p-c.root), n) },
	build: func(c call) plan {
		hops, direction := c.root, 1
		if c.p-c.root < hops {
			hops, direction = c.p-c.root, -1
		}
		scratch := 1
		if hops < 2 {
			scratch = 0
		}
		return plan{blocks: 1, scratch: scratch, program: func(b *sched.Builder, rank int) {
			next, previous := (rank+direction+c.p)%c.p, (rank-direction+c.p)%c.p
			held := sched.In
			for i := hops - 1; i >= 0; i-- {
				b.Send(held, whole(1), next)
				b.Recv(previous, turn(i), whole(1), sched.Replace)
				b.EndStep()
				held = turn(i)
			}
			b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
		}}
	},
}
