package chorale_test

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
)

// callsPerJob is how many calls each drawn job makes, one after another. With
// rapid's 100 jobs that is 10,000 calls; -rapid.checks=N makes it more.
const callsPerJob = 100

// Jobs are drawn at random, and in each a hundred calls. What every rank gets
// must be what the schedule says, evaluated in its own order, bit for bit; and
// where the arithmetic is exact, what the collective says.
func TestTheSameAnswerEverywhere(t *testing.T) {
	calls := callsPerJob
	if testing.Short() {
		calls /= 10
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 33).Draw(t, "p")
		outside := rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "ranks outside")
		network := rapid.SampledFrom(append([]string{"inproc"}, networks...)).Draw(t, "transport")
		drawn := make([]drawnCall, calls)
		for i := range drawn {
			drawn[i] = drawCall(t, size)
		}
		onNetwork(t, network, size+outside, func(ctx context.Context, c *chorale.Comm) error {
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
				t.Fatalf("%v over %s: %v", call, network, err)
			}
		}
	})
}

// networks are the transports that can join ranks within this process.
var networks = func() []string {
	if runtime.GOOS != "linux" {
		return []string{"inproc", "tcp"}
	}
	return []string{"inproc", "tcp", "shm"}
}()

// onEachNetwork runs f on p ranks, over one transport after the other.
func onEachNetwork(t *testing.T, p int, f chorale.Func) {
	for _, network := range networks {
		t.Run(fmt.Sprintf("%s/p=%d", network, p), func(t *testing.T) { onNetwork(t, network, p, f) })
	}
}

