package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
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
	sides   []side
	series  map[string]map[cell][]series // by side
	limits  map[string]map[cell]*series  // of the machine for each of ours, measured with it
	machine []limits                     // of each round
	failed  []string                     // what an optional side could not measure, and why
	order   []cell                       // in which the cells were first measured
	rounds  int
}

func newMeasurements(sides []side) *measurements {
	return &measurements{sides: sides, series: map[string]map[cell][]series{}, limits: map[string]map[cell]*series{}}
}

// measure runs the rounds, in which the sides alternate.
func measure(ctx context.Context, s settings, sides []side) (*measurements, error) {
	m := newMeasurements(sides)
	slow := map[string]bool{} // runs that exceeded their time limit
	began := time.Now()
	for m.rounds < s.rounds {
		if spent := time.Since(began); m.rounds > 0 && spent+spent/time.Duration(m.rounds) > s.limit {
			fmt.Fprintf(os.Stderr, "%d of %d runs fit into %v\n", m.rounds, s.rounds, s.limit)
			break
		}
		m.machine = append(m.machine, limits{})
		for _, g := range s.groups() {
			if err := m.runGroup(ctx, s, g, slow); err != nil {
				return nil, err
			}
		}
		m.rounds++
		fmt.Fprintf(os.Stderr, "%s took %v\n", plural(m.rounds, "run"), time.Since(began).Round(time.Second))
	}
	return m, nil
}

// runGroup lets each side measure a group. If a peer exceeds its time limit, the rows
// that it has printed count, and it does not measure this group again.
func (m *measurements) runGroup(ctx context.Context, s settings, g group, slow map[string]bool) error {
	for _, side := range m.sides {
		g := side.restrict(s, g)
		run := fmt.Sprint(side, g)
		if len(g.ops) == 0 || slow[run] {
			continue
		}
		fmt.Fprintf(os.Stderr, "run %d of %d, n=%d, root %s, %s: %v\n", m.rounds+1, s.rounds, g.ranks, rootName(g.root), strings.Join(g.ops, " "), side)
		rows, allowed, err := side.measure(ctx, s, g)
		if err != nil && side.optional && ctx.Err() == nil {
			what, _, _ := strings.Cut(err.Error(), "\n")
			m.failed = append(m.failed, fmt.Sprintf("%v was not measured to the end with %d ranks and %s: %s.", side, g.ranks, strings.Join(g.ops, ", "), what))
			fmt.Fprintln(os.Stderr, err)
			slow[run], err = true, nil
			m.add(side, g.root, rows, s.statistic)
			continue
		}
		if err != nil && (side.ours() || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
			return err
		}
		slow[run] = err != nil
		m.add(side, g.root, rows, s.statistic)
		m.addLimits(side, g.root, rows, allowed)
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

// addLimits adds what the machine allowed the rows of one of ours, in the present round.
func (m *measurements) addLimits(s side, root string, rows []bench.Row, allowed *bench.Limits) {
	if !s.ours() || allowed == nil {
		return
	}
	m.machine[m.rounds].add(*allowed)
	byCell := m.limits[s.String()]
	if byCell == nil {
		byCell = map[cell]*series{}
		m.limits[s.String()] = byCell
	}
	for _, r := range rows {
		c := cell{r.Collective, root, r.Ranks, r.Bytes}
		if time := limit(c, s.transport, *allowed, runtime.NumCPU()); time > 0 {
			if byCell[c] == nil {
				byCell[c] = &series{}
			}
			byCell[c].set(m.rounds, time)
		}
	}
}

// measure runs a side's program and returns its rows, and the machine's limits if it has
// measured them. If the program exceeds its time
// limit, these are the rows printed so far, with context.DeadlineExceeded.
func (s side) measure(ctx context.Context, set settings, g group) ([]bench.Row, *bench.Limits, error) {
	limited, cancel := context.WithTimeout(ctx, s.timeout(set))
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
		return nil, nil, fmt.Errorf("%v with %d ranks: %w\n%s", s, g.ranks, err, stderr.Bytes())
	}
	rows, allowed, bad := decode(&stdout)
	if bad != nil && err == nil {
		err = fmt.Errorf("%v with %d ranks: reading its rows: %w", s, g.ranks, bad)
	}
	return rows, allowed, err
}

// decode reads the output of either side: rows, or objects that hold rows and the machine's
// limits.
func decode(r io.Reader) (rows []bench.Row, allowed *bench.Limits, err error) {
	for d := json.NewDecoder(r); ; {
		var v struct {
			bench.Row
			Rows   []bench.Row   `json:"rows"`
			Limits *bench.Limits `json:"limits"`
		}
		if err := d.Decode(&v); err == io.EOF {
			return rows, allowed, nil
		} else if err != nil {
			return rows, allowed, err
		}
		if v.Rows != nil {
			rows, allowed = append(rows, v.Rows...), v.Limits
		} else {
			rows = append(rows, v.Row)
		}
	}
}
