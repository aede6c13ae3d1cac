package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks form groups of 2, then 4, then 8, and so on until one group has all
// ranks. In each step a rank exchanges with the rank at its own position in the
// other half of its group, and both combine, so that all ranks of a group hold
// the group's sum. Where p is no power of two, the last group lacks partners;
// its first rank then sends the sum to the ranks of the front half that have no
// partner.
//
// Cost, p a power of two: lg p (α + nβ + nγ). Other p: one message more for
// each rank that lacks a partner, all from the same rank: up to p − 2 of them.
//
// Ranks stay in order. Prefer recursive-doubling unless p is a power of two,
// where both are the same.
//
// Pacheco, An Introduction to Parallel Programming, 3.4.4 and programming
// assignment 3.4.
var allreduceButterfly = Algorithm{
	Collective: sched.AllReduce,
	Name:       "butterfly",
	Formula:    "lg p (α + nβ + nγ); p no power of two: up to (p − 2)(α + nβ) more",
	Prefer:     "p a power of two; teaching",
	cost: func(c call, n float64) model.Cost {
		cost := moves(butterflyMessages(c.p), n)
		cost.Combines = float64(ceilLog(c.p)) * n
		return cost
	},
	build: func(c call) generator {
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			butterfly(b, c.p, rank)
		}}
	},
}

// butterfly combines block 0 of every In in every Out.
func butterfly(b *sched.Builder, p, rank int) {
	exchanges := 0
	for half := 1; half < p; half *= 2 {
		if rank^half < p {
			exchanges++
		}
	}
	held := sched.In
	for half := 1; half < p; half *= 2 {
		m := meet(p, rank, half)
		switch {
		case m.peer >= 0:
			exchanges--
			b.Send(held, whole(1), m.peer)
			recvCombine(b, held, turn(exchanges), whole(1), m.peer, beside(rank, m.peer))
			b.EndStep()
			held = turn(exchanges)
			b.Send(held, whole(1), m.unpaired...)
			b.EndStep()
		case m.source >= 0:
			held = turn(exchanges)
			b.Recv(m.source, held, whole(1), sched.Replace)
			b.EndStep()
		}
	}
	b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
}

// A pairing is one step of the butterfly for one rank, when two groups of half
// ranks become one. A rank has a peer, or a source, or neither, if its group
// has no back half.
type pairing struct {
	peer     int   // the rank to exchange with, or -1
	source   int   // the rank that sends it the sum, or -1
	unpaired []int // the ranks to send the sum to afterwards
}

func meet(p, rank, half int) pairing {
	m := pairing{peer: rank ^ half, source: -1}
	first := rank &^ (2*half - 1)
	back := first + half
	if m.peer >= p {
		m.peer = -1
		if back < p {
			m.source = first
		}
		return m
	}
	if rank == first && p-half < back {
		for r := p - half; r < back; r++ {
			m.unpaired = append(m.unpaired, r)
		}
	}
	return m
}

// butterflyMessages returns how many messages, one after another, are on the
// longest path: that of the first rank of the last group.
func butterflyMessages(p int) int {
	full, last := 0, 0 // on the paths of a full group, and of the last
	for half := 1; half < p; half *= 2 {
		first := (p - 1) &^ (2*half - 1)
		if members := p - first; members > half {
			last = max(full, last) + 1 + 2*half - members
		}
		full++
	}
	return last
}
