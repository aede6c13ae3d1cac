// Package oracle makes collective calls at random, and knows their results: a slow replay of
// the schedule, and the definition of the collective. Tests compare what ranks get with it.
package oracle

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"unsafe"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/sched"
)

// A Source draws a number from 0 to n−1. What says what it is for.
type Source func(n int, what string) int

// between draws a number from lo to hi.
func (pick Source) between(lo, hi int, what string) int { return lo + pick(hi-lo+1, what) }

func oneOf[T any](pick Source, values []T, what string) T { return values[pick(len(values), what)] }

// A Call is a collective call that all ranks of a communicator make. Its arguments follow
// from what was drawn, so that processes that draw alike make one call.
type Call interface {
	// Run makes the call on one rank, and keeps the result.
	Run(ctx context.Context, c *chorale.Comm) error
	// Verify returns an error unless the result of a rank that Run has kept equals, bit for
	// bit, a replay of the schedule in its own order and, where arithmetic is exact, the
	// definition of the collective.
	Verify(rank int) error
	// ByHosts reports whether the order of combining depends on the hosts of the ranks, which
	// the replay does not know.
	ByHosts() bool
	String() string
}

// Draw draws a call for p ranks.
func Draw(pick Source, p int) Call {
	var allowed []algo.Algorithm
	for _, a := range algo.Catalog() {
		if a.Restrictions.Allow(p) == nil {
			allowed = append(allowed, a)
		}
	}
	a := oneOf(pick, allowed, "algorithm")
	spec := oneOf(pick, algo.Variants(a, p), "spec")
	restricted := must(algo.Restricted(a.Collective, spec, p))
	d := untypedCall{
		collective: a.Collective, p: p,
		spec:        spec,
		commutative: restricted.Commutative,
		inPlace:     pick(2, "in place") == 1,
		seed:        mixed(uint64(pick(1<<31-1, "seed"))),
	}
	if a.Collective.Rooted() || a.Collective == sched.Shift {
		d.root = pick(p, "root")
	}
	d.count = oneOf(pick, []int{0, 1, p - 1, p, p + 1, 2*p + 3}, "count")
	if pick(21, "many") == 0 {
		d.count = pick.between(1000, 5000, "count") / max(1, p/4)
	}
	if restricted.EqualBlocks {
		d.count *= bits.Len(uint(p)) - 1
	}
	s := &sched.Schedule{Collective: a.Collective}
	if s.Partitioned() && !restricted.EqualParts && pick(2, "uneven") == 1 {
		d.counts = make([]int, p)
		for i := range d.counts {
			d.counts[i] = pick(2+d.count%40, "counts")
		}
		d.inPlace = d.inPlace && a.Collective != sched.AllToAll
	}
	// The element type comes last, by a function that is generic in it.
	switch pick(7, "type") {
	case 0:
		return newCall(pick, d, integers[int64]())
	case 1:
		return newCall(pick, d, integers[uint8]())
	case 2:
		return newCall(pick, d, integers[int32]())
	case 3:
		return newCall(pick, d, floats[float32]())
	case 4:
		return newCall(pick, d, floats[float64]())
	case 5:
		return newCall(pick, d, complexes())
	}
	return newCall(pick, d, affines())
}

// An untypedCall is a call without its element type.
type untypedCall struct {
	collective  sched.Collective
	p, root     int
	spec        string
	commutative bool // the algorithm takes only commutative operations
	count       int
	counts      []int // of each rank's part, where they differ
	inPlace     bool
	seed        uint64
}

// A typedCall is a Call of one element type.
type typedCall[T any] struct {
	untypedCall
	elements elementKind[T]
	op       operation[T]
	schedule *sched.Schedule
	results  [][]T // by rank; nil where another process has them
	replayed func() ([][]T, error)
}

func newCall[T any](pick Source, d untypedCall, s elementKind[T]) Call {
	c := &typedCall[T]{untypedCall: d, elements: s, results: make([][]T, d.p)}
	if d.collective.Combines() {
		ops := s.ops
		if d.commutative {
			ops = nil
			for _, op := range s.ops {
				if op.op.Commutative {
					ops = append(ops, op)
				}
			}
			if ops == nil { // this type has no such operation: take another algorithm
				c.spec, c.commutative = "", false
				ops = s.ops
			}
		}
		c.op = oneOf(pick, ops, "op")
	}
	if c.spec == "" {
		c.spec = mustChoose(d, c.op.op.Commutative)
	}
	c.schedule = must(algo.New(d.collective, c.spec, d.p, d.root, c.bytes()))
	c.replayed = sync.OnceValues(c.replay)
	return c
}

func mustChoose(d untypedCall, commutative bool) string {
	return must(selection.Choose(selection.Query{Collective: d.collective, Ranks: d.p, Ordered: !commutative, Uneven: d.counts != nil})).Algorithm
}

// must returns what a schedule of the catalog is made of: it has no errors.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// bytes returns the size of the whole vector, by which the call makes its schedule.
func (c *typedCall[T]) bytes() int {
	size := int(unsafe.Sizeof(*new(T)))
	s := &sched.Schedule{Collective: c.collective}
	switch {
	case c.collective == sched.Barrier:
		return 0
	case c.counts != nil:
		return sum(c.parts(0).in) * size / c.p * c.p
	case s.Partitioned():
		return c.count * size * c.p
	}
	return c.count * size
}

