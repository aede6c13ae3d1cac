package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The butterfly with empty messages: a rank that would have the sum knows that
// all have arrived.
//
// Cost, p a power of two: lg p α. Other p: one message more for each rank that
// lacks a partner, up to p − 2 of them.
//
// Prefer dissemination unless p is a power of two and partners that exchange
// are cheaper than messages in a circle.
//
// Brooks, The Butterfly Barrier, 1986; Foster, 11.2.
var barrierButterfly = Algorithm{
	Collective: sched.Barrier,
	Name:       "butterfly",
	Formula:    "lg p α; p no power of two: up to (p − 2) α more",
	Prefer:     "p a power of two",
	cost:       func(c call, _ float64) model.Cost { return moves(butterflyMessages(c.p), 0) },
	build: func(c call) generator {
		return generator{program: func(b *sched.Builder, rank int) {
			for half := 1; half < c.p; half *= 2 {
				m := meet(c.p, rank, half)
				if m.peer >= 0 {
					token(b, m.peer, m.peer)
					b.Send(sched.In, whole(0), m.unpaired...)
					b.EndStep()
				} else if m.source >= 0 {
					b.Recv(m.source, sched.Out, whole(0), sched.Replace)
					b.EndStep()
				}
			}
		}}
	},
}

// token is a step that sends an empty message and takes another.
func token(b *sched.Builder, to, from int) {
	b.Send(sched.In, whole(0), to)
	b.Recv(from, sched.Out, whole(0), sched.Replace)
	b.EndStep()
}
