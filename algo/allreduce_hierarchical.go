package algo

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. For short vectors, each host reduces to its lowest rank, these
// leaders exchange with each other by recursive doubling, and each hands the result to
// its host. So only one rank of a host talks to other hosts.
//
// A long vector is cut in as many pieces as the smallest host has ranks, k. The first k
// ranks of a host each combine one piece for it, all at once; those with the same piece
// exchange it between hosts by recursive halving; and each sends the result to the other
// ranks of its host. So a host sends and receives no more than two vectors, by k ranks at
// a time, and its ranks share the combining.
//
// Cost, h hosts of g ranks: ⌈lg g⌉ (2α + 2nβ + nγ) within the hosts, and between them
// that of recursive-doubling on h ranks. With recursive-halving, (g − 1)(2α + 2n/k β +
// n/k γ) within, and between that of recursive-halving on h ranks with n/k words. Hosts
// of different sizes take no longer than if all were as large as the largest.
//
// Ranks that are placed by block stay in order; other placements need an operator that
// commutes. Prefer it where messages between hosts cost much more than within one.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000; for long vectors Träff, Hunold, Decomposing MPI
// Collectives for Exploiting Multi-lane Communication, 2020.
var allreduceHierarchical = Algorithm{
	Collective: sched.AllReduce,
	Name:       "hierarchical",
	Params:     []Param{groupParam, hostsOrGroup(), betweenParam("recursive-doubling", "recursive-halving", allreduceHostsCost)},
	Formula: "⌈lg g⌉ (2α + 2nβ + nγ) + that of recursive-doubling on h ranks, h hosts of ≤ g ranks; " +
		"recursive-halving: (g − 1)(2α + 2n/k β + n/k γ) + that of it on h ranks with n/k words, k ≤ g pieces",
	Prefer: "ranks that share hosts",
	cost:   func(c call, n float64) model.Cost { return allreduceHostsCost(c, c.word("between"), n) },
	build: func(c call) generator {
		layout, s := c.layout(), c.hostSizes()
		if c.word("between") == "recursive-halving" {
			f := foldRanks(s.hosts, 0)
			blocks := s.smallest * f.groups
			return generator{blocks: blocks, scratch: spare(s.largest, blocks), program: func(b *sched.Builder, rank int) {
				allreducePieces(b, layout(), rank, f, s)
			}}
		}
		rounds, _ := radices(s.hosts, 2)
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, leader := h.place(rank, -1)
			held := reduce(b, within{h, host}, interval{0, h.size(host), leader}, me, sched.In, turn(len(rounds)), whole(1))
			if me == leader {
				multiply(b, h.leaders(), host, 2, held)
				b.EndStep()
			}
			broadcast(b, within{h, host}, leader, me, sched.Out, whole(1))
		}}
	},
}

// allreducePieces does an allreduce in pieces, one for each of the first ranks of a host.
// Each is as many blocks as the fold of the hosts has groups. Where all ranks of a host
// have a piece, all of them send at once; elsewhere, one after another, so that no two
// send to the same rank at a time.
func allreducePieces(b *sched.Builder, h *hosts, rank int, f fold, s hostSizes) {
	host, me, _ := h.place(rank, -1)
	count := s.smallest
	l := pieces{within{h, host}, count, f.groups}
	contribute(b, l, me, location{sched.In, 0}, location{sched.Out, 0}, location{sched.Scratch, 0}, h.size(host) == count)
	mine := l.parts(me, me+1)
	if me < count {
		halvingExchange(b, f, across{h, me}, host, sched.Out, mine, floorLog(f.groups))
		b.EndStep()
	}
	n := l.size()
	var others []int
	for i := 1; i < n; i++ {
		others = append(others, l.rank((me+i)%n))
		if from := (me - i + n) % n; from < count {
			b.Recv(l.rank(from), sched.Out, l.parts(from, from+1), sched.Replace)
		}
	}
	if me < count {
		b.Send(sched.Out, mine, others...)
	}
}

func allreduceHostsCost(c call, between string, n float64) model.Cost {
	s := c.hostSizes()
	if between == "recursive-halving" {
		n /= float64(s.smallest)
		within := s.largest - 1
		combine := sums(within, n)
		if s.largest > s.smallest {
			combine = contributeCost(s.largest, n)
		}
		return combine.Plus(moves(within, n)).Plus(halvingExchangeCost(s.hosts, floorLog(s.hosts), n))
	}
	within := ceilLog(s.largest)
	return sums(within, n).Plus(moves(within, n)).Plus(multiplyCost(s.hosts, 2, n))
}

// hostsOrGroup is hostsParam for an algorithm that has groupParam, too: a group is
// then a host.
func hostsOrGroup() Param {
	p := hostsParam
	p.Doc += "; group is a shorter way to say that all hosts but the last have as many ranks"
	p.choose = func(c call) value {
		g := c.number("group")
		pairs := appendPair(nil, c.p/g, g)
		if rest := c.p % g; rest > 0 {
			pairs = append(pairs, 1, rest)
		}
		return value{text: formatPairs(pairs, "+"), sizes: pairs}
	}
	p.check = func(c call, v value) error {
		if c.number("group") != groupParam.choose(c).number {
			return fmt.Errorf("group=%d is given too: want one of them", c.number("group"))
		}
		return v.place(c.p)
	}
	return p
}

// groupParam is for algorithms that see ranks as groups of neighbors.
var groupParam = Param{
	Key: "group", Values: "a number",
	Doc:    "how many ranks make a group, the last of which may be smaller; if not given, about √p",
	parse:  parseNumber,
	choose: func(c call) value { return numberOf(int(math.Round(math.Sqrt(float64(c.p))))) },
	check: func(c call, v value) error {
		if v.number < 1 || v.number > c.p {
			return fmt.Errorf("want 1 to %d", c.p)
		}
		return nil
	},
	variants: func(p int) []string {
		return []string{"1", fmt.Sprint((p + 1) / 2), fmt.Sprint(p)}
	},
	candidates: func(c call) (all []value) { // powers of two in a group, or about as many groups
		for n := 1; n <= c.p; n *= 2 {
			all = append(all, numberOf(n), numberOf((c.p-1)/n+1))
		}
		return all
	},
}
