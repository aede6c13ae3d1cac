package algo_test

import (
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// sizes are the numbers of ranks that algorithms are tried with, the awkward
// ones among them.
var sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 64, 100, 127, 128, 129}

// newSchedule returns a schedule that must exist.
func newSchedule(t testing.TB, c sched.Collective, spec string, p, root int) *sched.Schedule {
	t.Helper()
	s, err := algo.New(c, spec, p, root, algo.VariantBytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// roots returns the roots to try, or the distances of a shift: all of a few
// ranks, and some of many.
func roots(c sched.Collective, p int) []int {
	switch {
	case !c.Rooted() && c != sched.Shift:
		return []int{0}
	case p > 17:
		return []int{0, p / 3, p - 1}
	}
	all := make([]int, p)
	for r := range all {
		all[r] = r
	}
	return all
}

// everySchedule calls f for each algorithm, number of ranks, variant and root.
func everySchedule(t *testing.T, sizes []int, f func(t *testing.T, s *sched.Schedule)) {
	for _, a := range algo.Catalog() {
		t.Run(fmt.Sprintf("%v/%s", a.Collective, a.Name), func(t *testing.T) {
			t.Parallel()
			for _, p := range sizes {
				if a.Restrictions.Allow(p) != nil || testing.Short() && p > 9 {
					continue
				}
				for _, spec := range algo.Variants(a, p) {
					for _, root := range roots(a.Collective, p) {
						f(t, newSchedule(t, a.Collective, spec, p, root))
					}
				}
			}
		})
	}
}

// describe names a schedule in an error.
func describe(s *sched.Schedule) string {
	return fmt.Sprintf("%v %s, p %d, root %d", s.Collective, s.Algorithm, s.P, s.Root)
}

func TestEveryScheduleDoesWhatItsCollectivePromises(t *testing.T) {
	everySchedule(t, sizes, func(t *testing.T, s *sched.Schedule) {
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", describe(s), err)
		}
	})
}
