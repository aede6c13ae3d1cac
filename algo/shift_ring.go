package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vectors go round the ring of ranks, all at once, from neighbor to
// neighbor, until each is as far as the shift says. They take the shorter way
// round.
//
// Cost, for a shift by q: min(q, p − q)(α + nβ).
//
// Prefer it on a ring, where no message shares a link with another. The
// messages of direct share links there: if they also share bandwidth, they take
// as long but for the start-ups; if they queue, longer.
//
// Grama et al., 4.6.
var shiftRing = Algorithm{
	Collective: sched.Shift,
	Name:       "ring",
	Formula:    "min(q, p − q)(α + nβ), a shift by q",
	Prefer:     "a ring",
	cost:       func(c call, n float64) model.Cost { return moves(hopsRound(c.p, c.root), n) },
	build: func(c call) generator {
		hops := hopsRound(c.p, c.root)
		return generator{blocks: 1, scratch: spareTurn(hops), program: func(b *sched.Builder, rank int) {
			held := shiftRound(b, everyone(c.p), rank, c.root, sched.In, hops)
			b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
		}}
	},
}

// hopsRound returns the hops to the position that many further round a line of
// n positions, by the shorter way.
func hopsRound(n, by int) int { return min(by%n, n-by%n) }

// shiftRound moves the vector of position me of a line some positions on, round
// its ends, and returns where it leaves the vector that arrived instead: the
// buffer that turn chooses for the hops that are still to come, those of this
// line included.
func shiftRound(b *sched.Builder, l line, me, by int, held sched.Buffer, hops int) sched.Buffer {
	next, previous := neighbors(l, me)
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

// spareTurn returns the scratch blocks that some exchanges of one block need.
func spareTurn(exchanges int) int {
	if exchanges < 2 {
		return 0
	}
	return 1
}
