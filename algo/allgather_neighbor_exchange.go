package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Neighbors in the circle of ranks exchange blocks: the ranks of a pair first,
// 0 with 1, 2 with 3, then each with its other neighbor, and so on to and fro.
// After the first step a rank has the two blocks of its pair; in every further
// one it gives the two that came last, and takes two others.
//
// Cost: p/2 α + n (p−1)/p β.
//
// It is ring with half the start-ups. Messages go both ways between neighbors,
// and none shares a link if links do both at once. Prefer it to ring if p is
// even and blocks are of middling length.
//
// Chen, Zhang, Zhang, Yuan, Performance Evaluation of Allgather Algorithms on
// Terascale Linux Cluster with Fast Ethernet, 2005.
var allgatherNeighborExchange = Algorithm{
	Collective:   sched.AllGather,
	Name:         "neighbor-exchange",
	Restrictions: Restrictions{EvenRanks: true},
	Formula:      "p/2 α + n (p−1)/p β",
	Prefer:       "blocks of middling length",
	cost: func(c call, n float64) model.Cost {
		return model.Cost{Startups: float64(c.p / 2), Words: share(n, c.p)}
	},
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			if c.p > 1 {
				neighborExchange(b, c.p, rank)
			}
		}}
	},
}

func neighborExchange(b *sched.Builder, p, rank int) {
	other := rank ^ 1
	b.Send(sched.In, one(rank), other)
	b.Recv(other, sched.Out, one(other), sched.Replace)
	b.EndStep()
	pair := rank &^ 1 // the first block of the rank's pair
	give, way := pair, other-rank
	for step := 1; step < p/2; step++ {
		// What comes is in turn from one side and from the other, and every
		// second time from one pair further away.
		way = -way
		peer := (rank + way + p) % p
		take := (pair + way*2*((step+1)/2) + p) % p
		b.Send(sched.Out, sched.Range{Lo: give, Hi: give + 2}, peer)
		b.Recv(peer, sched.Out, sched.Range{Lo: take, Hi: take + 2}, sched.Replace)
		b.EndStep()
		give = take
	}
}
