package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vector is cut in lg p pieces, one for each dimension of the hypercube, and
// every piece is broadcast as binomial does. But piece j begins with dimension
// j, then takes the dimension below, and so on round to j + 1. So in each step
// the pieces go along different dimensions, and no link carries two of them.
//
// Cost, all ports: lg p α + nβ. Binomial, which has use for one port only, costs
// lg p times the β.
//
// Prefer it for vectors of middling length on a hypercube whose nodes use all
// their links at once. Through a single port it is no better than binomial.
//
// Grama et al., 4.7.2; Johnsson, Ho 1989.
var bcastRotated = Algorithm{
	Collective:   sched.Bcast,
	Name:         "rotated",
	Restrictions: Restrictions{PowerOfTwo: true, AllPort: true},
	Formula:      "all ports: lg p α + nβ",
	Prefer:       "a hypercube that uses all its links at once",
	cost: func(c call, n float64) model.Cost {
		return model.Cost{Startups: float64(floorLog(c.p)), Words: beyondOne(c.p, n)}
	},
	build: func(c call) generator {
		d := floorLog(c.p)
		return generator{blocks: max(1, d), program: func(b *sched.Builder, rank int) {
			if rank == c.root {
				b.Copy(sched.In, whole(max(1, d)), sched.Out, 0, sched.Replace)
			}
			for bit := d - 1; bit >= 0; bit-- {
				for piece := range d {
					r := rotation{d, piece + 1}
					peer, label := rank^r.link(bit), r.label(rank^c.root)
					switch {
					case label&(1<<bit-1) > 0: // its turn is later
					case label>>bit&1 == 0:
						b.Send(sched.Out, one(piece), peer)
					default:
						b.Recv(peer, sched.Out, one(piece), sched.Replace)
					}
				}
				b.EndStep()
			}
		}}
	},
}

// beyondOne returns n, but 0 if there is only one rank.
func beyondOne(p int, n float64) float64 {
	if p == 1 {
		return 0
	}
	return n
}
