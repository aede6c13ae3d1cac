package algo

import (
	"fmt"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Binomial with a radix: in every round each rank that has the vector sends it
// to k − 1 that do not, at once, so the number of ranks that have it grows k
// times. With k = 2 it is binomial.
//
// Cost with one port: up to (k − 1)⌈log_k p⌉ (α + nβ), more than binomial. But
// the k − 1 messages of a round are one multicast. Where that is no dearer than
// a message, as in memory, or start-ups overlap, ⌈log_k p⌉ rounds are what
// counts.
//
// Prefer it for short vectors in memory.
//
// Known as k-nomial from MVAPICH and MPICH; the intervals are those of binomial.
var bcastKnomial = Algorithm{
	Collective: sched.Bcast,
	Name:       "knomial",
	Params:     []Param{radixParam},
	Formula:    "≤ (k − 1)⌈log_k p⌉ (α + nβ), in ⌈log_k p⌉ rounds",
	Prefer:     "short vectors in memory",
	cost:       func(c call, n float64) model.Cost { return moves(knomialMessages(c.p, c.number("k")), n) },
	build: func(c call) generator {
		k := c.number("k")
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			if rank == c.root {
				b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
			}
			multicast(b, c.p, c.root, rank, k)
		}}
	},
}

func multicast(b *sched.Builder, p, root, rank, k int) {
	for v := (interval{0, p, root}); v.size() > 1; {
		own, others := v.shares(k)
		mine := own
		if rank == v.holder {
			b.Send(sched.Out, whole(1), holders(others)...)
			b.EndStep()
		}
		for _, share := range others {
			if rank == share.holder {
				b.Recv(v.holder, sched.Out, whole(1), sched.Replace)
				b.EndStep()
			}
			mine = either(share, mine, rank)
		}
		v = mine
	}
}

// shares cuts an interval of at least two positions in at most k, the holder's own
// and the others in order. All but the last are as long as the largest power of
// k that is less than the size.
func (v interval) shares(k int) (own interval, others []interval) {
	reach := powerBelow(v.size(), k)
	offset := (v.holder - v.lo) % reach
	for lo := v.lo; lo < v.hi; lo += reach {
		share := interval{lo, min(lo+reach, v.hi), lo + offset}
		switch {
		case share.has(v.holder):
			own = share
			continue
		case share.holder >= share.hi:
			share.holder = lo
		}
		others = append(others, share)
	}
	return own, others
}

// holders lists the holders of intervals.
func holders(all []interval) []int {
	ranks := make([]int, len(all))
	for i, v := range all {
		ranks[i] = v.holder
	}
	return ranks
}

// powerBelow returns the largest power of k that is less than n, for n ≥ 2.
func powerBelow(n, k int) int {
	power := 1
	for power*k < n {
		power *= k
	}
	return power
}

// knomialMessages returns how many messages, one after another, are on the
// longest path.
func knomialMessages(p, k int) (messages int) {
	for p > 1 {
		power := powerBelow(p, k)
		messages += (p - 1) / power
		p = power
	}
	return messages
}

// radixParam is for trees and exchanges of more than two ranks at a time.
var radixParam = Param{
	Key: "k", Default: "4", Values: "a number",
	Doc:   "how many ranks meet in a round, 2 or more",
	parse: parseNumber,
	check: func(_ call, v value) error {
		if v.number < 2 {
			return fmt.Errorf("want 2 or more")
		}
		return nil
	},
	variants: func(int) []string { return []string{"2", "3", "8"} },
	candidates: func(c call) (all []value) { // a round takes k − 1 messages, so that large ones are seldom best
		for k := 2; k < c.p; k++ {
			all = append(all, numberOf(k))
			if k >= 32 {
				k = 2*k - 1
			}
		}
		return append(all, numberOf(max(2, c.p)))
	},
}
