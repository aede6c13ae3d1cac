package draw

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chorale-go/chorale/sched"
)

// contentLines describes the contents of a rank in lines.
//
// If the collective combines, there is a line for each block. It has the
// label of the ranks whose values are combined, such as 0+1, or R for the values of
// all ranks. Otherwise one line has the set of blocks, as in (4–7). Blocks of
// an alltoall have a line for each group of origins, as in 0,1→(4–7). The only
// block of a broadcast is M.
func contentLines(s *sched.Schedule, contents []blockContents) []string {
	switch {
	case s.Collective.Combines() || s.Collective == sched.Barrier:
		return combinedLines(s, contents)
	case len(contents) == 0:
		return nil
	case s.Collective == sched.AllToAll:
		return originLines(contents)
	case s.Collective == sched.Shift && s.Blocks == 1:
		var from []int
		for _, h := range contents {
			from = append(from, h.from...)
		}
		return []string{"M of " + formatRanges(from)}
	case s.Collective == sched.Bcast && s.Blocks == 1:
		return []string{"M"}
	}
	return []string{"(" + formatRanges(blockNumbers(contents)) + ")"}
}

// hasLinePerBlock reports whether contentLines has a line for each of several
// blocks.
func hasLinePerBlock(s *sched.Schedule) bool { return s.Collective.Combines() && s.Blocks > 1 }

// combinedLines returns a line for every block, empty if the rank does not hold
// the block. Different values of one block share a line.
func combinedLines(s *sched.Schedule, contents []blockContents) []string {
	if len(contents) == 0 {
		return nil
	}
	lines := make([]string, max(s.Blocks, 1))
	for _, h := range contents {
		if lines[h.block] != "" {
			lines[h.block] += " | "
		}
		lines[h.block] += contributorLabel(h.from, s)
	}
	return lines
}

// groupedByBlocks joins the blocks with equal lines, as in 0,1: R. If all blocks
// have the same line, it stands alone.
func groupedByBlocks(lines []string) []string {
	blocksOf := map[string][]int{} // the blocks of a label
	var labels []string
	for block, label := range lines {
		if label != "" && blocksOf[label] == nil {
			labels = append(labels, label)
		}
		blocksOf[label] = append(blocksOf[label], block)
	}
	if len(labels) == 1 && len(blocksOf) == 1 {
		return labels
	}
	for i, label := range labels {
		labels[i] = formatRanges(blocksOf[label]) + ": " + label
	}
	return labels
}

// contributorLabel returns the label of a value combined from ranks: theirs, joined by
// a plus sign, since 0.1 would read as a decimal number.
func contributorLabel(from []int, s *sched.Schedule) string {
	switch {
	case s.P == 1 || len(from) < s.P || !slices.IsSorted(from):
		return joinRanges(from, "+")
	case s.Collective == sched.Barrier:
		return "all"
	}
	return "R"
}

// originLines groups the blocks of an alltoall by origin. Origins of equal sets of
// blocks share a line.
func originLines(contents []blockContents) []string {
	blocksOf := map[int][]int{} // the blocks of each origin
	for _, h := range contents {
		blocksOf[h.from[0]] = append(blocksOf[h.from[0]], h.block)
	}
	originsOf := map[string][]int{} // the origins of each set of blocks
	var sets []string
	for _, from := range slices.Sorted(maps.Keys(blocksOf)) {
		set := formatRanges(blocksOf[from])
		if originsOf[set] == nil {
			sets = append(sets, set)
		}
		originsOf[set] = append(originsOf[set], from)
	}
	lines := make([]string, len(sets))
	for i, set := range sets {
		lines[i] = fmt.Sprintf("%s→(%s)", formatRanges(originsOf[set]), set)
	}
	return lines
}

func blockNumbers(contents []blockContents) []int {
	var numbers []int
	for _, h := range contents {
		numbers = append(numbers, h.block)
	}
	return slices.Compact(numbers)
}
