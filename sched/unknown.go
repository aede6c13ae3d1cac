package sched

import (
	"fmt"
	"slices"
	"strings"
)

// An UnknownError says that a name is none of the known ones, and which of these is the
// nearest to it.
type UnknownError struct {
	What  string   // what the name is for, as in "collective"
	Name  string   // as given
	Known []string // in the order in which the error lists them
	Meant string   // the known name that Name is another word for; "" if that is not known
}

func (e *UnknownError) Error() string {
	known := strings.Join(e.Known, ", ")
	if len(e.Known) == 0 {
		return fmt.Sprintf("no %s %q: there is none", e.What, e.Name)
	}
	if near := e.Nearest(); near != "" && len(e.Known) > 1 {
		others := slices.DeleteFunc(slices.Clone(e.Known), func(name string) bool { return name == near })
		known = near + ", or another of " + strings.Join(others, ", ")
	}
	return fmt.Sprintf("no %s %q: want %s", e.What, e.Name, known)
}

// Nearest returns Meant, or else the known name that takes the fewest insertions,
// deletions and replacements of a character, or swaps of two neighbors, to make of the
// given one. It is empty if that would change a third of the characters or more.
func (e *UnknownError) Nearest() string {
	if e.Meant != "" {
		return e.Meant
	}
	near := func(known string) int { return changes(strings.ToLower(e.Name), known) }
	if len(e.Known) == 0 || len(e.Name) > 64 {
		return ""
	}
	best := slices.MinFunc(e.Known, func(a, b string) int { return near(a) - near(b) })
	if 3*near(best) > max(len(e.Name), len(best)) {
		return ""
	}
	return best
}

// changes returns the number of changes between two names: their distance by Damerau and
// Levenshtein, with each swap of neighbors on its own.
func changes(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(last[j]+cost, last[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, last = last, next
	}
	return last[len(b)]
}
