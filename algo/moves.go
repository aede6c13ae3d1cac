package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// whole is all n blocks of a vector.
func whole(n int) sched.Range { return sched.Range{Lo: 0, Hi: n} }

// one is a single block.
func one(block int) sched.Range { return sched.Range{Lo: block, Hi: block + 1} }

// shifted returns the range moved on by a number of blocks.
func shifted(r sched.Range, by int) sched.Range { return sched.Range{Lo: r.Lo + by, Hi: r.Hi + by} }

// recvCombine receives blocks and leaves in one buffer what another holds
// combined with them. Where the two differ this is one operation with three
// operands, and the step may send what is held.
func recvCombine(b *sched.Builder, held, into sched.Buffer, blocks sched.Range, from int, how sched.Combine) {
	b.Copy(held, blocks, into, blocks.Lo, sched.Replace)
	b.Recv(from, into, blocks, how)
}

// beside returns how a rank combines a peer's vector so that ranks stay in
// order: the vector of a higher rank goes to the right.
func beside(rank, peer int) sched.Combine {
	if peer > rank {
		return sched.Right
	}
	return sched.Left
}

// keptBy returns where a rank collects a result for which only the root has an
// Out.
func keptBy(rank, root int) sched.Buffer {
	if rank == root {
		return sched.Out
	}
	return sched.Scratch
}

// spare returns the scratch blocks of p ranks that need some, but none for one
// or two ranks.
func spare(p, blocks int) int {
	if p <= 2 {
		return 0
	}
	return blocks
}

// moves is the cost of messages of equally many words, one after another.
func moves(messages int, words float64) model.Cost {
	k := float64(messages)
	return model.Cost{Startups: k, Words: k * words}
}

// sums is the same cost, and that of combining every word that arrives.
func sums(messages int, words float64) model.Cost {
	c := moves(messages, words)
	c.Combines = c.Words
	return c
}

// share returns the length of p−1 of p equal parts of n words.
func share(n float64, p int) float64 { return n * float64(p-1) / float64(p) }
