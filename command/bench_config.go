package command

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/sched"
)

// A benchConfig describes the cells that bench measures, for any number of ranks. It
// is short enough to be an argument of the ranks.
type benchConfig struct {
	Collectives []string // and patterns
	Named       bool     // the user has named them
	Algorithms  []string // "" for the one that is selected, "all" for all
	Several     bool     // what does not fit is skipped
	Root        int      // of every call, or bench.RotatingRoot
	Sizes       []int
	Count       int
	Time        time.Duration
	Verify      bool
	Alloc       bool // buffers from chorale.Alloc
	Hosts       int  // that ranks are placed on; 0 for this machine alone
}

// maxCount bounds how often bench measures every cell.
const maxCount = 10000

// complete fills in the collectives: those that are named, or all that have the
// algorithm.
func (c *benchConfig) complete(named []string) error {
	switch {
	case c.Count < 1 || c.Count > maxCount:
		return fmt.Errorf("a count of %d: want 1 to %d", c.Count, maxCount)
	case c.Time < 0:
		return fmt.Errorf("a time of %v: want 0 or more", c.Time)
	}
	for _, name := range named {
		if _, err := parseCell(name); err != nil {
			return err
		}
	}
	c.Collectives, c.Named = named, true
	if len(named) > 0 {
		return nil
	}
	for _, spec := range c.Algorithms {
		if spec != "" && spec != all {
			if err := selection.Validate(spec); err != nil {
				return err
			}
		}
	}
	for _, op := range sched.Collectives() {
		if len(c.specs(bench.Cell{Collective: op})) > 0 {
			c.Collectives = append(c.Collectives, op.String())
		}
	}
	c.Named = false
	return nil
}

// all is the algorithm that stands for all.
const all = "all"

// cells returns the cells on p ranks, in order. Of several combinations, those that do not
// fit are skipped; skipped are the reasons.
func (c *benchConfig) cells(p int) (cells []bench.Cell, skipped []error, err error) {
	for _, name := range c.Collectives {
		cell, err := parseCell(name)
		if err != nil {
			return nil, nil, err
		}
		root, _ := c.rootOf(cell)
		sizes := c.Sizes
		if cell.Collective == sched.Barrier && cell.Pattern == "" || cell.Pattern == "split" {
			sizes = []int{0}
		}
		for _, size := range sizes {
			for _, spec := range c.specs(cell) {
				cell.Algorithm, cell.Root, cell.Bytes = spec, root, size
				checked := cell
				if c.Hosts > 0 { // which ranks share one is known when they have joined
					checked.Algorithm = selection.WithHosts(cell.Collective, spec, "1")
				}
				err := possible(checked, p)
				var unknown *sched.UnknownError
				switch {
				case err == nil:
					cells = append(cells, cell)
					continue
				case !c.Several:
					return nil, nil, err
				case errors.As(err, &unknown):
					if !c.anyHas(spec) {
						return nil, nil, err
					}
					err = fmt.Errorf("%s has no algorithm %s", cell.Name(), spec)
				}
				if !slices.ContainsFunc(skipped, func(other error) bool { return other.Error() == err.Error() }) {
					skipped = append(skipped, err)
				}
			}
		}
	}
	once := cells
	for range c.Count - 1 {
		cells = append(cells, once...)
	}
	return cells, skipped, nil
}

// anyHas reports whether one of the collectives has an algorithm.
func (c *benchConfig) anyHas(spec string) bool {
	return slices.ContainsFunc(c.Collectives, func(name string) bool {
		cell, err := parseCell(name)
		return err == nil && cell.Pattern == "" && hasAlgorithm(cell.Collective, spec)
	})
}

// anyRooted reports whether a collective among the cells has a root.
func (c *benchConfig) anyRooted() bool {
	return slices.ContainsFunc(c.Collectives, func(name string) bool {
		cell, err := parseCell(name)
		return err == nil && cell.Pattern == "" && cell.Collective.Rooted()
	})
}

