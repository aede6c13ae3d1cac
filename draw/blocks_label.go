package draw

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// contents says in words what a rank holds: a line for each thing, or none.
//
// Where the collective combines, a line is a block: Foster's label of the ranks
// whose values are combined in it, such as 0.1, or R once all are. Where it
// does not, it is the set of blocks, as in (4–7); where these come from several
// ranks, it says from which, as in 0,1→(4–7). The sole block of a broadcast
// is M.
func contents(s *sched.Schedule, held []holding) []string {
	switch {
	case s.Collective.Combines() || s.Collective == sched.Barrier:
		return combined(s, held)
	case len(held) == 0:
		return nil
	case s.Collective == sched.AllToAll:
		return personal(held)
	case s.Collective == sched.Shift && s.Blocks == 1:
		var from []int
		for _, h := range held {
			from = append(from, h.from...)
		}
		return []string{"M of " + runs(from)}
	case s.Collective == sched.Bcast && s.Blocks == 1:
		return []string{"M"}
	}
	return []string{"(" + runs(blocks(held)) + ")"}
}

// celled tells whether contents has a line for each block.
func celled(s *sched.Schedule) bool { return s.Collective.Combines() && s.Blocks > 1 }

// combined has a line for every block, if there are several; an empty one
// where nothing is held. Different values of one block stand side by side.
func combined(s *sched.Schedule, held []holding) []string {
	if len(held) == 0 {
		return nil
	}
	lines := make([]string, max(s.Blocks, 1))
	for _, h := range held {
		if lines[h.block] != "" {
			lines[h.block] += " | "
		}
		lines[h.block] += partial(h.from, s)
	}
	return lines
}

// brief puts blocks together that hold the same: a line such as 0,1: R, or R
// alone if that holds for all.
func brief(lines []string) []string {
	alike := map[string][]int{} // the blocks of a label
	var labels []string
	for block, label := range lines {
		if label != "" && alike[label] == nil {
			labels = append(labels, label)
		}
		alike[label] = append(alike[label], block)
	}
	if len(labels) == 1 && len(alike) == 1 {
		return labels
	}
	for i, label := range labels {
		labels[i] = runs(alike[label]) + ": " + label
	}
	return labels
}

// partial is Foster's label of a value that is combined of the ranks'.
func partial(from []int, s *sched.Schedule) string {
	switch {
	case s.P == 1 || len(from) < s.P || !slices.IsSorted(from):
		return spread(from, ".")
	case s.Collective == sched.Barrier:
		return "all"
	}
	return "R"
}

// personal groups what several ranks have for several others: those that send
// the same blocks share a line.
func personal(held []holding) []string {
	of := map[int][]int{} // the blocks of each origin
	for _, h := range held {
		of[h.from[0]] = append(of[h.from[0]], h.block)
	}
	alike := map[string][]int{} // the origins of each set of blocks
	var sets []string
	for _, from := range slices.Sorted(maps.Keys(of)) {
		set := runs(of[from])
		if alike[set] == nil {
			sets = append(sets, set)
		}
		alike[set] = append(alike[set], from)
	}
	lines := make([]string, len(sets))
	for i, set := range sets {
		lines[i] = fmt.Sprintf("%s→(%s)", runs(alike[set]), set)
	}
	return lines
}

func blocks(held []holding) []int {
	var all []int
	for _, h := range held {
		all = append(all, h.block)
	}
	return slices.Compact(all)
}

// runs writes numbers as in 0,1,4–7.
func runs(numbers []int) string { return spread(numbers, ",") }

// spread writes numbers, three or more that follow each other as a range.
func spread(numbers []int, separator string) string {
	var words []string
	for i := 0; i < len(numbers); {
		j := i + 1
		for j < len(numbers) && numbers[j] == numbers[j-1]+1 {
			j++
		}
		if j-i > 2 {
			words = append(words, fmt.Sprintf("%d–%d", numbers[i], numbers[j-1]))
		} else {
			for _, n := range numbers[i:j] {
				words = append(words, strconv.Itoa(n))
			}
		}
		i = j
	}
	return strings.Join(words, separator)
}
