package algo

import (
	"fmt"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The hybrid of recursive doubling and recursive halving. In each of the first
// stages, partners exchange halves of what they still combine, and each goes on
// with one half. Then the rest is exchanged in full, and at last the stages are
// undone: partners send each other the halves that they completed. Partners are
// nearest first, and the lower one's operand stands left, so ranks stay in
// order. Where p is no power of two, ranks fold first: of each pair of ranks,
// one takes part and sends the other the result.
//
// Every number of stages combines the same operands in the same order, and so
// yields the same bits.
//
// Cost, p a power of two, k stages, h = n (1 − 2^−k), e = lg p − k:
// (lg p + k) α + (2h + e n/2^k) β + (h + e n/2^k) γ. A fold adds 2α + 2nβ + nγ.
//
// More stages start more messages and move less: the best number grows with n.
// The default is half of the possible stages, a compromise.
//
// Foster, Designing and Building Parallel Programs, 11.2.
var allreduceHalvingExchange = Algorithm{
	Collective: sched.AllReduce,
	Name:       "halving-exchange",
	Params:     []Param{stagesParam},
	Formula:    "(lg p + k) α + (2h + e n/2^k) β + (h + e n/2^k) γ; k stages, h = n (1 − 2^−k), e = lg p − k",
	Prefer:     "vectors of middling length",
	cost: func(c call, n float64) model.Cost {
		return halvingExchangeCost(c.p, c.number("stages"), n)
	},
	build: func(c call) generator { return halvingExchangePlan(c.p, c.number("stages")) },
}

// stagesParam is the number of stages of recursive halving.
var stagesParam = Param{
	Key: "stages", Values: "a number",
	Doc:    "how many stages halve the vector, at most ⌊lg p⌋; if not given, half of that, rounded down",
	parse:  parseNumber,
	choose: func(c call) value { return numberOf(floorLog(c.p) / 2) },
	check: func(c call, v value) error {
		if most := floorLog(c.p); v.number > most {
			return fmt.Errorf("want 0 to %d", most)
		}
		return nil
	},
	variants: func(p int) (tries []string) {
		for k := range floorLog(p) + 1 {
			tries = append(tries, fmt.Sprint(k))
		}
		return tries
	},
	candidates: func(c call) (all []value) {
		for k := range floorLog(c.p) + 1 {
			all = append(all, numberOf(k))
		}
		return all
	},
}

func halvingExchangeCost(p, stages int, n float64) model.Cost {
	exchanges := floorLog(p) - stages
	half := share(n, 1<<stages)
	cost := model.Cost{Startups: float64(2 * stages), Words: 2 * half, Combines: half}
	cost = cost.Plus(sums(exchanges, n-half))
	if foldRanks(p, 0).pairs > 0 {
		cost = cost.Plus(sums(1, n)).Plus(moves(1, n))
	}
	return cost
}

func halvingExchangePlan(p, stages int) generator {
	f := foldRanks(p, 0)
	blocks, scratch := 1<<stages, 0
	if floorLog(p) > stages {
		scratch = spare(p, blocks)
	}
	return generator{blocks: blocks, scratch: scratch, program: func(b *sched.Builder, rank int) {
		halvingExchange(b, f, everyone(p), rank, sched.In, whole(blocks), stages)
	}}
}

// halvingExchange combines some blocks, one for each piece, that all positions of a
// sequence hold, and leaves them in every Out. Held is In, or Out if all stages halve.
func halvingExchange(b *sched.Builder, f fold, l sequence, me int, held sched.Buffer, blocks sched.Range, stages int) {
	last := floorLog(f.groups) - 1
	// Exchanges take turns between out and scratch, so the step right before
	// them must leave the vector where the first exchange starts. Halving needs
	// no turns: it writes one half and sends the other.
	into := func(bit int) sched.Buffer {
		if bit < stages-1 {
			return sched.Out
		}
		return turn(last - bit)
	}
	x, ok := foldVector(b, f, l, me, held, blocks, into(-1))
	if !ok {
		b.Recv(l.rank(me^1), sched.Out, blocks, sched.Replace)
		b.EndStep()
		return
	}
	for bit := range last + 1 {
		if bit < stages {
			x.halve(bit, into(bit))
		} else {
			x.exchange(bit, x.mine, into(bit))
		}
	}
	b.Copy(x.held, x.mine, sched.Out, x.mine.Lo, sched.Replace)
	for bit := stages - 1; bit >= 0; bit-- {
		x.restore(bit)
	}
	if f.paired(x.group) {
		b.Send(sched.Out, blocks, l.rank(me^1))
		b.EndStep()
	}
}
