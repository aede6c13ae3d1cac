package algo

import (
	"iter"
	"slices"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The ranks stand in a mesh. In a row of it each rank makes a bundle of its
// blocks for each column, and all rows send these bundles round, as ring does.
// Then every block is in the right column, and the columns do the same with
// bundles for each row. More dimensions follow one after another, the last one
// first.
//
// Cost: Σ (d − 1)(α + n/2 β) over the sizes d, and a copy of the vector before
// and after each dimension. On a √p×√p mesh that is 2(√p − 1)(α + n/2 β).
//
// All messages are between neighbors, on a ring of each line. Prefer it for
// short blocks on a mesh or torus; each block is passed on by many ranks.
//
// Grama et al., 4.5.2.
var alltoallMesh = Algorithm{
	Collective:   sched.AllToAll,
	Name:         "mesh",
	Params:       []Param{dimsParam},
	Restrictions: Restrictions{EqualParts: true},
	Formula:      "Σ (d − 1)(α + n/2 β), d the sizes of the mesh",
	Prefer:       "short blocks on a mesh or torus",
	cost: func(c call, n float64) model.Cost {
		return moves(meshRounds(c.sizes("dims")), n/2)
	},
	build: func(c call) generator { return alltoallMeshPlan(c.p, c.sizes("dims")) },
}

// alltoallMeshPlan exchanges along the dimensions of a mesh, the last one first.
// What a rank holds begins as its In and ends as its Out. In between, block k
// has traveled along the dimensions that are done. Along these it comes from a
// rank with rank k's coordinates; along the others it goes to such a rank.
func alltoallMeshPlan(p int, m mesh) generator {
	m = slices.DeleteFunc(slices.Clone(m), func(size int) bool { return size == 1 })
	if len(m) == 0 {
		return generator{blocks: 1, program: func(b *sched.Builder, _ int) {
			b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
		}}
	}
	return generator{blocks: p, scratch: 3 * p, program: func(b *sched.Builder, rank int) {
		held := sched.In
		for d := len(m) - 1; d >= 0; d-- {
			into := sched.Scratch
			if d == 0 {
				into = sched.Out
			}
			l, me := m.through(d, rank)
			bundleRound(b, l, me, p, held, into)
			held = into
		}
	}}
}

// bundleRound exchanges p blocks along a line: a bundle for each position goes
// round it. The bundle of the nearest position comes first in a message; its
// receiver takes it out and sends on the rest. The first p blocks of Scratch
// are those of the rank; p more are for what goes, and p for what comes, in
// turn.
func bundleRound(b *sched.Builder, l line, me, p int, held, into sched.Buffer) {
	next, previous := neighbors(l, me)
	size := p / l.n
	ahead, room := sched.Range{Lo: 2 * p, Hi: 3*p - size}, p
	for _, run := range l.bundle(me, p) {
		b.Copy(held, run, into, run.Lo, sched.Replace)
	}
	for i := range l.n - 1 {
		for at, run := range l.bundle(me+1+i, p) {
			b.Copy(held, run, sched.Scratch, ahead.Lo+i*size+at, sched.Replace)
		}
	}
	for i := 1; i < l.n; i++ {
		come := sched.Range{Lo: room, Hi: room + ahead.Len()}
		b.Send(sched.Scratch, ahead, next)
		b.Recv(previous, sched.Scratch, come, sched.Replace)
		b.EndStep()
		for at, run := range l.bundle(me-i, p) {
			b.Copy(sched.Scratch, shifted(whole(run.Len()), come.Lo+at), into, run.Lo, sched.Replace)
		}
		ahead, room = sched.Range{Lo: come.Lo + size, Hi: come.Hi}, 3*p-room
	}
}

// bundle returns those of p blocks that have position i of a line in their number,
// run by run, each with where it begins in the bundle. The position may be as much
// as the length of the line too small or too large.
func (l line) bundle(i, p int) iter.Seq2[int, sched.Range] {
	first := (i + l.n) % l.n * l.stride
	return func(yield func(at int, run sched.Range) bool) {
		for at := 0; first+at*l.n < p; at += l.stride {
			lo := first + at*l.n
			if !yield(at, sched.Range{Lo: lo, Hi: lo + l.stride}) {
				return
			}
		}
	}
}
