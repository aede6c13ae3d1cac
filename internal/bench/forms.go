package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// The forms in which calls can be measured, other than the plain, blocking one.
const (
	nonblocking = "nonblocking" // Start, and Wait at once
	overlap     = "overlap"     // Start, computing, Wait: see measureOverlap
	prepared    = "prepared"    // Start and Wait of what Prepare has returned
	uneven      = "uneven"      // ScatterV, …: parts of half and of one and a half times the bytes
	half        = "half"        // on the lower and on the upper half of the ranks at the same time
	function    = "func"        // by an operation of the caller's on elements
	slicewise   = "slices"      // by an operation of the caller's on slices
	columns     = "columns"     // of a matrix, by strided views: see newColumns
)

// Forms returns the forms, by name.
func Forms() []string {
	return []string{nonblocking, overlap, prepared, uneven, half, function, slicewise, columns}
}

// FormsOf returns the forms that a collective or a pattern has.
func FormsOf(c Cell) (all []string) {
	for _, form := range Forms() {
		if c.hasForm(form) {
			all = append(all, form)
		}
	}
	return all
}

func (c Cell) hasForm(form string) bool {
	if c.Pattern != "" {
		return form == columns && c.Pattern == "exchange"
	}
	shape := sched.Schedule{Collective: c.Collective}
	switch form {
	case nonblocking, overlap, prepared, half:
		return true
	case uneven:
		return shape.Partitioned()
	case function, slicewise:
		return c.Collective.Combines()
	case columns:
		return c.Collective == sched.Scatter || c.Collective == sched.Gather
	}
	return false
}

// validForm returns an error if the collective or the pattern does not have the form.
func (c Cell) validForm() error {
	if c.Form == "" || c.hasForm(c.Form) {
		return nil
	}
	plain := Cell{Collective: c.Collective, Pattern: c.Pattern}
	forms := FormsOf(plain)
	if len(forms) == 0 {
		return fmt.Errorf("%s: %s has no other forms", c.Name(), plain.Name())
	}
	return fmt.Errorf("%s: %w", plain.Name(), &sched.UnknownError{What: "form", Name: c.Form, Known: forms})
}

// measureForm measures a cell that has a form.
func (b *Bench) measureForm(ctx context.Context, cell Cell) (Row, error) {
	if cell.Form == columns {
		return b.measure(ctx, cell, newColumns(b.Comm, cell, &b.memory))
	}
	if cell.Collective.Combines() {
		return measureFormOf[float32](ctx, b, cell)
	}
	return measureFormOf[byte](ctx, b, cell)
}

func measureFormOf[T element](ctx context.Context, b *Bench, cell Cell) (Row, error) {
	c := b.Comm
	if cell.Form == half {
		sub, err := splitHalf(ctx, c)
		if err != nil {
			return Row{}, err
		}
		defer sub.Free()
		c = sub
	}
	w := newWork[T](c, cell, &b.memory)
	switch cell.Form {
	case nonblocking:
		w.call = w.startAndWait(func() {})
	case overlap:
		return measureOverlap(ctx, b, cell, w)
	case prepared:
		p, err := w.prepare()
		if err != nil {
			return Row{}, err
		}
		defer p.Free()
	}
	return b.measure(ctx, cell, w)
}

// splitHalf returns the communicator of this rank's half of the ranks.
func splitHalf(ctx context.Context, c *chorale.Comm) (*chorale.Comm, error) {
	return c.Split(ctx, 2*c.Rank()/c.Size(), c.Rank())
}

// startAndWait returns the nonblocking call, with what is done before it is waited for.
func (w *work[T]) startAndWait(meanwhile func()) func(context.Context, []chorale.Option) error {
	return func(ctx context.Context, options []chorale.Option) error {
		r := chorale.Start(ctx, w.comm, func(ctx context.Context, c *chorale.Comm) error {
			return w.dispatch(ctx, c, options)
		})
		meanwhile()
		return r.Wait()
	}
}

// prepare replaces the call by a prepared one, which the caller frees.
func (w *work[T]) prepare() (*chorale.Persistent, error) {
	var given []chorale.Option
	p, err := chorale.Prepare(w.comm, func(ctx context.Context, c *chorale.Comm) error {
		return w.dispatch(ctx, c, given)
	})
	w.call = func(ctx context.Context, options []chorale.Option) error {
		given = options
		p.Start(ctx)
		return p.Wait()
	}
	return p, err
}

// operationOf returns the operation of reductions: a sum, by the kernels or by a
// function as a caller writes it.
func operationOf[T element](form string) chorale.Op[T] {
	switch form {
	case function:
		return chorale.Op[T]{Commutative: true, Combine: func(a, b T) T { return a + b }}
	case slicewise:
		return chorale.Op[T]{Commutative: true, CombineSlice: func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] + b[i]
			}
		}}
	}
	return chorale.Sum[T]()
}

// measureOverlap measures a nonblocking call during which the rank computes, without a
// call. It is as OSU's benchmarks define it: of the time of the call alone, the part is
// hidden by which computing and calling take less together than one after the other,
//
//	overlap = 1 − (together − computing) / alone
//
// and between 0 and 1. Unlike there, a rank computes for a time that depends on the
// bytes only, so that the rows of two libraries compare: 20 µs, and 1 µs for each 1000
// bytes. The row's times are those of the two together.
func measureOverlap[T element](ctx context.Context, b *Bench, cell Cell, w *work[T]) (Row, error) {
	if b.rate == 0 {
		b.rate = computeRate()
	}
	limit := b.Time
	defer func() { b.Time = limit }()
	b.Time /= 3
	computing := func() { compute(int(b.rate * (overlapTime + float64(cell.Bytes)/overlapBytes))) }
	w.call = w.startAndWait(func() {})
	for range w.first() { // as measure does, so that the programs are compiled
		if err := w.run(ctx); err != nil {
			return Row{}, err
		}
	}
	alone, err := b.loop.run(ctx, b.Comm, b.Time, w.run)
	if err != nil {
		return Row{}, err
	}
	only, err := b.loop.run(ctx, b.Comm, b.Time, func(context.Context) error { computing(); return nil })
	if err != nil {
		return Row{}, err
	}
	w.call = w.startAndWait(computing)
	row, err := b.measure(ctx, cell, w)
	hidden := min(1, max(0, 1-(row.Median-summarize(only.samples).Median)/summarize(alone.samples).Median))
	row.Overlap = &hidden
	return row, err
}

const (
	overlapTime  = 20.0   // µs of computing with a message of no bytes
	overlapBytes = 1000.0 // bytes for each further µs
)

// compute multiplies and adds as often as n says, each time with the result before.
func compute(n int) {
	x := 0.0 // which is no fixed point
	for range n {
		x = x*0.999999 + 0.000001
	}
	if x < 0 { // the compiler does not know that it never is, and leaves nothing out
		panic("a sum of positive numbers is negative")
	}
}

// computeRate returns how many iterations compute does in 1 µs: the best of some trials,
// so that what else the machine does counts little.
func computeRate() float64 {
	const n = 100_000
	trials := make([]float64, 20)
	for i := range trials {
		begin := time.Now()
		compute(n)
		trials[i] = sinceMicroseconds(begin)
	}
	return n / slices.Min(trials)
}
