package algo

import "github.com/chorale-go/chorale/sched"

// An exchanger is the state of one rank between two exchanges of the groups of
// a fold. Partners at bit i are groups that differ in that bit alone.
type exchanger struct {
	b     *sched.Builder
	f     fold
	l     sequence // the ranks that are folded
	group int
	held  sched.Buffer // where the rank's vector is
	mine  sched.Range  // the blocks of it that the rank still combines
}

// foldVector begins an exchange of some blocks that all positions of a sequence hold. Of
// the two ranks of a group, one sends what it holds to the other, which combines both
// in into. For the rank that sent, and takes no part, ok is false.
func foldVector(b *sched.Builder, f fold, l sequence, me int, held sched.Buffer, blocks sched.Range, into sched.Buffer) (x exchanger, ok bool) {
	x = exchanger{b, f, l, f.group(me), held, blocks}
	switch {
	case me != f.keeper(x.group):
		b.Send(x.held, x.mine, l.rank(me^1))
		b.EndStep()
		return x, false
	case f.paired(x.group):
		recvCombine(b, x.held, into, x.mine, l.rank(me^1), beside(me, me^1))
		b.EndStep()
		x.held = into
	}
	return x, true
}

// exchange sends blocks to the partner, and combines in into what the partner
// sends with the rank's own.
func (x *exchanger) exchange(bit int, give sched.Range, into sched.Buffer) {
	partner := x.group ^ 1<<bit
	peer := x.l.rank(x.f.keeper(partner))
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
	peer, sibling := x.l.rank(x.f.keeper(x.group^1<<bit)), x.sibling(bit)
	x.b.Send(sched.Out, x.mine, peer)
	x.b.Recv(peer, sched.Out, sibling, sched.Replace)
	x.b.EndStep()
	x.mine = join(x.mine, sibling)
}

// join returns the union of two neighboring ranges.
func join(r, s sched.Range) sched.Range {
	return sched.Range{Lo: min(r.Lo, s.Lo), Hi: max(r.Hi, s.Hi)}
}

// turn returns where a rank must leave its vector when a number of exchanges
// are still to come. An exchange cannot write what it sends, so out and scratch
// take turns, and the last exchange writes out.
func turn(exchanges int) sched.Buffer {
	if exchanges%2 == 0 {
		return sched.Out
	}
	return sched.Scratch
}