func (c *typedCall[T]) ByHosts() bool {
	return strings.HasPrefix(c.spec, "hierarchical") && !strings.Contains(c.spec, "hosts=")
}

type inAndOut struct{ in, out []int }

// parts returns the lengths of the parts of a rank's buffers. In an alltoall,
// rank r has counts[r] elements more for each rank than that rank's number
// modulo 3.
func (c *typedCall[T]) parts(rank int) inAndOut {
	if c.collective != sched.AllToAll {
		return inAndOut{c.counts, c.counts}
	}
	io := inAndOut{make([]int, c.p), make([]int, c.p)}
	for other := range c.p {
		io.in[other] = c.counts[rank] + other%3
		io.out[other] = c.counts[other] + rank%3
	}
	return io
}

func (c *typedCall[T]) String() string {
	return fmt.Sprintf("%v %s %s of %T, p %d, root %d, count %d, counts %v, in place %v",
		c.collective, c.spec, c.op.name, *new(T), c.p, c.root, c.count, c.counts, c.inPlace)
}

// layouts returns where blocks lie in a rank's In and Out, in elements.
func (c *typedCall[T]) layouts(rank int) (in, out exec.Layout) {
	if c.counts == nil {
		l := exec.NewLayout(c.schedule, c.count, 1)
		return l, l
	}
	parts := c.parts(rank)
	return exec.UnevenLayout(c.schedule, parts.in, 1), exec.UnevenLayout(c.schedule, parts.out, 1)
}

// buffers makes a rank's In and Out, which overlap if the call is in place.
func (c *typedCall[T]) buffers(rank int) (in, out []T) {
	fill := func(l exec.Layout, b sched.Buffer, salt uint64) []T {
		extent := c.schedule.Extent(b, rank)
		v := make([]T, l.At(extent.Hi)-l.At(extent.Lo))
		for i := range v {
			v[i] = c.elements.make(mixed(c.seed + salt + uint64(rank)<<32 + uint64(i)))
		}
		return v
	}
	lin, lout := c.layouts(rank)
	in, out = fill(lin, sched.In, 0), fill(lout, sched.Out, 1<<60)
	if !c.inPlace || len(in) == 0 || len(out) == 0 {
		return in, out
	}
	inside, around := c.schedule.Extent(sched.In, rank), c.schedule.Extent(sched.Out, rank)
	if around.Contains(inside) {
		own := out[lin.At(inside.Lo)-lout.At(around.Lo):][:len(in)]
		copy(own, in)
		return own, out
	}
	return in, in[lout.At(around.Lo)-lin.At(inside.Lo):][:len(out)]
}

// mixed returns a number that looks random, from one that counts.
func mixed(x uint64) uint64 {
	x = (x ^ x>>31) * 0x7fb5d329728ea185
	x = (x ^ x>>27) * 0x81dadef4bc2dd44d
	return x ^ x>>33
}

func (c *typedCall[T]) Run(ctx context.Context, comm *chorale.Comm) error {
	rank := comm.Rank()
	in, out := c.buffers(rank)
	c.results[rank] = out
	name := chorale.WithAlgorithm(c.spec)
	if c.counts != nil {
		parts := c.parts(rank)
		switch c.collective {
		case sched.Scatter:
			return chorale.ScatterV(ctx, comm, out, in, c.counts, c.root, name)
		case sched.Gather:
			return chorale.GatherV(ctx, comm, out, in, c.counts, c.root, name)
		case sched.AllGather:
			return chorale.AllGatherV(ctx, comm, out, in, c.counts, name)
		case sched.ReduceScatter:
			return chorale.ReduceScatterVFunc(ctx, comm, out, in, c.counts, c.op.op, name)
		case sched.AllToAll:
			return chorale.AllToAllV(ctx, comm, out, in, parts.out, parts.in, name)
		}
	}
	switch c.collective {
	case sched.Bcast:
		if rank == c.root {
			copy(out, in)
		}
		return chorale.Bcast(ctx, comm, out, c.root, name)
	case sched.Reduce:
		return chorale.ReduceFunc(ctx, comm, out, in, c.op.op, c.root, name)
	case sched.Scatter:
		return chorale.Scatter(ctx, comm, out, in, c.root, name)
	case sched.Gather:
		return chorale.Gather(ctx, comm, out, in, c.root, name)
	case sched.AllGather:
		return chorale.AllGather(ctx, comm, out, in, name)
	case sched.ReduceScatter:
		return chorale.ReduceScatterFunc(ctx, comm, out, in, c.op.op, name)
	case sched.AllReduce:
		return chorale.AllReduceFunc(ctx, comm, out, in, c.op.op, name)
	case sched.AllToAll:
		return chorale.AllToAll(ctx, comm, out, in, name)
	case sched.Scan:
		return chorale.ScanFunc(ctx, comm, out, in, c.op.op, name)
	case sched.ExScan:
		return chorale.ExScanFunc(ctx, comm, out, in, c.op.op, name)
	case sched.Shift:
		return chorale.Shift(ctx, comm, out, in, c.root, name)
	}
	return chorale.Barrier(ctx, comm, name)
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}
