package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The tree-structured sum: the back half of the ranks send to the front half,
// which goes on, until the first is left. Where the number of active ranks is
// odd, the one in the middle sits the step out. Other roots turn the ranks
// round until they come first.
//
// Cost: ⌈lg p⌉ (α + nβ + nγ).
//
// It is the textbook's. The operator must commute, because a rank first meets
// one half the ranks away. On a network where distance counts, binomial is
// better: half of its messages are between neighbors.
//
// Pacheco, An Introduction to Parallel Programming, 3.4.1.
var reduceTree = Algorithm{
	Collective:   sched.Reduce,
	Name:         "tree",
	Restrictions: Restrictions{Commutative: true},
	Formula:      "⌈lg p⌉ (α + nβ + nγ)",
	Prefer:       "short vectors; teaching",
	cost:         func(c call, n float64) model.Cost { return sums(ceilLog(c.p), n) },
	build: func(c call) generator {
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			held := sumTree(b, c.p, c.root, rank, keptBy(rank, c.root))
			if rank == c.root {
				b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
			}
		}}
	},
}

// sumTree combines block 0 of every In at the root. Other ranks collect in
// kept. It returns where the combination is if rank is the root.
func sumTree(b *sched.Builder, p, root, rank int, kept sched.Buffer) sched.Buffer {
	position := (rank - root + p) % p
	held := sched.In
	for active := p; active > 1; {
		half, next := active/2, active-active/2
		switch {
		case position >= next:
			b.Send(held, whole(1), (position-next+root)%p)
			b.EndStep()
			return held
		case position < half:
			recvCombine(b, held, kept, whole(1), (position+next+root)%p, sched.Right)
			b.EndStep()
			held = kept
		}
		active = next
	}
	return held
}
