package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each rank holds the combination of a run of ranks that ends with itself. It
// sends it to the rank 1 further, then to the one 2 further, then 4, and so on,
// and combines the vector from as far before it to the left of its own: the run
// doubles with every step, until it begins with rank 0.
//
// Cost: ⌈lg p⌉ (α + nβ + nγ), for any p. No algorithm takes fewer steps.
//
// It is the scan to prefer.
//
// Hillis, Steele, Data Parallel Algorithms, 1986; Grama et al., 4.3, has it with
// exchanges on a hypercube.
var scanRecursiveDoubling = Algorithm{
	Collective: sched.Scan,
	Name:       "recursive-doubling",
	Formula:    "⌈lg p⌉ (α + nβ + nγ)",
	Prefer:     "always",
	cost:       func(c call, n float64) model.Cost { return sums(ceilLog(c.p), n) },
	build: func(c call) generator {
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			held, coming := sched.In, 0
			if rank == 0 {
				b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
			} else {
				coming = floorLog(rank) + 1
			}
			for d := 1; d < c.p; d *= 2 {
				if rank+d < c.p {
					b.Send(held, whole(1), rank+d)
				}
				if d <= rank {
					coming--
					recvCombine(b, held, turn(coming), whole(1), rank-d, sched.Left)
					held = turn(coming)
				}
				b.EndStep()
			}
		}}
	},
}
