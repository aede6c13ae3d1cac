package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/internal/bench"
)

// A cell is what both sides measure. Ours and theirs differ in transport.
type cell struct {
	collective string
	root       string // eachRoot; or the root of every call
	ranks      int
	bytes      int
}

const (
	eachRoot = "-1" // the root goes round
	oneRoot  = "0"
)

// rooted are the collectives in which one root for all calls makes a difference.
var rooted = []string{"bcast", "reduce", "scatter", "gather"}

// A figure is what one way of doing a cell took, in microseconds, in each round;
// 0 in a round that did not get to it.
type figure struct {
	name   string // as in "MPICH MPI_Bcast", or our algorithm
	rounds []float64
}

// in returns the time in a round.
func (f figure) in(round int) float64 {
	if round >= len(f.rounds) {
		return 0
	}
	return f.rounds[round]
}

// set sets the time in a round.
func (f *figure) set(round int, time float64) {
	for len(f.rounds) <= round {
		f.rounds = append(f.rounds, 0)
	}
	f.rounds[round] = time
}

// measurements are all figures, of each side.
type measurements struct {
	sides   []side
	figures map[string]map[cell][]figure // by side
	order   []cell                       // as measured first
	rounds  int
}

// measure lets the sides take turns.
func measure(ctx context.Context, s settings, sides []side) (*measurements, error) {
	m := &measurements{sides: sides, figures: map[string]map[cell][]figure{}}
	slow := map[string]bool{} // runs that have taken too long
	began := time.Now()
	for m.rounds < s.rounds {
		if spent := time.Since(began); m.rounds > 0 && spent+spent/time.Duration(m.rounds) > s.limit {
			fmt.Fprintf(os.Stderr, "%d of %d rounds fit into %v\n", m.rounds, s.rounds, s.limit)
			break
		}
		for _, t := range s.turns() {
			if err := m.turn(ctx, s, t, slow); err != nil {
				return nil, err
			}
		}
		m.rounds++
	}
	return m, nil
}

// A turn is what all sides measure right after each other.
type turn struct {
	ranks int
	root  string
	ops   []string
}

// opsInTurn is few enough that the sides meet the same machine: what else goes on
// there, and where a virtual one has its processors, changes within minutes.
const opsInTurn = 3

// turns returns the turns of a round.
func (s settings) turns() (all []turn) {
	for _, ranks := range s.ranks {
		for _, root := range []string{eachRoot, oneRoot} {
			ops := s.ops
			if root == oneRoot {
				ops = both(ops, rooted)
			}
			for some := range slices.Chunk(ops, opsInTurn) {
				all = append(all, turn{ranks, root, some})
			}
		}
	}
	return all
}

// turn lets each side measure the same. A run of a peer that takes too long
// counts as far as it has come, and joins the slow ones, which are not repeated.
func (m *measurements) turn(ctx context.Context, s settings, t turn, slow map[string]bool) error {
	for _, side := range m.sides {
		run := fmt.Sprint(side, t)
		if slow[run] {
			continue
		}
		fmt.Fprintf(os.Stderr, "round %d of %d, n=%d, root %s, %s: %v\n", m.rounds+1, s.rounds, t.ranks, rootName(t.root), strings.Join(t.ops, " "), side)
		rows, err := side.measure(ctx, s, t)
		if err != nil && (side.ours() || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
			return err
		}
		slow[run] = err != nil
		m.take(side, t.root, rows, s.figure)
	}
	return nil
}

func rootName(root string) string {
	if root == eachRoot {
		return "each"
	}
	return root
}

// both returns the words that are in both lists.
func both(a, b []string) (words []string) {
	for _, word := range a {
		if slices.Contains(b, word) {
			words = append(words, word)
		}
	}
	return words
}

// take files rows.
func (m *measurements) take(s side, root string, rows []bench.Row, what string) {
	byCell := m.figures[s.String()]
	if byCell == nil {
		byCell = map[cell][]figure{}
		m.figures[s.String()] = byCell
	}
	for _, r := range rows {
		c := cell{r.Collective, root, r.Ranks, r.Bytes}
		if !slices.Contains(m.order, c) {
			m.order = append(m.order, c)
		}
		i := slices.IndexFunc(byCell[c], func(f figure) bool { return f.name == r.Algorithm })
		if i < 0 {
			i = len(byCell[c])
			byCell[c] = append(byCell[c], figure{name: r.Algorithm})
		}
		time := r.Median
		if what == "min" {
			time = r.Min
		}
		byCell[c][i].set(m.rounds, time)
	}
}

// measure runs a side's program and returns its rows: those that it has printed
// when it takes too long, together with context.DeadlineExceeded.
func (s side) measure(ctx context.Context, set settings, t turn) ([]bench.Row, error) {
	limited, cancel := context.WithTimeout(ctx, s.patience(set, t))
	defer cancel()
	cmd := s.command(limited, set, t)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends its ranks
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if limited.Err() != nil {
		err = fmt.Errorf("%v with %d ranks: %w", s, t.ranks, limited.Err())
	} else if err != nil {
		return nil, fmt.Errorf("%v with %d ranks: %w\n%s", s, t.ranks, err, complaints.Bytes())
	}
	rows, bad := decode(&out)
	if bad != nil && err == nil {
		err = fmt.Errorf("%v with %d ranks: reading its rows: %w", s, t.ranks, bad)
	}
	return rows, err
}

// decode reads what either side prints: rows, or objects that hold rows.
func decode(r io.Reader) (rows []bench.Row, err error) {
	for d := json.NewDecoder(r); ; {
		var v struct {
			bench.Row
			Rows []bench.Row `json:"rows"`
		}
		if err := d.Decode(&v); err == io.EOF {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		if v.Rows != nil {
			rows = append(rows, v.Rows...)
		} else {
			rows = append(rows, v.Row)
		}
	}
}
