package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/sched"
)

// A scheduleFilter describes the schedules to check.
type scheduleFilter struct {
	collectives []sched.Collective
	algorithms  list[string] // none for all
	ranks       list[int]
	rooted      bool // check root alone
	root        int
	bytes       int
	memory      size
}

// maxSchedules bounds the schedules of one call.
const maxSchedules = 1 << 20

// tooMany reports whether there are more than maxSchedules even with one value of each
// parameter. It makes none of them: some have tables of the size of p.
func (s *scheduleFilter) tooMany() bool {
	n := 0
	for _, c := range s.collectives {
		for _, a := range algo.For(c) {
			if !s.named(a.Name) {
				continue
			}
			for _, p := range s.ranks.values {
				if a.Restrictions.Allow(p) != nil {
					continue
				}
				if n += len(s.roots(c, p)); n > maxSchedules {
					return true
				}
			}
		}
	}
	return false
}

// named reports whether the algorithm may be one to check.
func (s *scheduleFilter) named(algorithm string) bool {
	return len(s.algorithms.values) == 0 || slices.ContainsFunc(s.algorithms.values, func(spec string) bool {
		return spec == algorithm || strings.HasPrefix(spec, algorithm+",")
	})
}

// single reports whether one algorithm and one number of ranks are named.
func (s *scheduleFilter) single() bool {
	return len(s.ranks.values) == 1 && len(s.algorithms.values) < 2
}

// schedules returns the schedules. It is an error if there is none, if the one algorithm
// that is named does not take the one number of ranks that is named, or if there is no
// algorithm of a name.
func (s *scheduleFilter) schedules() (all []*sched.Schedule, err error) {
	if err := checkBytes(s.bytes, s.ranks.values[len(s.ranks.values)-1]); err != nil {
		return nil, err
	}
	tooMany := fmt.Errorf("-n %s: more than %d schedules: want fewer numbers of ranks, or a collective or an algorithm", s.ranks.text, maxSchedules)
	for _, spec := range s.algorithms.values {
		if len(s.collectives) > 1 {
			if err := selection.Validate(spec); err != nil {
				return nil, err
			}
		}
	}
	if s.tooMany() {
		return nil, tooMany
	}
	var refused error
	var unknown *sched.UnknownError
	for _, p := range s.ranks.values {
		for _, c := range s.collectives {
			for _, spec := range s.specs(c, p) {
				for _, root := range s.roots(c, p) {
					schedule, err := newSchedule(c, spec, p, root, cmp.Or(whole(c, p, s.bytes), algo.VariantBytes), s.memory)
					switch {
					case errors.Is(err, sched.ErrTooLarge):
						return nil, fmt.Errorf("%v %s: %w", c, spec, err)
					case len(all) == maxSchedules:
						return nil, tooMany
					case err == nil:
						all = append(all, schedule)
					case errors.As(err, &unknown):
						return nil, err
					case refused == nil:
						refused = err
					}
				}
			}
		}
	}
	if refused != nil && (s.single() || len(all) == 0) {
		return nil, refused
	}
	return all, nil
}

// specs returns the algorithms of a collective to check with p ranks: the one that is
// named, or all that take p, with several values of each parameter.
func (s *scheduleFilter) specs(c sched.Collective, p int) (specs []string) {
	for _, spec := range s.algorithms.values {
		if len(s.collectives) == 1 || hasAlgorithm(c, spec) {
			specs = append(specs, spec)
		}
	}
	if len(s.algorithms.values) > 0 {
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

// allRoots is the largest number of ranks for which every root is checked.
const allRoots = 64

// roots returns the roots to check. The root of a shift is its distance.
func (s *scheduleFilter) roots(c sched.Collective, p int) []int {
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

// checkAll checks schedules on all cores, and shows its progress unless that is nil.
// The failures are in the order of the list. It stops with an error at a schedule
// that takes more than the memory; those that are checked at once share it.
func checkAll(list []*sched.Schedule, memory size, progress io.Writer) (checkReport, error) {
	var (
		next    atomic.Int64
		faults  = make([]error, len(list))
		refused atomic.Pointer[error]
		free    = newBudget(float64(memory))
		workers sync.WaitGroup
	)
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		workers.Go(func() {
			// The last schedules take longest, so they come first.
			for i := len(list) - int(next.Add(1)); i >= 0 && refused.Load() == nil; i = len(list) - int(next.Add(1)) {
				need := free.take(list[i].CheckMemory())
				faults[i] = list[i].CheckWithin(int64(memory))
				free.give(need)
				if errors.Is(faults[i], sched.ErrTooLarge) {
					err := fmt.Errorf("%v %s: %w", list[i].Collective, list[i].Algorithm, faults[i])
					refused.Store(&err)
				}
			}
		})
	}
	if progress != nil {
		stop := follow(progress, &next, len(list))
		defer stop()
	}
	workers.Wait()
	if err := refused.Load(); err != nil {
		return checkReport{}, *err
	}
	r := checkReport{Checked: len(list), Failed: []failure{}}
	for i, err := range faults {
		if s := list[i]; err != nil {
			r.Failed = append(r.Failed, failure{s.Collective.String(), s.Algorithm, s.P, s.Root, err.Error(), faultsOf(err)})
		}
	}
	return r, nil
}

// faultsOf returns the faults of a schedule one by one.
func faultsOf(err error) []error {
	var several sched.Faults
	if errors.As(err, &several) {
		return several.Unwrap()
	}
	return []error{err}
}

// A budget is memory that goroutines share.
type budget struct {
	all, free float64
	lock      sync.Mutex
	given     sync.Cond
}

func newBudget(all float64) *budget {
	b := &budget{all: all, free: all}
	b.given.L = &b.lock
	return b
}

// take waits until so much is free, and takes it. No goroutine takes more than there
// is. It returns what it took.
func (b *budget) take(need float64) float64 {
	need = min(need, b.all)
	b.lock.Lock()
	defer b.lock.Unlock()
	for b.free < need {
		b.given.Wait()
	}
	b.free -= need
	return need
}

func (b *budget) give(back float64) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.free += back
	b.given.Broadcast()
}

// follow shows the number of schedules that have been checked, until stop.
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
