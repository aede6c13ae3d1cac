package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Recursive doubling: in every step each rank that has the vector sends it to
// one that does not, so the number of ranks that have it doubles.
//
// In descending order the first message goes farthest, to the other half of the
// ranks, and each half goes on by itself. Messages of a step then stay in
// separate intervals, so that on a line, ring, mesh or tree no link carries two
// of them. In ascending order the first message goes to the neighbor; messages
// of later steps overlap, which congests every network but a hypercube and a
// crossbar.
//
// Cost: ⌈lg p⌉ (α + nβ).
//
// Prefer it when start-up dominates, that is, for short vectors. Long ones are
// sent ⌈lg p⌉ times from end to end, where scatter-allgather needs two.
//
// Grama et al., 4.1; the intervals are our way to keep the pattern for any p
// and any root, see interval.
var bcastBinomial = Algorithm{
	Collective: sched.Bcast,
	Name:       "binomial",
	Params: []Param{{
		Key: "order", Default: "descending", Values: "descending|ascending",
		Doc: "which distance comes first: the farthest or the nearest",
	}},
	Formula: "⌈lg p⌉ (α + nβ)",
	Prefer:  "short vectors",
	cost:    func(c call, n float64) model.Cost { return moves(ceilLog(c.p), n) },
	build: func(c call) generator {
		ascending := c.word("order") == "ascending"
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			if rank == c.root {
				b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
			}
			if ascending {
				broadcastAscending(b, c.p, c.root, rank)
			} else {
				broadcast(b, everyone(c.p), c.root, rank, sched.Out, whole(1))
			}
		}}
	},
}

// broadcast hands blocks of a buffer of the root to all positions of a sequence, farthest
// first. Root and me are positions.
func broadcast(b *sched.Builder, l sequence, root, me int, buffer sched.Buffer, blocks sched.Range) {
	for v := (interval{0, l.size(), root}); v.size() > 1; {
		own, other := v.halves()
		switch me {
		case own.holder:
			b.Send(buffer, blocks, l.rank(other.holder))
			b.EndStep()
		case other.holder:
			b.Recv(l.rank(own.holder), buffer, blocks, sched.Replace)
			b.EndStep()
		}
		v = either(own, other, me)
	}
}

// broadcastAscending broadcasts among p ranks, nearest first. A rank is known
// by its distance from the root: the XOR of the two if p is a power of two, so
// that partners differ in one bit, and else their difference.
func broadcastAscending(b *sched.Builder, p, root, rank int) {
	xor := p&(p-1) == 0
	distance := (rank - root + p) % p
	if xor {
		distance = rank ^ root
	}
	at := func(distance int) int {
		if xor {
			return distance ^ root
		}
		return (distance + root) % p
	}
	bit := 1
	if distance > 0 {
		bit = 1 << floorLog(distance)
		b.Recv(at(distance-bit), sched.Out, whole(1), sched.Replace)
		b.EndStep()
		bit *= 2
	}
	for ; distance+bit < p; bit *= 2 {
		b.Send(sched.Out, whole(1), at(distance+bit))
		b.EndStep()
	}
}
