package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. Each host reduces to one rank, its leader, as binomial does, and
// the leaders reduce to the root, which is the leader of its host. So every other host
// sends one vector: h − 1 messages go between h hosts. The leaders do as binomial does,
// or with long vectors as reduce-scatter-gather: then no leader receives much more than
// two vectors.
//
// With k leaders, the vector is cut in as many pieces. The first k ranks of a host each
// combine one piece for it; those with the same piece reduce it to the one on the root's
// host, as above; and these hand the root their pieces. So a host sends its vector by k
// ranks at a time, and its ranks share the combining.
//
// Cost, h hosts of g ranks: (⌈lg h⌉ + ⌈lg g⌉)(α + nβ + nγ). With reduce-scatter-gather,
// h a power of two, the leaders' part of that is 2 lg h α + 2n (h−1)/h β + n (h−1)/h γ.
// With k leaders, the leaders' part is for n/k words, and within the hosts it takes
// (g − 1)(α + n/k β) + n g/k γ before and k (α + n/k β) after. Hosts of different sizes
// take no longer than if all were as large as the largest.
//
// Ranks that are placed by block stay in order; other placements need an operator that
// commutes. Prefer it where messages between hosts cost much more than within one.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000. MPICH reduces so among nodes. For several
// leaders Träff, Hunold, Decomposing MPI Collectives for Exploiting Multi-lane
// Communication, 2020.
var reduceHierarchical = Algorithm{
	Collective: sched.Reduce,
	Name:       "hierarchical",
	Params:     []Param{hostsParam, betweenParam("binomial", "reduce-scatter-gather", reduceHostsCost), leadersParam(oneLeader)},
	Formula: "(⌈lg h⌉ + ⌈lg g⌉)(α + nβ + nγ), h hosts of ≤ g ranks; reduce-scatter-gather: that of it on h ranks for ⌈lg h⌉ (α + nβ + nγ); " +
		"k leaders: ≤ (g + k − 1)(α + n/k β) + n g/k γ + that of between on h ranks with n/k words",
	Prefer: "ranks that share hosts",
	cost:   func(c call, n float64) model.Cost { return reduceHostsCost(c, c.word("between"), n) },
	build: func(c call) generator {
		layout, count, k := c.layout(), c.hostSizes().hosts, max(1, c.number("leaders"))
		blocks, scratch := 1, spare(c.p, 1)
		inPieces := c.word("between") == "reduce-scatter-gather"
		if inPieces {
			blocks = foldRanks(count, 0).groups
			scratch = min(c.p-1, 1) * blocks
		}
		if k > 1 {
			scratch = 2 * k * blocks // what a leader has combined, and the sum of those above it
		}
		return generator{blocks: k * blocks, scratch: scratch, program: func(b *sched.Builder, rank int) {
			h := layout()
			if k > 1 {
				reducePieces(b, h, rank, c.root, k, blocks, inPieces)
				return
			}
			host, me, leader := h.place(rank, c.root)
			kept := keptBy(rank, c.root)
			held := reduce(b, within{h, host}, interval{0, h.size(host), leader}, me, sched.In, kept, whole(blocks))
			if me != leader {
				return
			}
			all := h.leadersFor(c.root)
			if inPieces {
				reduceScatterGather(b, foldRanks(count, all.rootHost), all, host, held, whole(blocks), kept, sched.Out)
				return
			}
			held = reduce(b, all, interval{0, count, all.rootHost}, host, held, kept, whole(1))
			if rank == c.root {
				b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
			}
		}}
	},
}

// reducePieces does a reduce in pieces of some blocks, one for each of k ranks of a host.
func reducePieces(b *sched.Builder, h *hosts, rank, root, k, blocks int, inPieces bool) {
	host, me, _ := h.place(rank, -1)
	rootHost, rootAt := h.of(root)
	l := pieces{within{h, host}, 0, k, blocks}
	contribute(b, l, me, location{sched.In, 0}, location{sched.Scratch, 0}, location{sched.Scratch, k * blocks}, h.size(host) == k)
	held := sched.Scratch
	if me < k {
		all, mine := h.leaders(me), l.parts(me, me+1)
		if inPieces {
			reduceScatterGather(b, foldRanks(h.count(), rootHost), all, host, held, mine, sched.Scratch, sched.Scratch)
		} else {
			held = reduce(b, all, interval{0, h.count(), rootHost}, host, held, sched.Scratch, mine)
		}
	}
	if host == rootHost {
		collectPieces(b, l, rootAt, me, held)
	}
}

// collectPieces has each position of a row that stands for a piece send it to the root, a
// position, which has all of them in Out then.
func collectPieces(b *sched.Builder, l pieces, root, me int, held sched.Buffer) {
	for i := range l.count {
		switch piece := l.parts(i, i+1); {
		case i == me && me == root:
			b.Copy(held, piece, sched.Out, piece.Lo, sched.Replace)
		case i == me:
			b.Send(held, piece, l.rank(root))
		case me == root:
			b.Recv(l.rank(i), sched.Out, piece, sched.Replace)
		}
	}
	b.EndStep()
}

func reduceHostsCost(c call, between string, n float64) model.Cost {
	s, k := c.hostSizes(), max(1, c.number("leaders"))
	cost := sums(ceilLog(s.largest), n)
	if k > 1 {
		n /= float64(k)
		cost = contributeCost(s.largest, n).Plus(moves(k, n))
	}
	if between == "binomial" {
		return cost.Plus(sums(ceilLog(s.hosts), n))
	}
	return cost.Plus(reduceScatterGatherCost(s.hosts, n))
}
