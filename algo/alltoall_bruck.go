package algo

import (
	"iter"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks stand in a circle, and each block has some way to go: a number of positions
// less than p. In one step all blocks whose way has the bit 1 go one position
// further, in the next those whose way has the bit 2 go two positions, then four,
// and so on. Blocks are kept by their way, so those that go are runs of 1, 2, 4,
// … blocks. They are packed in one message, and unpacked to the same positions.
//
// Cost: ⌈lg p⌉ α + n/2 lg p β if p is a power of two; else a little less β,
// since fewer than half the ways have the higher bits.
//
// No algorithm takes fewer steps, for any p. Prefer it for short blocks: each is sent
// lg p / 2 times on average, and copied when it is packed and unpacked.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby, Efficient Algorithms for All-to-All
// Communications in Multiport Message-Passing Systems, 1997.
var alltoallBruck = Algorithm{
	Collective:   sched.AllToAll,
	Name:         "bruck",
	Restrictions: Restrictions{EqualParts: true},
	Formula:      "⌈lg p⌉ α + n/2 lg p β",
	Prefer:       "short blocks, any p",
	cost: func(c call, n float64) model.Cost {
		sent := 0
		for d := 1; d < c.p; d *= 2 {
			for run := range waysWith(d, c.p) {
				sent += run.Len()
			}
		}
		return model.Cost{Startups: float64(ceilLog(c.p)), Words: float64(sent) * n / float64(c.p)}
	},
	build: func(c call) generator {
		return generator{blocks: c.p, scratch: 2 * c.p, program: func(b *sched.Builder, rank int) {
			goByBits(b, c.p, rank)
		}}
	},
}

// goByBits keeps the p blocks by their way in Scratch, and after them has room
// for half of them to go, and for half to come.
func goByBits(b *sched.Builder, p, rank int) {
	b.Copy(sched.In, sched.Range{Lo: rank, Hi: p}, sched.Scratch, 0, sched.Replace)
	b.Copy(sched.In, whole(rank), sched.Scratch, p-rank, sched.Replace)
	for d := 1; d < p; d *= 2 {
		pack := sched.Range{Lo: p, Hi: p}
		for run := range waysWith(d, p) {
			b.Copy(sched.Scratch, run, sched.Scratch, pack.Hi, sched.Replace)
			pack.Hi += run.Len()
		}
		come := shifted(pack, p/2)
		b.Send(sched.Scratch, pack, (rank+d)%p)
		b.Recv((rank-d+p)%p, sched.Scratch, come, sched.Replace)
		b.EndStep()
		for run := range waysWith(d, p) {
			b.Copy(sched.Scratch, shifted(whole(run.Len()), come.Lo), sched.Scratch, run.Lo, sched.Replace)
			come.Lo += run.Len()
		}
	}
	for way := range p {
		b.Copy(sched.Scratch, one(way), sched.Out, (rank-way+p)%p, sched.Replace)
	}
}

// waysWith returns the ways less than p that have the bit d, run by run.
func waysWith(d, p int) iter.Seq[sched.Range] {
	return func(yield func(sched.Range) bool) {
		for lo := d; lo < p; lo += 2 * d {
			if !yield(sched.Range{Lo: lo, Hi: min(lo+d, p)}) {
				return
			}
		}
	}
}
