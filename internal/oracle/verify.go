package oracle

import (
	"fmt"
	"unsafe"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/sched"
)

func (c *typedCall[T]) Verify(rank int) error {
	want, err := c.replayed()
	if err != nil {
		return err
	}
	if err := c.compare(rank, c.results[rank], want[rank]); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if c.elements.exact {
		if err := c.compare(rank, c.results[rank], c.defined(rank)); err != nil {
			return fmt.Errorf("definition: %w", err)
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

// replay executes the timeline, message by message.
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
	apply := func(dst, incoming []T, how sched.Combine) {
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
			apply(at(m.Rank, m.Dst, m.Into()), at(m.Rank, m.Src, m.Blocks), m.How)
		}
		for _, m := range timeline.Messages(step) {
			apply(at(m.To, m.Dst, m.Into()), at(m.From, m.Src, m.Blocks), m.How)
		}
	}
	outs := make([][]T, c.p)
	for rank := range outs {
		outs[rank] = ranks[rank].buffer[sched.Out]
	}
	return outs, nil
}

// inputs returns copies of a rank's buffers as they were before the call.
func (c *typedCall[T]) inputs(rank int) (in, out []T) {
	in, out = c.buffers(rank)
	return append([]T(nil), in...), append([]T(nil), out...)
}

// defined returns a rank's Out by the collective's definition, from every rank's In.
func (c *typedCall[T]) defined(rank int) []T {
	_, out := c.inputs(rank)
	_, lout := c.layouts(rank)
	extent := c.schedule.Extent(sched.Out, rank)
	for b := extent.Lo; b < extent.Hi; b++ {
		w := c.schedule.Expected(rank, b)
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
