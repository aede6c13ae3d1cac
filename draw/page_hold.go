package draw

import (
	"fmt"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// What a page says of blocks is limited: by the work of the replay, for which
// steps, ranks and blocks multiply, and by the room beside a node.
const (
	maxReplayed  = 100_000
	maxHeldLines = 4
	maxHeldWords = 60
)

// holds returns what each rank holds before each step and at the end, in the
// words of [contents]; nil where it would be too much, or where there are
// several schedules, whose steps are not those of the scene.
func holds(s Scene) ([][][]string, error) {
	if len(s.Parts) != 1 {
		return nil, nil
	}
	part := s.Parts[0]
	sc := part.Schedule
	if s.Result.Steps*sc.P*max(sc.Blocks, 1) > maxReplayed {
		return nil, nil
	}
	states, err := histories(sc)
	if err != nil || len(states) != s.Result.Steps+1 {
		return nil, err
	}
	all := make([][][]string, len(states))
	for i, state := range states {
		all[i] = make([][]string, s.Result.Ranks)
		for rank, held := range state {
			all[i][partRank(part.Ranks, rank)] = contents(sc, held)
		}
	}
	return all, nil
}

// besideNodes reports whether all that ranks hold has room in the figure.
func besideNodes(states [][][]string) bool {
	chips := 0
	for _, state := range states {
		for _, lines := range state {
			if len(lines) > maxHeldLines || len(strings.Join(lines, "")) > maxHeldWords {
				return false
			}
			chips += len(lines)
		}
	}
	return chips > 0 && chips <= maxArrows
}

// inCells writes what ranks hold as cells of a table. Where lines are blocks
// these are named: (0–3): 0.1.
func inCells(s *sched.Schedule, states [][][]string) [][]string {
	named := s.Collective.Combines() && s.Blocks > 1
	cells := make([][]string, len(states))
	for i, state := range states {
		for _, lines := range state {
			if named {
				lines = byBlocks(lines)
			}
			cells[i] = append(cells[i], strings.Join(lines, ", "))
		}
	}
	return cells
}

// byBlocks gathers the blocks whose lines are alike.
func byBlocks(lines []string) (words []string) {
	blocks := map[string][]int{}
	var order []string
	for b, line := range lines {
		if line == "" {
			continue
		}
		if blocks[line] == nil {
			order = append(order, line)
		}
		blocks[line] = append(blocks[line], b)
	}
	for _, line := range order {
		words = append(words, fmt.Sprintf("(%s): %s", runs(blocks[line]), line))
	}
	return words
}

// holdsMean explains what a table of it says.
func holdsMean(s *sched.Schedule) string {
	const useless = " What is of no more use is left out."
	switch {
	case s.Collective == sched.Barrier:
		return "Of whose arrival a rank has heard; R: of everybody's."
	case s.Collective.Combines() && s.Blocks > 1:
		return "Numbers of blocks, and the ranks whose values are combined in them; R: those of all ranks." + useless
	case s.Collective.Combines():
		return "The ranks whose values are combined; R: those of all ranks." + useless
	case s.Collective == sched.Bcast && s.Blocks == 1:
		return "M is the message."
	case s.Collective == sched.Shift && s.Blocks == 1:
		return "M of 3 is the message of rank 3." + useless
	}
	text := "Numbers of blocks."
	if s.Collective == sched.AllToAll {
		text = "Numbers of blocks; before an arrow, the ranks that they come from."
	}
	return text + useless
}
