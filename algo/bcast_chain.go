package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The ranks stand in a row, the root first, and hand the vector from one to the
// next in pieces: while a rank takes a piece, it passes on the one before.
//
// Cost, k pieces: (p − 2 + k)(α + n/k β). The best k is √((p − 2) nβ/α).
//
// With many pieces the term in n nears nβ, the least there is, and all messages
// are between neighbors. Prefer it for very long vectors and few ranks: the
// row has to fill first. circulant fills in lg p steps.
//
// Known as pipelined broadcast; Barnett, Payne, van de Geijn, Watts,
// Broadcasting on Meshes with Wormhole Routing, 1996.
var bcastChain = Algorithm{
	Collective: sched.Bcast,
	Name:       "chain",
	Params:     []Param{bestSegment(chainFill)},
	Formula:    "(p − 2 + k)(α + n/k β), k pieces",
	Prefer:     "very long vectors, few ranks",
	cost: func(c call, n float64) model.Cost {
		k := c.pieces(c.number("segment"))
		return moves(chainSteps(c.p, k), n/float64(k))
	},
	build: func(c call) generator {
		k := c.pieces(c.number("segment"))
		return generator{blocks: k, program: func(b *sched.Builder, rank int) {
			chain(b, c.p, c.root, rank, k)
		}}
	},
}

func chain(b *sched.Builder, p, root, rank, pieces int) {
	position := (rank - root + p) % p
	if position == 0 {
		b.Copy(sched.In, whole(pieces), sched.Out, 0, sched.Replace)
	}
	for piece := range pieces + 1 {
		if position > 0 && piece < pieces {
			b.Recv((rank-1+p)%p, sched.Out, one(piece), sched.Replace)
		}
		if position < p-1 && piece > 0 {
			b.Send(sched.Out, one(piece-1), (rank+1)%p)
		}
		b.EndStep()
	}
}

// chainSteps returns the number of steps that the pieces take.
func chainSteps(p, pieces int) int {
	if p == 1 {
		return 0
	}
	return p - 2 + pieces
}

// chainFill returns the number of steps, less one, that the first piece takes.
func chainFill(p int) float64 { return float64(p - 2) }
