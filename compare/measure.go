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

// A cell is one call that both sides measure, each over its own transport.
type cell struct {
	collective string
	root       string // rotatingRoot, or the root of every call
	ranks      int
	bytes      int
}

const (
	rotatingRoot = "-1" // the root moves to the next rank with every call
	fixedRoot    = "0"
)

// rooted are the collectives that are also measured with a fixed root.
var rooted = []string{"bcast", "reduce", "scatter", "gather"}

// A series is the time of one algorithm for a cell in each round, in microseconds; 0
// for a round without a time.
type series struct {
	name     string // as in "MPICH MPI_Bcast", or our algorithm
	rounds   []float64
	switches []float64 // context switches of a call, in the rounds that count them
}

// in returns the time in a round.
func (s series) in(round int) float64 {
	if round >= len(s.rounds) {
		return 0
	}
	return s.rounds[round]
}

// set sets the time in a round.
func (s *series) set(round int, time float64) {
	for len(s.rounds) <= round {
		s.rounds = append(s.rounds, 0)
	}
	s.rounds[round] = time
}

// measurements are the times of all sides.
type measurements struct {
	sides  []side
	series map[string]map[cell][]series // by side
	order  []cell                       // in which the cells were first measured
	rounds int
}

// measure runs the rounds, in which the sides alternate.
func measure(ctx context.Context, s settings, sides []side) (*measurements, error) {
	m := &measurements{sides: sides, series: map[string]map[cell][]series{}}
	slow := map[string]bool{} // runs that exceeded their time limit
	began := time.Now()
	for m.rounds < s.rounds {
		if spent := time.Since(began); m.rounds > 0 && spent+spent/time.Duration(m.rounds) > s.limit {
			fmt.Fprintf(os.Stderr, "%d of %d rounds fit into %v\n", m.rounds, s.rounds, s.limit)
			break
		}
		for _, g := range s.groups() {
			if err := m.runGroup(ctx, s, g, slow); err != nil {
				return nil, err
			}
		}
		m.rounds++
	}
	return m, nil
}

// A group is a set of cells that all sides measure one right after another.
type group struct {
	ranks int
	root  string
	ops   []string
}

// groupSize bounds the collectives of a group. It is small, so that the sides meet the
// same state of the machine: other load and the placement of virtual processors change
// within minutes.
const groupSize = 3

// groups returns the groups of a round.
func (s settings) groups() (all []group) {
	for _, ranks := range s.ranks {
		for _, root := range []string{rotatingRoot, fixedRoot} {
			ops := s.ops
			if root == fixedRoot {
				ops = intersect(ops, rooted)
			}
			for some := range slices.Chunk(ops, groupSize) {
				all = append(all, group{ranks, root, some})
			}
		}
	}
	return all
}

// runGroup lets each side measure a group. If a peer exceeds its time limit, the rows
// that it has printed count, and it does not measure this group again.
func (m *measurements) runGroup(ctx context.Context, s settings, g group, slow map[string]bool) error {
	for _, side := range m.sides {
		run := fmt.Sprint(side, g)
		if slow[run] {
			continue
		}
		fmt.Fprintf(os.Stderr, "round %d of %d, n=%d, root %s, %s: %v\n", m.rounds+1, s.rounds, g.ranks, rootName(g.root), strings.Join(g.ops, " "), side)
		rows, err := side.measure(ctx, s, g)
		if err != nil && (side.ours() || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
			return err
		}
		slow[run] = err != nil
		m.add(side, g.root, rows, s.statistic)
	}
	return nil
}

func rootName(root string) string {
	if root == rotatingRoot {
		return "each"
	}
	return root
}

// intersect returns the words that are in both lists.
func intersect(a, b []string) (words []string) {
	for _, word := range a {
		if slices.Contains(b, word) {
			words = append(words, word)
		}
	}
	return words
}

// add adds the rows of a side in the present round.
func (m *measurements) add(s side, root string, rows []bench.Row, statistic string) {
	byCell := m.series[s.String()]
	if byCell == nil {
		byCell = map[cell][]series{}
		m.series[s.String()] = byCell
	}
	for _, r := range rows {
		c := cell{r.Collective, root, r.Ranks, r.Bytes}
		if !slices.Contains(m.order, c) {
			m.order = append(m.order, c)
		}
		i := slices.IndexFunc(byCell[c], func(s series) bool { return s.name == r.Algorithm })
		if i < 0 {
			i = len(byCell[c])
			byCell[c] = append(byCell[c], series{name: r.Algorithm})
		}
		time := r.Median
		if statistic == "min" {
			time = r.Min
		}
		byCell[c][i].set(m.rounds, time)
		if r.Switches != nil {
			byCell[c][i].switches = append(byCell[c][i].switches, *r.Switches)
		}
	}
}

// measure runs a side's program and returns its rows. If the program exceeds its time
// limit, these are the rows printed so far, with context.DeadlineExceeded.
func (s side) measure(ctx context.Context, set settings, g group) ([]bench.Row, error) {
	limited, cancel := context.WithTimeout(ctx, s.timeout(set, g))
	defer cancel()
	cmd := s.command(limited, set, g)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends its ranks
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if limited.Err() != nil {
		err = fmt.Errorf("%v with %d ranks: %w", s, g.ranks, limited.Err())
	} else if err != nil {
		return nil, fmt.Errorf("%v with %d ranks: %w\n%s", s, g.ranks, err, stderr.Bytes())
	}
	rows, bad := decode(&stdout)
	if bad != nil && err == nil {
		err = fmt.Errorf("%v with %d ranks: reading its rows: %w", s, g.ranks, bad)
	}
	return rows, err
}

// decode reads the output of either side: rows, or objects that hold rows.
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
