package algo

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks share hosts. Each host reduces to its lowest rank, these leaders exchange with
// each other, by recursive doubling or by recursive halving, and each hands the result to
// its host. So only one rank of a host talks to other hosts.
//
// With k leaders, a vector is cut in as many pieces. The first k ranks of a host each
// combine one piece for it, all at once; those with the same piece exchange it between
// hosts; and each sends the result to the other ranks of its host. So a host sends and
// receives no more than with one leader, by k ranks at a time, and its ranks share the
// combining. Long vectors have as many leaders as the smallest host has ranks.
//
// Cost, h hosts of g ranks: with one leader, ⌈lg g⌉ (2α + 2nβ + nγ) within the hosts, and
// between them that of recursive-doubling or recursive-halving on h ranks. With k leaders,
// (g − 1)(2α + 2n/k β + n/k γ) within, and between that of the same on h ranks with n/k
// words. Hosts of different sizes take no longer than if all were as large as the largest.
//
// Ranks that are placed by block stay in order; other placements need an operator that
// commutes. Prefer it where messages between hosts cost much more than within one.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000; for several leaders Träff, Hunold, Decomposing
// MPI Collectives for Exploiting Multi-lane Communication, 2020.
var allreduceHierarchical = Algorithm{
	Collective: sched.AllReduce,
	Name:       "hierarchical",
	Params: []Param{groupParam, hostsOrGroup(), betweenParam("recursive-doubling", "recursive-halving", func(c call, between string, n float64) model.Cost {
		return allreduceHostsCost(c, between, allreduceLeaders(c, between), n)
	}), leadersParam(func(c call) int { return allreduceLeaders(c, c.word("between")) })},
	Formula: "k = 1 leader: ⌈lg g⌉ (2α + 2nβ + nγ) + that of between on h ranks, h hosts of ≤ g ranks; " +
		"more: (g − 1)(2α + 2n/k β + n/k γ) + that of between on h ranks with n/k words",
	Prefer: "ranks that share hosts",
	cost: func(c call, n float64) model.Cost {
		return allreduceHostsCost(c, c.word("between"), c.number("leaders"), n)
	},
	build: func(c call) generator {
		layout, s, k := c.layout(), c.hostSizes(), c.number("leaders")
		f, stages := foldRanks(s.hosts, 0), 0
		if c.word("between") == "recursive-halving" {
			stages = floorLog(s.hosts)
		}
		exchanges := floorLog(s.hosts) - stages
		blocks := k << stages
		return generator{blocks: blocks, scratch: spare(c.p, blocks), program: func(b *sched.Builder, rank int) {
			h := layout()
			host, me, _ := h.place(rank, -1)
			if k > 1 {
				allreducePieces(b, h, rank, f, stages, k)
				return
			}
			held := reduce(b, within{h, host}, interval{0, h.size(host), 0}, me, sched.In, turn(exchanges), whole(blocks))
			if me == 0 {
				halvingExchange(b, f, h.leaders(0), host, held, whole(blocks), stages)
				b.EndStep()
			}
			broadcast(b, within{h, host}, 0, me, sched.Out, whole(blocks))
		}}
	},
}

// allreduceLeaders returns how many leaders a host has unless the call says so.
func allreduceLeaders(c call, between string) int {
	if between == "recursive-halving" {
		return c.hostSizes().smallest
	}
	return 1
}

// allreducePieces does an allreduce in pieces, one for each of k ranks of a host, in some
// stages of halving between hosts. Where all ranks of a host have a piece, all of them
// send at once; elsewhere, one after another, so that no two send to the same rank at a
// time.
func allreducePieces(b *sched.Builder, h *hosts, rank int, f fold, stages, k int) {
	host, me, _ := h.place(rank, -1)
	l := pieces{within{h, host}, 0, k, 1 << stages}
	held, above := turn(floorLog(f.groups)-stages), sched.Scratch
	if held == sched.Scratch {
		above = sched.Out
	}
	contribute(b, l, me, location{sched.In, 0}, location{held, 0}, location{above, 0}, h.size(host) == k)
	if me < k {
		halvingExchange(b, f, h.leaders(me), host, held, l.parts(me, me+1), stages)
		b.EndStep()
	}
	shareOut(b, l, me, -1)
}

func allreduceHostsCost(c call, between string, leaders int, n float64) model.Cost {
	s := c.hostSizes()
	n /= float64(leaders)
	stages := 0
	if between == "recursive-halving" {
		stages = floorLog(s.hosts)
	}
	steps := ceilLog(s.largest)
	combine := sums(steps, n)
	if leaders > 1 {
		steps = s.largest - 1
		combine = sums(steps, n)
		if s.largest > leaders {
			combine = contributeCost(s.largest, n)
		}
	}
	return combine.Plus(moves(steps, n)).Plus(halvingExchangeCost(s.hosts, stages, n))
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
