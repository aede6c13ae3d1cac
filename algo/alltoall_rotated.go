package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each block is cut in lg p pieces, one for each dimension of the hypercube, and
// the pieces are stored and forwarded as hypercube does. But the pieces j begin
// with dimension j, then take the dimension above, and so on round to j − 1. So
// in each step they go along different dimensions, and every link carries one
// message in each direction.
//
// Pieces are kept by the label of their path: the XOR of their source and their
// destination. The pieces whose path has a bit go along its dimension; they are
// packed in one message, and unpacked to the same positions.
//
// Cost, all ports: lg p α + n/2 β. The β is that of hypercube divided by lg p.
//
// Prefer it on a hypercube whose nodes use all their links at once.
//
// Johnsson, Ho 1989; Grama et al., 4.7.2.
var alltoallRotated = Algorithm{
	Collective:   sched.AllToAll,
	Name:         "rotated",
	Restrictions: Restrictions{PowerOfTwo: true, EqualParts: true, EqualBlocks: true, AllPort: true},
	Formula:      "all ports: lg p α + n/2 β",
	Prefer:       "a hypercube that uses all its links at once",
	cost: func(c call, n float64) model.Cost {
		return model.Cost{Startups: float64(floorLog(c.p)), Words: beyondOne(c.p, n/2)}
	},
	build: func(c call) generator {
		q := cubeOf(c.p)
		return q.generator(2*q.p*q.d, func(b *sched.Builder, rank int) {
			q.eachPiece(0, func(at, piece, way int) {
				b.Copy(sched.In, one(q.block(rank^way, piece)), sched.Scratch, at, sched.Replace)
			})
			for bit := range q.d {
				for piece := range q.d {
					q.goAlong(b, piece, bit, rank^rotation{q.d, piece}.link(bit))
				}
				b.EndStep()
				for piece := range q.d {
					q.unpack(b, piece, bit)
				}
			}
			q.eachPiece(0, func(at, piece, way int) {
				b.Copy(sched.Scratch, one(at), sched.Out, q.block(rank^way, piece), sched.Replace)
			})
		})
	},
}

// packed returns where in Scratch half of a piece of all ranks is packed to be
// sent, and where half of it is received.
func (q cube) packed(piece int) (out, in sched.Range) {
	out = shifted(whole(q.p/2), q.p*q.d+piece*q.p)
	return out, shifted(out, q.p/2)
}

// goAlong sends a peer the blocks of a piece whose path has the bit.
func (q cube) goAlong(b *sched.Builder, piece, bit, peer int) {
	out, in := q.packed(piece)
	at := out.Lo
	for run := range waysWith(1<<bit, q.p) {
		b.Copy(sched.Scratch, shifted(run, piece*q.p), sched.Scratch, at, sched.Replace)
		at += run.Len()
	}
	b.Send(sched.Scratch, out, peer)
	b.Recv(peer, sched.Scratch, in, sched.Replace)
}

// unpack copies the received blocks to the positions of the sent ones.
func (q cube) unpack(b *sched.Builder, piece, bit int) {
	_, in := q.packed(piece)
	for run := range waysWith(1<<bit, q.p) {
		b.Copy(sched.Scratch, shifted(whole(run.Len()), in.Lo), sched.Scratch, piece*q.p+run.Lo, sched.Replace)
		in.Lo += run.Len()
	}
}
