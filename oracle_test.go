package chorale_test

import (
	"context"
	"fmt"
	"math/bits"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/sched"
)

// callsPerJob is how many calls each drawn job makes, one after another. With
// rapid's 100 jobs that is 10,000 calls; -rapid.checks=N makes it more.
const callsPerJob = 100

// The test draws jobs at random, and in each callsPerJob calls. The result of every
// rank must equal, bit for bit, a replay of the schedule in its own order. Where
// arithmetic is exact, it must also equal the definition of the collective.
func TestRandomCallsMatchTheOracle(t *testing.T) {
	calls := callsPerJob
	if testing.Short() {
		calls /= 10
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 33).Draw(t, "p")
		outside := rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "ranks outside")
		name := rapid.SampledFrom(append([]string{"inproc"}, transports...)).Draw(t, "transport")
		drawn := make([]drawnCall, calls)
		for i := range drawn {
			drawn[i] = drawCall(t, size)
		}
		onTransport(t, name, size+outside, func(ctx context.Context, c *chorale.Comm) error {
			if outside > 0 {
				ranks := make([]int, size) // the first ones, in reverse order
				for i := range ranks {
					ranks[i] = size - 1 - i
				}
				var err error
				if c, err = c.Subset(ctx, ranks); c == nil || err != nil {
					return err
				}
			}
			for _, call := range drawn {
				if err := call.run(ctx, c); err != nil {
					return fmt.Errorf("%v: %w", call, err)
				}
			}
			return nil
		})
		for _, call := range drawn {
			if err := call.verify(); err != nil {
				t.Fatalf("%v over %s: %v", call, name, err)
			}
		}
	})
}

// A drawnCall is a call that all ranks make, with their results.
type drawnCall interface {
	run(ctx context.Context, c *chorale.Comm) error
	verify() error
	String() string
}

// drawCall draws a call for p ranks. The element type comes last, by a function that
// is generic in it.
func drawCall(t *rapid.T, p int) drawnCall {
	a := rapid.SampledFrom(algo.Catalog()).Filter(func(a algo.Algorithm) bool {
		return a.Restrictions.Allow(p) == nil
	}).Draw(t, "algorithm")
	spec := rapid.SampledFrom(algo.Variants(a, p)).Draw(t, "spec")
	restricted, err := algo.Restricted(a.Collective, spec, p)
	if err != nil {
		t.Fatal(err)
	}
	d := untypedCall{
		collective: a.Collective, p: p,
		spec:        spec,
		commutative: restricted.Commutative,
		inPlace:     rapid.Bool().Draw(t, "in place"),
		seed:        rapid.Uint64().Draw(t, "seed"),
	}
	if a.Collective.Rooted() || a.Collective == sched.Shift {
		d.root = rapid.IntRange(0, p-1).Draw(t, "root")
	}
	d.count = rapid.SampledFrom([]int{0, 1, p - 1, p, p + 1, 2*p + 3}).Draw(t, "count")
	if rapid.IntRange(0, 20).Draw(t, "many") == 0 {
		d.count = rapid.IntRange(1000, 5000).Draw(t, "count") / max(1, p/4)
	}
	if restricted.EqualBlocks {
		d.count *= bits.Len(uint(p)) - 1
	}
	s := &sched.Schedule{Collective: a.Collective}
	if s.Partitioned() && !restricted.EqualParts && rapid.Bool().Draw(t, "uneven") {
		d.counts = rapid.SliceOfN(rapid.IntRange(0, 1+d.count%40), p, p).Draw(t, "counts")
		d.inPlace = d.inPlace && a.Collective != sched.AllToAll
	}
	switch rapid.IntRange(0, 6).Draw(t, "type") {
	case 0:
		return newCall(t, d, integers[int64]())
	case 1:
		return newCall(t, d, integers[uint8]())
	case 2:
		return newCall(t, d, integers[int32]())
	case 3:
		return newCall(t, d, floats[float32]())
	case 4:
		return newCall(t, d, floats[float64]())
	case 5:
		return newCall(t, d, complexes())
	}
	return newCall(t, d, affines())
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

// A typedCall is a drawnCall of one element type.
type typedCall[T any] struct {
	untypedCall
	elements elementKind[T]
	op       operation[T]
	schedule *sched.Schedule
	results  [][]T // by rank
}

func newCall[T any](t *rapid.T, d untypedCall, s elementKind[T]) drawnCall {
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
		c.op = rapid.SampledFrom(ops).Draw(t, "op")
	}
	if c.spec == "" {
		c.spec = mustChoose(t, d, c.op.op.Commutative)
	}
	bytes := c.bytes()
	schedule, err := algo.New(d.collective, c.spec, d.p, d.root, bytes)
	if err != nil {
		t.Fatal(err)
	}
	c.schedule = schedule
	return c
}

func mustChoose(t *rapid.T, d untypedCall, commutative bool) string {
	choice, err := selection.Choose(selection.Query{Collective: d.collective, Ranks: d.p, Ordered: !commutative, Uneven: d.counts != nil})
	if err != nil {
		t.Fatal(err)
	}
	return choice.Algorithm
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

func (c *typedCall[T]) run(ctx context.Context, comm *chorale.Comm) error {
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
