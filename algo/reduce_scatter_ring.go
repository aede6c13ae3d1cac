package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each block goes round the ring of ranks and gathers their contributions: it
// starts at the rank after its owner, and reaches its owner complete.
//
// Cost: (p − 1) α + n (p−1)/p (β + γ).
//
// All messages are between neighbors and none shares a link. Prefer it for long
// blocks, if p is no power of two or distance costs. The operator must commute,
// because only one block starts at rank 0.
//
// Grama et al., 4.2.
var reduceScatterRing = Algorithm{
	Collective:   sched.ReduceScatter,
	Name:         "ring",
	Restrictions: Restrictions{Commutative: true},
	Formula:      "(p − 1) α + n (p−1)/p (β + γ)",
	Prefer:       "long blocks",
	cost:         func(c call, n float64) model.Cost { return sums(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			held := scatterRound(b, everyone(c.p), rank, 0, sched.In)
			b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
		}}
	},
}

// scatterRound combines, round a line whose ends are neighbors, the parts that
// its positions stand for. Position me finds its operands in held, and leaves
// its own part in Out if that is a single rank's, or else in Scratch. The part
// of rank 0 is block first. It returns where position me has its part.
func scatterRound(b *sched.Builder, l line, me, first int, held sched.Buffer) sched.Buffer {
	next, previous := neighbors(l, me)
	own := held
	for step := 1; step < l.n; step++ {
		into := sched.Scratch
		if step == l.n-1 && l.stride == 1 {
			into = sched.Out
		}
		b.Send(held, shifted(part(l, me-step), first), next)
		recvCombine(b, own, into, shifted(part(l, me-step-1), first), previous, sched.Left)
		b.EndStep()
		held = into
	}
	return held
}
