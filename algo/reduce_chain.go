package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The ranks stand in a row, the root last. Each combines what comes with its
// own and hands it to the next, in pieces: while a rank takes a piece, it passes
// on the one before.
//
// The order of the row lets every partial sum stand for a run of ranks, so that
// they stay in order. To root 0 the row goes down from the last rank, to the
// last rank it goes up from 0. For a root r in between it starts at r itself,
// goes up to the last rank, on from r−1 down to 0, and ends at r: one message
// more, but still one at a time for every rank.
//
// Cost, k pieces: (p − 2 + k)(α + n/k β + n/k γ), and one α + n/k β more if the
// root is in between. The best k is √((p − 2) n(β+γ)/α).
//
// Prefer it for very long vectors and few ranks, and for operators that do not
// commute; circulant fills in lg p steps, for those that do.
//
// The reverse of the broadcast by a chain; the row for a root in between is
// ours.
var reduceChain = Algorithm{
	Collective: sched.Reduce,
	Name:       "chain",
	Params:     []Param{bestSegment(chainFill)},
	Formula:    "(p − 2 + k)(α + n/k β + n/k γ), k pieces; root neither first nor last: α + n/k β more",
	Prefer:     "very long vectors, few ranks, any operator",
	cost: func(c call, n float64) model.Cost {
		k := c.pieces(c.number("segment"))
		cost := sums(chainSteps(c.p, k), n/float64(k))
		if (row{c.p, c.root}).end() != c.root {
			cost = cost.Plus(moves(1, n/float64(k)))
		}
		return cost
	},
	build: func(c call) generator {
		k := c.pieces(c.number("segment"))
		return generator{blocks: k, scratch: spare(c.p, k), program: func(b *sched.Builder, rank int) {
			reduceAlong(b, row{c.p, c.root}, rank, k)
		}}
	},
}

// A row is the order in which a chain of p ranks reduces to the root: up from a
// start to the last rank, and then from below the start down to 0.
type row struct{ p, root int }

func (w row) start() int {
	switch w.root {
	case 0:
		return w.p - 1
	case w.p - 1:
		return 0
	}
	return w.root
}

// position returns how many ranks stand before a rank.
func (w row) position(rank int) int {
	if start := w.start(); rank >= start {
		return rank - start
	}
	return w.p - 1 - rank
}

// rank is the inverse of position.
func (w row) rank(position int) int {
	if rank := w.start() + position; rank < w.p {
		return rank
	}
	return w.p - 1 - position
}

// end returns the rank that has the result. If it is not the root, the root is
// at the start.
func (w row) end() int { return w.rank(w.p - 1) }

func reduceAlong(b *sched.Builder, w row, rank, pieces int) {
	position, end := w.position(rank), w.end()
	if rank == w.root && rank != end {
		thereAndBack(b, w.rank(1), end, min(w.p-1, pieces), pieces)
		return
	}
	next := w.root
	if rank != end {
		next = w.rank(position + 1)
	}
	if position == 0 {
		if rank == w.root { // alone
			b.Copy(sched.In, whole(pieces), sched.Out, 0, sched.Replace)
			return
		}
		for piece := range pieces {
			b.Send(sched.In, one(piece), next)
			b.EndStep()
		}
		return
	}
	previous, kept := w.rank(position-1), keptBy(rank, w.root)
	for piece := range pieces + 1 {
		if piece < pieces {
			recvCombine(b, sched.In, kept, one(piece), previous, beside(rank, previous))
		}
		if rank != w.root && piece > 0 {
			b.Send(kept, one(piece-1), next)
		}
		b.EndStep()
	}
}

// thereAndBack sends the pieces of In to one rank, and takes them complete from
// another, a given number of steps later.
func thereAndBack(b *sched.Builder, next, end, later, pieces int) {
	for piece := range pieces + later {
		if piece < pieces {
			b.Send(sched.In, one(piece), next)
		}
		if piece >= later {
			b.Recv(end, sched.Out, one(piece-later), sched.Replace)
		}
		b.EndStep()
	}
}
