package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The word that all have come gathers along a binomial tree at rank 0, and goes
// back along the same tree.
//
// Cost: 2⌈lg p⌉ α.
//
// It sends the fewest messages, 2(p − 1) in all, and every rank talks to few
// others. dissemination takes half the steps.
//
// Mellor-Crummey, Scott, Algorithms for Scalable Synchronization on
// Shared-Memory Multiprocessors, 1991 (the tournament barrier).
var barrierTree = Algorithm{
	Collective: sched.Barrier,
	Name:       "tree",
	Formula:    "2⌈lg p⌉ α",
	Prefer:     "few messages in all",
	cost:       func(c call, _ float64) model.Cost { return moves(2*ceilLog(c.p), 0) },
	build: func(c call) generator {
		return generator{program: func(b *sched.Builder, rank int) {
			arrive(b, everyone(c.p), rank)
			release(b, everyone(c.p), rank)
		}}
	},
}

// arrive tells the first position of a sequence that all have come.
func arrive(b *sched.Builder, l sequence, me int) {
	for bit := 1; bit < l.size(); bit *= 2 {
		if me&bit != 0 {
			tell(b, l.rank(me-bit))
			return
		}
		if me+bit < l.size() {
			hear(b, l.rank(me+bit))
		}
	}
}

// release tells all positions of a sequence what the first one knows.
func release(b *sched.Builder, l sequence, me int) {
	bit := 1
	for bit < l.size() && me&bit == 0 {
		bit *= 2
	}
	if me > 0 {
		hear(b, l.rank(me-bit))
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if me+bit < l.size() {
			tell(b, l.rank(me+bit))
		}
	}
}

// tell is a step that sends an empty message.
func tell(b *sched.Builder, to int) {
	b.Send(sched.In, whole(0), to)
	b.EndStep()
}

// hear is a step that takes an empty message.
func hear(b *sched.Builder, from int) {
	b.Recv(from, sched.Out, whole(0), sched.Replace)
	b.EndStep()
}
