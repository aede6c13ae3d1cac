package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Every rank sends its vector straight to the rank at the distance of the shift.
//
// Cost: α + nβ.
//
// Prefer it where every two ranks have a way of their own, and on a hypercube,
// whose E-cube routes share no link. On a ring or torus they do: by 6 on 4×4
// ranks, messages that queue take as long as seven one after another, where mesh
// takes four.
//
// Grama et al., 4.6.
var shiftDirect = Algorithm{
	Collective: sched.Shift,
	Name:       "direct",
	Formula:    "α + nβ",
	Prefer:     "all networks but rings and tori",
	cost: func(c call, n float64) model.Cost {
		if c.root == 0 {
			return model.Cost{}
		}
		return moves(1, n)
	},
	build: func(c call) generator {
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			if c.root == 0 {
				b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
				return
			}
			b.Send(sched.In, whole(1), (rank+c.root)%c.p)
			b.Recv((rank-c.root+c.p)%c.p, sched.Out, whole(1), sched.Replace)
		}}
	},
}
