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
			gatherRound(b, everyone(c.p), rank, sched.Out, 0)
		}}
	},
}

// gatherRound sends round a row, whose ends are neighbors, the parts that its positions
// stand for, until each has all of them in a buffer. Those that it stands for are there
// to begin with. The first part is block first.
func gatherRound(b *sched.Builder, l partRow, me int, buffer sched.Buffer, first int) {
	next, previous := neighbors(l, me)
	for step := range l.size() - 1 {
		b.Send(buffer, shifted(part(l, me-step), first), next)
		b.Recv(previous, buffer, shifted(part(l, me-step-1), first), sched.Replace)
		b.EndStep()
	}
}
