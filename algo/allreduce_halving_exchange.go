package algo

import (
	"fmt"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The hybrid of recursive doubling and recursive halving. In each of the first
// stages, partners exchange halves of what they still combine, and each goes on
// with one half. Then all that is left is exchanged in full, and at last the
// stages are undone: partners hand each other the halves that they completed.
// Partners are nearest first, and the lower one's operand stands left, so ranks
// stay in order. Other p than powers of two fold first: of each pair of ranks,
// one takes part and tells the other the result.
//
// Every number of stages combines the same operands in the same order, and so
// yields the same bits.
//
// Cost, p a power of two, k stages, h = n (1 − 2^−k), e = lg p − k:
// (lg p + k) α + (2h + e n/2^k) β + (h + e n/2^k) γ. A fold adds 2α + 2nβ + nγ.
//
// More stages start more messages and move less: the best number grows with n.
// By default it is half of what is possible, a compromise.
//
// Foster, Designing and Building Parallel Programs, 11.2.
var allreduceHalvingExchange = Algorithm{
	Collective: sched.AllReduce,
	Name:       "halving-exchange",
	Params:     []Param{stages},
	Formula:    "(lg p + k) α + (2h + e n/2^k) β + (h + e n/2^k) γ; k stages, h = n (1 − 2^−k), e = lg p − k",
	Prefer:     "vectors of middling length",
	cost: func(c call, n float64) model.Cost {
		return halvingExchangeCost(c.p, c.number("stages"), n)
	},
	build: func(c call) plan { return halvingExchangePlan(c.p, c.number("stages")) },
}

// stages is how many stages of recursive halving there are.
var stages = Param{
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

func halvingExchangePlan(p, stages int) plan {
	f := foldRanks(p, 0)
	blocks, scratch := 1<<stages, 0
	if floorLog(p) > stages {
		scratch = spare(p, blocks)
	}
	return plan{blocks: blocks, scratch: scratch, program: func(b *sched.Builder, rank int) {
		halvingExchange(b, f, rank, stages)
	}}
}

func halvingExchange(b *sched.Builder, f fold, rank, stages int) {
	all := whole(1 << stages)
	last := floorLog(f.groups) - 1
	// Exchanges take turns between out and scratch, so what comes right before
	// them must leave the vector where the first can start from. Halving needs
	// no turns: it writes one half and sends the other.
	into := func(bit int) sched.Buffer {
		if bit < stages-1 {
			return sched.Out
		}
		return turn(last - bit)
	}
	x, ok := foldVector(b, f, rank, all.Hi, into(-1))
	if !ok {
		b.Recv(rank^1, sched.Out, all, sched.Replace)
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
		b.Send(sched.Out, all, rank^1)
	}
}

// An exchanger is one rank in the middle of exchanges between the groups of a
// fold. Partners at bit i are groups that differ in that bit alone.
type exchanger struct {
	b     *sched.Builder
	f     fold
	group int
	held  sched.Buffer // where the rank's vector is
	mine  sched.Range  // the blocks of it that the rank still combines
}

// foldVector begins an exchange of vectors of so many blocks: of two ranks of a
// group, one gives its In to the other, which combines both in into. For the
// one that gave, and is not to take part, ok is false.
func foldVector(b *sched.Builder, f fold, rank, blocks int, into sched.Buffer) (x exchanger, ok bool) {
	x = exchanger{b, f, f.group(rank), sched.In, whole(blocks)}
	switch {
	case rank != f.keeper(x.group):
		b.Send(x.held, x.mine, rank^1)
		b.EndStep()
		return x, false
	case f.paired(x.group):
		recvCombine(b, x.held, into, x.mine, rank^1, beside(rank, rank^1))
		b.EndStep()
		x.held = into
	}
	return x, true
}

// exchange gives blocks to the partner, and combines what the partner gives
// with the rank's own, in into.
func (x *exchanger) exchange(bit int, give sched.Range, into sched.Buffer) {
	partner := x.group ^ 1<<bit
	peer := x.f.keeper(partner)
	x.b.Send(x.held, give, peer)
	recvCombine(x.b, x.held, into, x.mine, peer, beside(x.group, partner))
	x.b.EndStep()
	x.held = into
}

// halve leaves one half to the partner and goes on with the other.
func (x *exchanger) halve(bit int, into sched.Buffer) {
	all := x.mine
	x.mine.Hi -= all.Len() / 2
	if x.group>>bit&1 == 1 {
		x.mine.Lo, x.mine.Hi = x.mine.Hi, all.Hi
	}
	x.exchange(bit, x.sibling(bit), into)
}

// sibling is the half that the rank left to its partner when they halved.
func (x *exchanger) sibling(bit int) sched.Range {
	n := x.mine.Len()
	if x.group>>bit&1 == 1 {
		n = -n
	}
	return sched.Range{Lo: x.mine.Lo + n, Hi: x.mine.Hi + n}
}

// restore undoes a halving: partners send each other what they have completed.
func (x *exchanger) restore(bit int) {
	peer, sibling := x.f.keeper(x.group^1<<bit), x.sibling(bit)
	x.b.Send(sched.Out, x.mine, peer)
	x.b.Recv(peer, sched.Out, sibling, sched.Replace)
	x.b.EndStep()
	x.mine = join(x.mine, sibling)
}

// join returns the range that two neighbouring ones make.
func join(r, s sched.Range) sched.Range {
	return sched.Range{Lo: min(r.Lo, s.Lo), Hi: max(r.Hi, s.Hi)}
}