// onNetwork runs f on p ranks over the named transport, in this process.
func onNetwork(t interface {
	Helper()
	Fatal(...any)
}, network string, p int, f chorale.Func) {
	t.Helper()
	ends := make([]transport.Endpoint, p)
	switch network {
	case "inproc":
		job := inproc.New(p)
		for rank := range ends {
			ends[rank] = job.Endpoint(rank)
		}
	case "tcp":
		loop, err := tcp.Loopback(p)
		if err != nil {
			t.Fatal(err)
		}
		for rank := range ends {
			ends[rank] = loop[rank]
		}
	case "shm":
		loop, err := shm.Loopback(p)
		if err != nil {
			t.Fatal(err)
		}
		for rank := range ends {
			ends[rank] = loop[rank]
		}
	}
	var ranks sync.WaitGroup
	errs := make([]error, p)
	for rank, end := range ends {
		ranks.Go(func() {
			errs[rank] = f(context.Background(), chorale.NewComm(end, network))
		})
	}
	ranks.Wait()
	for rank, end := range ends {
		if err := end.Close(); err != nil && errs[rank] == nil {
			errs[rank] = err
		}
	}
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A drawnCall is a call that all ranks make, and what they got of it.
type drawnCall interface {
	run(ctx context.Context, c *chorale.Comm) error
	verify() error
	String() string
}

// drawCall draws all of a call but the element type, and leaves that to a
// function that knows it.
func drawCall(t *rapid.T, p int) drawnCall {
	a := rapid.SampledFrom(algo.Catalog()).Filter(func(a algo.Algorithm) bool {
		return a.Restrictions.Allow(p) == nil
	}).Draw(t, "algorithm")
	d := draft{
		collective: a.Collective, p: p,
		spec:        rapid.SampledFrom(algo.Variants(a, p)).Draw(t, "spec"),
		commutative: a.Restrictions.Commutative,
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
	if a.Restrictions.EqualBlocks {
		d.count *= bits.Len(uint(p)) - 1
	}
	s := &sched.Schedule{Collective: a.Collective}
	if s.Parted() && !a.Restrictions.EqualParts && rapid.Bool().Draw(t, "uneven") {
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

// A draft is a call without its element type.
type draft struct {
	collective  sched.Collective
	p, root     int
	spec        string
	commutative bool // the algorithm takes only operations that are
	count       int
	counts      []int // of each rank's part, where they differ
	inPlace     bool
	seed        uint64
}

// A species is an element type to test with.
type species[T any] struct {
	make  func(seed uint64) T
	exact bool // arithmetic is associative
	ops   []operation[T]
}

type operation[T any] struct {
	name  string
	op    chorale.Op[T]
	plain func(a, b T) T
}

func integers[T chorale.Integer]() species[T] {
	return species[T]{func(seed uint64) T { return T(seed) }, true, []operation[T]{
		{"sum", chorale.Sum[T](), func(a, b T) T { return a + b }},
		{"prod", chorale.Prod[T](), func(a, b T) T { return a * b }},
		{"min", chorale.Min[T](), func(a, b T) T { return min(a, b) }},
		{"max", chorale.Max[T](), func(a, b T) T { return max(a, b) }},
		{"and", chorale.And[T](), func(a, b T) T { return a & b }},
		{"or", chorale.Or[T](), func(a, b T) T { return a | b }},
		{"xor", chorale.Xor[T](), func(a, b T) T { return a ^ b }},
	}}
}

func floats[T float32 | float64]() species[T] {
	return species[T]{func(seed uint64) T { return T(int64(seed)) / T(1+seed%1000003) }, false, []operation[T]{
		{"sum", chorale.Sum[T](), func(a, b T) T { return a + b }},
		{"min", chorale.Min[T](), func(a, b T) T { return min(a, b) }},
		{"own", chorale.Op[T]{Combine: func(a, b T) T { return a + b }}, func(a, b T) T { return a + b }},
	}}
}

func complexes() species[complex128] {
	return species[complex128]{func(seed uint64) complex128 {
		return complex(float64(seed%1000)/7, float64(seed%77)/3)
	}, false, []operation[complex128]{
		{"sum", chorale.Sum[complex128](), func(a, b complex128) complex128 { return a + b }},
	}}
}

// affine is x ↦ A·x + B, modulo 2³². One after another does not commute.
type affine struct{ A, B uint32 }

func affines() species[affine] {
	then := func(f, g affine) affine { return affine{f.A * g.A, f.B*g.A + g.B} }
	return species[affine]{func(seed uint64) affine { return affine{uint32(seed) | 1, uint32(seed >> 32)} }, true, []operation[affine]{
		{"then", chorale.Op[affine]{Combine: then}, then},
	}}
}

// A typedCall is a drawnCall of one element type.
type typedCall[T any] struct {
	draft
	species  species[T]
	op       operation[T]
	schedule *sched.Schedule
	results  [][]T // by rank
}

func newCall[T any](t *rapid.T, d draft, s species[T]) drawnCall {
	c := &typedCall[T]{draft: d, species: s, results: make([][]T, d.p)}
	if d.collective.Combines() {
		ops := s.ops
		if d.commutative {
			ops = nil
			for _, op := range s.ops {
				if op.op.Commutative {
					ops = append(ops, op)
				}
			}
			if ops == nil { // this type has none: another algorithm, then
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

func mustChoose(t *rapid.T, d draft, commutative bool) string {
	choice, err := chorale.Choose(chorale.Query{Collective: d.collective.String(), Ranks: d.p, Ordered: !commutative, Uneven: d.counts != nil})
	if err != nil {
		t.Fatal(err)
	}
	return choice.Algorithm
}

// bytes is the size of the whole vector, as the call reckons it.
func (c *typedCall[T]) bytes() int {
	size := int(unsafe.Sizeof(*new(T)))
	s := &sched.Schedule{Collective: c.collective}
	switch {
	case c.collective == sched.Barrier:
		return 0
	case c.counts != nil:
		return sum(c.parts(0).in) * size / c.p * c.p
	case s.Parted():
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

// whole makes a vector that both of a rank's buffers fit in, and cuts them.
func (c *typedCall[T]) buffers(rank int) (in, out []T) {
	fill := func(l exec.Layout, b sched.Buffer, salt uint64) []T {
		extent := c.schedule.Extent(b, rank)
		v := make([]T, l.At(extent.Hi)-l.At(extent.Lo))
		for i := range v {
			v[i] = c.species.make(scrambled(c.seed + salt + uint64(rank)<<32 + uint64(i)))
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

func scrambled(x uint64) uint64 {
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

// verify compares what the ranks got with a replay of the schedule's timeline
// on values, and, where arithmetic is exact, with what the collective promises.
func (c *typedCall[T]) verify() error {
	want, err := c.replay()
	if err != nil {
		return err
	}
	for rank, got := range c.results {
		if err := c.compare(rank, got, want[rank]); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		if c.species.exact {
			if err := c.compare(rank, got, c.promised(rank)); err != nil {
				return fmt.Errorf("promise: %w", err)
			}
		}
	}
	return nil
}

func (c *typedCall[T]) compare(rank int, got, want []T) error {
	if g, w := raw(got), raw(want); g != w {
		return fmt.Errorf("rank %d: got %v, want %v", rank, got, want)
	}
	return nil
}

// raw returns the bits of v.
func raw[T any](v []T) string {
	if len(v) == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0]))))
}

// replay carries the timeline out, message by message.
func (c *typedCall[T]) replay() ([][]T, error) {
	timeline, err := c.schedule.Timeline()
	if err != nil {
		return nil, err
	}
	type rankMemory struct {
		buffer  [3][]T
		from    [3]int // the element with which the buffer begins
		layouts [3]exec.Layout
	}
	ranks := make([]rankMemory, c.p)
	for rank := range ranks {
		m := &ranks[rank]
		m.buffer[sched.In], m.buffer[sched.Out] = c.inputs(rank)
		m.layouts[sched.In], m.layouts[sched.Out] = c.layouts(rank)
		m.layouts[sched.Scratch] = m.layouts[sched.Out]
		m.buffer[sched.Scratch] = make([]T, m.layouts[sched.Scratch].At(c.schedule.Scratch))
		for _, b := range []sched.Buffer{sched.In, sched.Out} {
			m.from[b] = m.layouts[b].At(c.schedule.Extent(b, rank).Lo)
		}
	}
	at := func(rank int, b sched.Buffer, r sched.Range) []T {
		if r.Len() == 0 {
			return nil
		}
		m := &ranks[rank]
		return m.buffer[b][m.layouts[b].At(r.Lo)-m.from[b] : m.layouts[b].At(r.Hi)-m.from[b]]
	}
	land := func(dst, incoming []T, how sched.Combine) {
		for i, x := range incoming {
			switch how {
			case sched.Left:
				dst[i] = c.op.plain(x, dst[i])
			case sched.Right:
				dst[i] = c.op.plain(dst[i], x)
			default:
				dst[i] = x
			}
		}
	}
	for step := range timeline.Steps() {
		for _, m := range timeline.Copies(step) {
			land(at(m.Rank, m.Dst, m.Into()), at(m.Rank, m.Src, m.Blocks), m.How)
		}
		for _, m := range timeline.Messages(step) {
			land(at(m.To, m.Dst, m.Into()), at(m.From, m.Src, m.Blocks), m.How)
		}
	}
	outs := make([][]T, c.p)
	for rank := range outs {
		outs[rank] = ranks[rank].buffer[sched.Out]
	}
	return outs, nil
}

// inputs returns what a rank's buffers held before the call, in memory apart.
func (c *typedCall[T]) inputs(rank int) (in, out []T) {
	in, out = c.buffers(rank)
	return append([]T(nil), in...), append([]T(nil), out...)
}

// promised is a rank's Out as the collective says, from every rank's In alone.
func (c *typedCall[T]) promised(rank int) []T {
	_, out := c.inputs(rank)
	_, lout := c.layouts(rank)
	extent := c.schedule.Extent(sched.Out, rank)
	for b := extent.Lo; b < extent.Hi; b++ {
		w := c.schedule.Want(rank, b)
		dst := out[lout.At(b)-lout.At(extent.Lo) : lout.At(b+1)-lout.At(extent.Lo)]
		for from := w.Lo; from < w.Hi; from++ {
			in, _ := c.inputs(from)
			lin, _ := c.layouts(from)
			base := lin.At(c.schedule.Extent(sched.In, from).Lo)
			for i, x := range in[lin.At(w.Block)-base : lin.At(w.Block+1)-base] {
				if from == w.Lo {
					dst[i] = x
				} else {
					dst[i] = c.op.plain(dst[i], x)
				}
			}
		}
	}
	return out
}
