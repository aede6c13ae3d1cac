package bench

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// columnStride is how many float64 a row of an exchanged matrix has.
const columnStride = 16

// A columnCall is a call that moves a column of a matrix of float64, on one rank. Ranks
// of an exchange swap a column of matrices with columnStride columns, in pairs as in the
// pattern. In a scatter and a gather, the root's matrix has a column for each rank, whose
// elements lie one after another at the rank.
type columnCall struct {
	comm        *chorale.Comm
	cell        Cell
	rows        int
	root, roots int // as of work
	in, out     []float64
}

func newColumns(c *chorale.Comm, cell Cell, m *memory) *columnCall {
	w := &columnCall{comm: c, cell: cell, rows: cell.Bytes / cell.element(), root: max(0, cell.Root), roots: 1}
	n := w.rows * max(c.Size(), columnStride)
	w.in, w.out = float64s(m.in, n), float64s(m.out, n)
	if cell.Root == RotatingRoot && cell.Pattern == "" {
		w.roots = min(c.Size(), maxRoots)
	}
	return w
}

// float64s returns the first n elements of a buffer.
func float64s(buf []byte, n int) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(buf))), n)
}

// run makes the call, and then rotates the root.
func (w *columnCall) run(ctx context.Context) (err error) {
	c, p := w.comm, w.comm.Size()
	matrix := func(data []float64) chorale.Strided[float64] {
		return chorale.Strided[float64]{Data: data, Block: p, Stride: p, Count: w.rows}
	}
	switch peer := c.Rank() ^ 1; {
	case w.cell.Pattern == "":
		if w.cell.Collective == sched.Scatter {
			err = chorale.ScatterStrided(ctx, c, chorale.Contiguous(w.out[:w.rows]), matrix(w.in), w.root)
		} else {
			err = chorale.GatherStrided(ctx, c, matrix(w.out), chorale.Contiguous(w.in[:w.rows]), w.root)
		}
		if w.roots > 1 {
			w.root = (w.root + 1) % w.roots
		}
	case peer < p:
		column := chorale.Strided[float64]{Data: w.in, Block: 1, Stride: columnStride, Count: w.rows}
		into := column
		into.Data = w.out
		_, err = chorale.SendRecvStrided(ctx, c, into, peer, column, peer, 0)
	}
	return err
}

func (w *columnCall) first() int { return w.roots }

func (w *columnCall) algorithm(context.Context) (ran, selected string, err error) {
	switch {
	case w.cell.Pattern != "":
		return "SendRecvStrided", "SendRecvStrided", nil
	case w.cell.Collective == sched.Scatter:
		return "ScatterStrided", "ScatterStrided", nil
	}
	return "GatherStrided", "GatherStrided", nil
}

// verify makes the call once, and compares what it has received.
func (w *columnCall) verify(ctx context.Context) error {
	root := w.root
	for i := range w.in {
		w.in[i] = float64(value(w.comm.Rank(), i))
		w.out[i] = -1
	}
	if err := w.run(ctx); err != nil {
		return err
	}
	return w.compare(root)
}

// compare compares every element of out with what a call with a root leaves there.
func (w *columnCall) compare(root int) error {
	me, p := w.comm.Rank(), w.comm.Size()
	for i, got := range w.out {
		want := -1.0
		switch row, column := i/p, i%p; {
		case w.cell.Pattern != "":
			if peer := me ^ 1; peer < p && i%columnStride == 0 && i/columnStride < w.rows {
				want = float64(value(peer, i))
			}
		case w.cell.Collective == sched.Scatter:
			if i < w.rows {
				want = float64(value(root, i*p+me))
			}
		case me == root && row < w.rows:
			want = float64(value(column, row))
		}
		if got != want {
			return fmt.Errorf("%s on rank %d: element %d is %v: want %v", w.cell.Name(), me, i, got, want)
		}
	}
	return nil
}
