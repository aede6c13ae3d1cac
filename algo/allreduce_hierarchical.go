package algo

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks stand in groups of neighbors: those of one machine, for example. Each
// group reduces to its first rank, these leaders exchange with each other by
// recursive doubling, and each hands the result to its group. So only one rank
// of a group talks to other groups.
//
// Cost, groups of g ranks: ⌈lg g⌉ (2α + 2nβ + nγ) for the groups, and for the
// leaders that of recursive-doubling on ⌈p/g⌉ ranks.
//
// Ranks stay in order. Prefer it where messages between groups cost much more
// than within, and vectors are short. By default g is near √p; it should be the
// number of ranks on a machine.
//
// Karonis et al., Exploiting Hierarchy in Parallel Computer Networks to Optimize
// Collective Operation Performance, 2000.
var allreduceHierarchical = Algorithm{
	Collective: sched.AllReduce,
	Name:       "hierarchical",
	Params:     []Param{groupParam},
	Formula:    "⌈lg g⌉ (2α + 2nβ + nγ) + that of recursive-doubling on ⌈p/g⌉ ranks, groups of g",
	Prefer:     "short vectors, groups that are far apart",
	cost: func(c call, n float64) model.Cost {
		within := ceilLog(min(c.p, c.number("group")))
		return sums(within, n).Plus(moves(within, n)).Plus(multiplyCost(c.groups(), 2, n))
	},
	build: func(c call) generator {
		g := c.number("group")
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			first := rank - rank%g
			group := line{first, 1, min(g, c.p-first)}
			leaders := line{0, g, c.groups()}
			rounds, _ := radices(leaders.n, 2)
			kept := turn(len(rounds))
			held := reduce(b, group, interval{0, group.n, 0}, rank-first, sched.In, kept)
			if rank == first {
				multiply(b, leaders, rank/g, 2, held)
				b.EndStep()
			}
			broadcast(b, group, 0, rank-first)
		}}
	},
}

// groups returns how many groups there are.
func (c call) groups() int { return (c.p-1)/c.number("group") + 1 }

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
