package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/sched"
)

// A benchPlan is what bench measures, for any number of ranks. It is short
// enough to be an argument of the ranks.
type benchPlan struct {
	Collectives []string
	Algorithm   string // "" for the one that is chosen, "all" for all
	Root        int    // of every call; bench.EachRoot lets it go round
	Sizes       []int
	Count       int
	Time        time.Duration
	Verify      bool
}

// complete fills in the collectives: those that are named; or else all that
// have the algorithm.
func (pl *benchPlan) complete(named []string) error {
	switch {
	case pl.Count < 1:
		return fmt.Errorf("a count of %d: want 1 or more", pl.Count)
	case pl.Time < 0:
		return fmt.Errorf("a time of %v: want 0 or more", pl.Time)
	}
	for _, name := range named {
		if _, err := sched.ParseCollective(name); err != nil {
			return err
		}
	}
	pl.Collectives = named
	if len(named) > 0 {
		return nil
	}
	name, _, _ := strings.Cut(pl.Algorithm, ",")
	for _, c := range sched.Collectives() {
		_, err := algo.Lookup(c, name)
		if name == "" || name == "all" || err == nil {
			pl.Collectives = append(pl.Collectives, c.String())
		}
	}
	if len(pl.Collectives) == 0 {
		return fmt.Errorf("no collective has an algorithm %q: see chorale list", name)
	}
	return nil
}

// cells returns the cells on p ranks, in order. Of all algorithms, those that do
// not take such a call are passed over, and it says why.
func (pl *benchPlan) cells(p int) (cells []bench.Cell, skipped []error, err error) {
	for _, name := range pl.Collectives {
		c, err := sched.ParseCollective(name)
		if err != nil {
			return nil, nil, err
		}
		sizes := pl.Sizes
		if c == sched.Barrier {
			sizes = []int{0}
		}
		for _, size := range sizes {
			for _, spec := range pl.specs(c) {
				cell := bench.Cell{Collective: c, Algorithm: spec, Root: pl.Root, Bytes: size}
				err := possible(cell, p)
				switch {
				case err == nil:
					cells = append(cells, cell)
				case pl.Algorithm != "all":
					return nil, nil, err
				case size == sizes[0]:
					skipped = append(skipped, err)
				}
			}
		}
	}
	once := cells
	for range pl.Count - 1 {
		cells = append(cells, once...)
	}
	return cells, skipped, nil
}

func (pl *benchPlan) specs(c sched.Collective) (specs []string) {
	if pl.Algorithm != "all" {
		return []string{pl.Algorithm}
	}
	for _, a := range algo.For(c) {
		specs = append(specs, a.Name)
	}
	return specs
}

// possible reports an error if a cell cannot be measured on p ranks.
func possible(cell bench.Cell, p int) error {
	if cell.Root >= p {
		return fmt.Errorf("root %d on %s: want 0 to %d", cell.Root, plural(p, "rank"), p-1)
	}
	if err := cell.Valid(); err != nil || cell.Algorithm == "" {
		return err
	}
	root := 0
	if cell.Collective == sched.Shift {
		root = 1 % p
	}
	_, err := algo.New(cell.Collective, cell.Algorithm, p, root, whole(cell.Collective, p, cell.Bytes))
	return err
}

// affordable reports an error if the buffers of p ranks are more than the
// machine has memory for, where it tells.
func affordable(cells []bench.Cell, p int) error {
	const gigabyte = 1 << 30
	free := freeMemory()
	for _, c := range cells {
		if need := c.Memory(p); need > free {
			return fmt.Errorf("%v of %d bytes on %d ranks: the buffers take %s GiB, and %s are free: want fewer ranks or bytes",
				c.Collective, c.Bytes, p, digits(need/gigabyte), digits(free/gigabyte))
		}
	}
	return nil
}

// freeMemory returns how many bytes of memory are free: infinitely many where
// the system does not say.
func freeMemory() float64 {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range bytes.Lines(text) {
		var kib float64
		if n, _ := fmt.Sscanf(string(line), "MemAvailable: %g kB", &kib); n == 1 {
			return kib * 1024
		}
	}
	return math.Inf(1)
}
