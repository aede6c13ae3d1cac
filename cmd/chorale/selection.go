package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A selection says which schedules to check.
type selection struct {
	collectives []sched.Collective
	algorithm   string // "" for all
	ranks       ranges
	rooted      bool // whether root is wanted, and no other
	root        int
	bytes       int
}

// schedules returns them. It is an error if there is none, or if the one that
// is named does not exist.
func (s *selection) schedules() (all []*sched.Schedule, err error) {
	var refused error
	for _, p := range s.ranks.values {
		for _, c := range s.collectives {
			for _, spec := range s.specs(c, p) {
				for _, root := range s.roots(c, p) {
					made, err := algo.New(c, spec, p, root, cmp.Or(whole(c, p, s.bytes), algo.VariantBytes))
					switch {
					case err == nil:
						all = append(all, made)
					case refused == nil:
						refused = err
					}
				}
			}
		}
	}
	switch {
	case refused != nil && (s.ranks.single || len(all) == 0):
		return nil, refused
	case len(all) == 0:
		return nil, fmt.Errorf("no collective has an algorithm %q: see chorale list", s.algorithm)
	}
	return all, nil
}

// specs returns the algorithms of a collective to try with p ranks: the one
// that is named; or else all that take p, with several values of each parameter.
func (s *selection) specs(c sched.Collective, p int) (specs []string) {
	name, _, _ := strings.Cut(s.algorithm, ",")
	if s.algorithm != "" {
		if _, err := algo.Lookup(c, name); err == nil || len(s.collectives) == 1 {
			specs = append(specs, s.algorithm)
		}
		return specs
	}
	for _, a := range algo.For(c) {
		if a.Restrictions.Allow(p) != nil {
			continue
		}
		specs = append(specs, algo.Variants(a, p)...)
	}
	return specs
}

// allRoots is up to how many ranks every root is tried.
const allRoots = 64

// roots returns the roots to try, which for a shift are distances.
func (s *selection) roots(c sched.Collective, p int) []int {
	rooted := c.Rooted() || c == sched.Shift
	switch {
	case !rooted && (!s.rooted || len(s.collectives) > 1):
		return []int{0}
	case s.rooted:
		return []int{s.root}
	case p > allRoots:
		return []int{0, p / 2, p - 1}
	}
	roots := make([]int, p)
	for i := range roots {
		roots[i] = i
	}
	return roots
}

// checkAll checks schedules on all cores, and says on progress, if there is
// such a thing, how far it has come. What fails is in the order of the list.
func checkAll(list []*sched.Schedule, progress io.Writer) verdict {
	var (
		next    atomic.Int64
		faults  = make([]error, len(list))
		workers sync.WaitGroup
	)
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		workers.Go(func() {
			// The last ones take longest.
			for i := len(list) - int(next.Add(1)); i >= 0; i = len(list) - int(next.Add(1)) {
				faults[i] = list[i].Check()
			}
		})
	}
	if progress != nil {
		stop := follow(progress, &next, len(list))
		defer stop()
	}
	workers.Wait()
	v := verdict{Checked: len(list), Failed: []failure{}}
	for i, err := range faults {
		if s := list[i]; err != nil {
			v.Failed = append(v.Failed, failure{s.Collective.String(), s.Algorithm, s.P, s.Root, err.Error()})
		}
	}
	return v
}

// follow shows how many of the schedules have been checked, until stop.
func follow(w io.Writer, done *atomic.Int64, all int) (stop func()) {
	var writer sync.WaitGroup
	over := make(chan struct{})
	writer.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(w, "\r%d of %d schedules checked", min(int(done.Load()), all), all)
			case <-over:
				fmt.Fprint(w, "\r\x1b[K")
				return
			}
		}
	})
	return func() {
		close(over)
		writer.Wait()
	}
}
