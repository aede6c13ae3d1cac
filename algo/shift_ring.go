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
// Prefer it on a ring, where no message shares a link with another. Those of
// direct do: if they share bandwidth as well, they take as long but for the
// start-ups, and longer if they queue.
//
// Grama et al., 4.6.
var shiftRing = Algorithm{
	Collective: sched.Shift,
	Name:       "ring",
	Formula:    "min(q, p − q)(α + nβ), a shift by q",
	Prefer:     "a ring",
	cost:       func(c call, n float64) model.Cost { return moves(hopsRound(c.p, c.root), n) },
	build: func(c call) plan {
		hops := hopsRound(c.p, c.root)
		return plan{blocks: 1, scratch: spareTurn(hops), program: func(b *sched.Builder, rank int) {
			held := shiftRound(b, line{0, 1, c.p}, rank, c.root, sched.In, hops)
			b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
		}}
	},
}

// hopsRound returns how far it is to the place so many further round a line of n
// places, by the shorter way.
func hopsRound(n, by int) int { return min(by%n, n-by%n) }

// shiftRound moves what place me of a line holds so many places on, round its
// ends, and returns where it leaves what came instead. That is where turn says:
// hops are still to come, those of this line among them.
func shiftRound(b *sched.Builder, l line, me, by int, held sched.Buffer, hops int) sched.Buffer {
	next, previous := l.neighbours(me)
	if 2*(by%l.n) > l.n {
		next, previous = previous, next
	}
	for range hopsRound(l.n, by) {
		hops--
		b.Send(held, whole(1), next)
		b.Recv(previous, turn(hops), whole(1), sched.Replace)
		b.EndStep()
		held = turn(hops)
	}
	return held
}

// spareTurn returns how much scratch so many exchanges of one block need.
func spareTurn(exchanges int) int {
	if exchanges < 2 {
		return 0
	}
	return 1
}