// rootOf returns the root of all cells of a collective. A file among its algorithms has one
// root alone, which is then that of all, so that the rows can be compared.
func (c *benchConfig) rootOf(cell bench.Cell) (root int, file string) {
	if c.Root != bench.RotatingRoot || cell.Pattern != "" || !cell.Collective.Rooted() {
		return c.Root, ""
	}
	for _, spec := range c.specs(cell) {
		if algo.IsFile(spec) {
			if s, err := algo.ReadFile(spec); err == nil && s.Collective == cell.Collective {
				return s.Root, spec
			}
		}
	}
	return c.Root, ""
}

// rootNotes says which collectives have a fixed root because of a file.
func (c *benchConfig) rootNotes() (notes []string) {
	for _, name := range c.Collectives {
		cell, err := parseCell(name)
		if err != nil {
			continue
		}
		if root, file := c.rootOf(cell); file != "" {
			notes = append(notes, fmt.Sprintf("%s: every call has root %d, which is that of %s", name, root, filepath.Base(file)))
		}
	}
	return notes
}

// parseCell returns a cell of a collective or a pattern, in a form if there is a colon.
func parseCell(name string) (cell bench.Cell, err error) {
	op, form, hasForm := strings.Cut(name, ":")
	cell.Form = form
	if slices.Contains(bench.Patterns(), op) {
		cell.Pattern = op
	} else if cell.Collective, err = sched.ParseCollective(op); err != nil {
		var unknown *sched.UnknownError
		if errors.As(err, &unknown) {
			unknown.What, unknown.Known = "collective or pattern", append(unknown.Known, bench.Patterns()...)
		}
		return cell, err
	}
	if hasForm && form == "" {
		return cell, fmt.Errorf("%q: want a form after the colon, one of %s", name, strings.Join(bench.FormsOf(cell), ", "))
	}
	return cell, cell.Valid()
}

// specs returns the algorithms of a cell. Where the user has named no collective, a name
// stands for those that have it.
func (c *benchConfig) specs(cell bench.Cell) (specs []string) {
	for _, spec := range c.Algorithms {
		switch {
		case spec == all && (cell.Pattern != "" || cell.Form == "columns"):
			specs = append(specs, "")
		case spec == all:
			for _, a := range algo.For(cell.Collective) {
				specs = append(specs, a.Name)
			}
		case spec == "" || c.Named || hasAlgorithm(cell.Collective, spec):
			specs = append(specs, spec)
		}
	}
	return unique(specs)
}

// possible returns an error if a cell cannot be measured on p ranks.
func possible(cell bench.Cell, p int) error {
	if cell.Root >= p {
		return fmt.Errorf("root %d on %s: want 0 to %d", cell.Root, plural(p, "rank"), p-1)
	}
	if least := cell.MinRanks(); p < least {
		return fmt.Errorf("%s on %s: want %d or more: fewer have nothing to measure", cell.Name(), plural(p, "rank"), least)
	}
	if err := cell.Valid(); err != nil || cell.Algorithm == "" {
		return err
	}
	if cell.Pattern != "" || cell.Form == "columns" {
		return fmt.Errorf("%s has no algorithm: want no --algorithm", cell.Name())
	}
	if cell.Form == "half" {
		p = (p + 1) / 2
	}
	root := 0
	switch {
	case cell.Collective == sched.Shift:
		root = 1 % p
	case cell.Collective.Rooted():
		root = max(0, cell.Root)
	}
	_, err := algo.New(cell.Collective, cell.Algorithm, p, root, whole(cell.Collective, p, cell.Bytes))
	return err
}

// affordable returns an error if the buffers of p ranks exceed the machine's free
// memory.
func affordable(cells []bench.Cell, p int) error {
	const gigabyte = 1 << 30
	free := freeMemory()
	for _, c := range cells {
		if need := c.Memory(p); need > free {
			return fmt.Errorf("%s of %d bytes on %d ranks: the buffers take %s GiB, and %s are free: want fewer ranks or bytes",
				c.Name(), c.Bytes, p, digits(need/gigabyte), digits(free/gigabyte))
		}
	}
	return nil
}

// freeMemory returns the free memory in bytes, or infinity if the system does not
// tell.
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
