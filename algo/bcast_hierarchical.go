package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. The root sends the vector to one rank of each other host, its
// leader, and each leader hands it to the ranks of its host; both levels do as binomial
// does. So every other host gets the vector once: h − 1 messages go between h hosts. A
// long vector is cut in h pieces, which are scattered to the leaders and gathered by all
// of them, as in scatter-allgather: then no leader sends the vector more than twice.
//
// With k leaders, the vector is cut in as many pieces first. The root hands them to the
// first k ranks of its host; each of these sends its piece to the leader at its position
// on the other hosts, as above; and each leader sends its piece to all ranks of its host.
// So a host gets the vector by k ranks at a time.
//
// Cost, h hosts of g ranks: (⌈lg h⌉ + ⌈lg g⌉)(α + nβ). With scatter-allgather, h a power
// of two, the leaders' part of that is 2 lg h α + 2n (h−1)/h β. With k leaders, the
// leaders' part is for n/k words, and within the hosts it takes up to (g + 2k − 2)
// messages of n/k words. Hosts of different sizes take no longer than if all were as large
// as the largest.
//
// Prefer it where messages between hosts cost much more than within one, wherever the
// ranks are placed.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000. MPICH broadcasts so among nodes. For several
// leaders Träff, Hunold, Decomposing MPI Collectives for Exploiting Multi-lane
// Communication, 2020.
var bcastHierarchical = Algorithm{
	Collective: sched.Bcast,
	Name:       "hierarchical",
	Params:     []Param{hostsParam, betweenParam("binomial", "scatter-allgather", bcastHostsCost), leadersParam(oneLeader)},
	Formula: "(⌈lg h⌉ + ⌈lg g⌉)(α + nβ), h hosts of ≤ g ranks; scatter-allgather: that of it on h ranks for ⌈lg h⌉ (α + nβ); " +
		"k leaders: ≤ (g + 2k − 2)(α + n/k β) + that of between on h ranks with n/k words",
	Prefer: "ranks that share hosts",
	cost:   func(c call, n float64) model.Cost { return bcastHostsCost(c, c.word("between"), n) },
	build: func(c call) generator {
		layout, count, k := c.layout(), c.hostSizes().hosts, max(1, c.number("leaders"))
		f, blocks := foldRanks(count, 0), 1
		inPieces := c.word("between") == "scatter-allgather"
		if inPieces {
			blocks = count
		}
		// among broadcasts the piece of a row of leaders from its position root on.
		among := func(b *sched.Builder, all leaders, root, me, piece int) {
			l := pieces{all, piece * blocks, blocks, 1}
			if inPieces {
				scatter(b, l, root, me, location{sched.Out, 0})
				gatherDoubling(b, f, l, me, sched.Out)
			} else {
				broadcast(b, all, root, me, sched.Out, sched.Range{Lo: l.first, Hi: l.first + blocks})
			}
		}
		return generator{blocks: k * blocks, program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, c.root)
			if rank == c.root {
				b.Copy(sched.In, whole(k*blocks), sched.Out, 0, sched.Replace)
			}
			rootHost, rootAt := h.of(c.root)
			if k == 1 {
				if me == leader {
					among(b, h.leadersFor(c.root), rootHost, host, 0)
				}
				broadcast(b, within{h, host}, leader, me, sched.Out, whole(blocks))
				return
			}
			l, none := pieces{within{h, host}, 0, k, blocks}, -1
			if host == rootHost {
				none = rootAt
				handOut(b, l, rootAt, me)
			}
			if me < k {
				among(b, h.leaders(me), rootHost, host, me)
			}
			shareOut(b, l, me, none)
		}}
	},
}

// handOut has the root, a position, send each position of a row the piece that it stands
// for, from Out to Out.
func handOut(b *sched.Builder, l pieces, root, me int) {
	for i := range l.count {
		switch {
		case i == root:
		case me == root:
			b.Send(sched.Out, l.parts(i, i+1), l.rank(i))
		case me == i:
			b.Recv(l.rank(root), sched.Out, l.parts(i, i+1), sched.Replace)
		}
	}
	b.EndStep()
}

func bcastHostsCost(c call, between string, n float64) model.Cost {
	s, k := c.hostSizes(), max(1, c.number("leaders"))
	cost := moves(ceilLog(s.largest), n)
	if k > 1 {
		n /= float64(k)
		cost = moves(s.largest+2*k-2, n)
	}
	if between == "binomial" {
		return cost.Plus(moves(ceilLog(s.hosts), n))
	}
	scatter := model.Cost{Startups: float64(ceilLog(s.hosts)), Words: share(n, s.hosts)}
	return cost.Plus(scatter).Plus(gatherDoublingCost(s.hosts, n/float64(s.hosts), n))
}
