package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The rotated broadcast reversed: the vector is cut in lg p pieces, each is
// reduced as binomial does, and every piece takes the dimensions of the
// hypercube in another order, so that no link carries two pieces in one step.
//
// Cost, all ports: lg p α + nβ + n lg p γ. A rank combines what comes through
// its ports one after another, so the γ is that of binomial.
//
// Prefer it for vectors of middling length on a hypercube whose nodes use all
// their links at once, if combining is cheap. The operator must commute, because
// most pieces do not meet the nearest rank first.
//
// Johnsson, Ho 1989.
var reduceRotated = Algorithm{
	Collective:   sched.Reduce,
	Name:         "rotated",
	Restrictions: Restrictions{PowerOfTwo: true, Commutative: true, AllPort: true},
	Formula:      "all ports: lg p α + nβ + n lg p γ",
	Prefer:       "a hypercube that uses all its links at once",
	cost: func(c call, n float64) model.Cost {
		cost := bcastRotated.cost(c, n)
		cost.Combines = cost.Startups * n
		return cost
	},
	build: func(c call) generator {
		d := floorLog(c.p)
		return generator{blocks: max(1, d), scratch: spare(c.p, d), program: func(b *sched.Builder, rank int) {
			held, kept := sched.In, keptBy(rank, c.root)
			for bit := range d {
				for piece := range d {
					r := rotation{d, piece + 1}
					peer, label := rank^r.link(bit), r.label(rank^c.root)
					switch {
					case label&(1<<bit-1) > 0: // its turn is over
					case label>>bit&1 == 0:
						recvCombine(b, held, kept, one(piece), peer, beside(rank, peer))
					default:
						b.Send(held, one(piece), peer)
					}
				}
				b.EndStep()
				held = kept
			}
			if d == 0 {
				b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
			}
		}}
	},
}
