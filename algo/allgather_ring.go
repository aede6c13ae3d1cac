package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The blocks go round: in every step each rank sends to the next the block that
// came last, beginning with its own.
//
// Cost: (p − 1) α + n (p−1)/p β.
//
// All messages are between neighbors and none shares a link, on a ring and on
// all that has one. Prefer it for long blocks, and where distance or sharing
// costs; recursive-doubling starts fewer messages.
//
// Grama et al., 4.2.
var allgatherRing = Algorithm{
	Collective: sched.AllGather,
	Name:       "ring",
	Formula:    "(p − 1) α + n (p−1)/p β",
	Prefer:     "long blocks",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			gatherRound(b, line{0, 1, c.p}, rank, 0)
		}}
	},
}

// gatherRound sends round a line, whose ends are neighbors, the parts that its
// positions stand for, until every Out has all of them. Position me begins with
// its own in Out. The part of rank 0 is block first.
func gatherRound(b *sched.Builder, l line, me, first int) {
	next, previous := l.neighbors(me)
	for step := range l.n - 1 {
		b.Send(sched.Out, shifted(l.part(me-step), first), next)
		b.Recv(previous, sched.Out, shifted(l.part(me-step-1), first), sched.Replace)
		b.EndStep()
	}
}
