package algo

import (
	"fmt"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vector is cut in k blocks, and in every round each rank takes a block from
// one rank and gives another to one: to the rank 1 further round the circle, then
// 2 further, and so on by the skips of a circulant graph. The root feeds in one
// block per round, and no rank ever takes a block twice. Which block goes where
// follows from the distance to the root alone.
//
// Cost: (k − 1 + ⌈lg p⌉)(α + n/k β), for any p. No algorithm takes fewer
// rounds. The best k is √((⌈lg p⌉ − 1) nβ/α).
//
// Prefer it for long vectors: with many blocks the term in n nears nβ, the least
// there is, as in a chain, but the graph fills in ⌈lg p⌉ rounds.
//
// Träff, Round-optimal n-Block Broadcast Schedules in Logarithmic Time, 2023,
// arXiv 2312.11236.
var bcastCirculant = Algorithm{
	Collective: sched.Bcast,
	Name:       "circulant",
	Params:     []Param{blocksParam},
	Formula:    "(k − 1 + ⌈lg p⌉)(α + n/k β), k blocks",
	Prefer:     "long vectors",
	cost: func(c call, n float64) model.Cost {
		k := c.number("blocks")
		return moves(circulantRounds(c.p, k), n/float64(k))
	},
	build: func(c call) generator {
		k, g := c.number("blocks"), newCirculant(c.p)
		return generator{blocks: k, program: func(b *sched.Builder, rank int) {
			at := func(position int) int { return (position + c.root) % c.p }
			if rank == c.root {
				b.Copy(sched.In, whole(k), sched.Out, 0, sched.Replace)
			}
			for _, r := range g.relays((rank-c.root+c.p)%c.p, k) {
				if r.take >= 0 {
					b.Recv(at(r.from), sched.Out, one(r.take), sched.Replace)
				}
				if r.give >= 0 {
					b.Send(sched.Out, one(r.give), at(r.to))
				}
				b.EndStep()
			}
		}}
	},
}

// circulantRounds returns the number of rounds until p positions have all
// blocks.
func circulantRounds(p, blocks int) int {
	if p == 1 {
		return 0
	}
	return blocks - 1 + ceilLog(p)
}

// blocksParam is for algorithms that cut the vector in blocks and have one in
// each round.
var blocksParam = Param{
	Key: "blocks", Values: "a number",
	Doc:    "how many blocks follow each other; if not given, the best if a start-up costs as much as 8K bytes",
	parse:  parseNumber,
	choose: func(c call) value { return numberOf(c.bestPieces(float64(ceilLog(c.p) - 1))) },
	check: func(_ call, v value) error {
		if v.number < 1 || v.number > maxPieces {
			return fmt.Errorf("want 1 to %d", maxPieces)
		}
		return nil
	},
	variants: func(int) []string { return []string{"2", "5", "9"} },
	pieces:   func(_ call, k int) value { return numberOf(k) },
}
