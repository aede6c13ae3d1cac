package draw

import (
	"fmt"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// Limits on the contents of ranks in pages and networks.
const (
	maxReplayWork = 100_000 // of a page: steps × ranks × blocks
	maxBadgeLines = 4       // in a badge beside a node
	maxBadgeBytes = 60      // in all lines of a badge
)

// stateLines returns the contents of each rank before each step and at the end,
// by state and rank, as lines of [contentLines]. It returns nil if the replay
// would exceed maxReplayWork, or if the scene has several schedules: their steps
// differ from the steps of the scene.
func stateLines(s Scene) ([][][]string, error) {
	if len(s.Parts) != 1 {
		return nil, nil
	}
	part := s.Parts[0]
	sc := part.Schedule
	if s.Result.Steps*sc.P*max(sc.Blocks, 1) > maxReplayWork {
		return nil, nil
	}
	states, err := replay(sc)
	if err != nil || len(states) != s.Result.Steps+1 {
		return nil, err
	}
	all := make([][][]string, len(states))
	for i, state := range states {
		all[i] = make([][]string, s.Result.Ranks)
		for rank, rankContents := range state {
			all[i][globalRank(part.Ranks, rank)] = contentLines(sc, rankContents)
		}
	}
	return all, nil
}

// fitsBesideNodes reports whether the contents of all ranks fit into badges beside
// the nodes.
func fitsBesideNodes(states [][][]string) bool {
	badges := 0
	for _, state := range states {
		for _, lines := range state {
			if !fitsBadge(lines) {
				return false
			}
			badges += len(lines)
		}
	}
	return badges > 0 && badges <= maxArrows
}

// fitsBadge reports whether lines fit into a badge beside a node.
func fitsBadge(lines []string) bool {
	return len(lines) <= maxBadgeLines && len(strings.Join(lines, "")) <= maxBadgeBytes
}

// tableCells returns the contents of each rank as one table cell, by state and
// rank. Where each block has a line, the cell names the blocks: (0–3): 0.1.
func tableCells(s *sched.Schedule, states [][][]string) [][]string {
	perBlock := hasLinePerBlock(s)
	cells := make([][]string, len(states))
	for i, state := range states {
		for _, lines := range state {
			if perBlock {
				lines = groupedForTable(lines)
			}
			cells[i] = append(cells[i], strings.Join(lines, ", "))
		}
	}
	return cells
}

// groupedForTable joins the blocks with equal lines.
func groupedForTable(lines []string) (cells []string) {
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
		cells = append(cells, fmt.Sprintf("(%s): %s", formatRanges(blocks[line]), line))
	}
	return cells
}

// contentsNote explains the cells of the table of contents.
func contentsNote(s *sched.Schedule) string {
	const liveOnly = " Blocks that are no longer needed are left out."
	switch {
	case s.Collective == sched.Barrier:
		return "The ranks whose arrival is known; all: the arrival of every rank."
	case s.Collective.Combines() && s.Blocks > 1:
		return "Numbers of blocks, and the ranks whose values are combined in them; R: the values of all ranks." + liveOnly
	case s.Collective.Combines():
		return "The ranks whose values are combined; R: the values of all ranks." + liveOnly
	case s.Collective == sched.Bcast && s.Blocks == 1:
		return "M is the message."
	case s.Collective == sched.Shift && s.Blocks == 1:
		return "M of 3 is the message of rank 3." + liveOnly
	}
	text := "Numbers of blocks."
	if s.Collective == sched.AllToAll {
		text = "Numbers of blocks; before an arrow, their ranks of origin."
	}
	return text + liveOnly
}
