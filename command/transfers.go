package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// A transfer is a copy or a message that several ranks make in one step, with the
// same blocks.
type transfer struct {
	copies bool // within a rank; otherwise a message
	src    sched.Buffer
	blocks sched.Range
	dst    sched.Buffer
	at     int
	how    sched.Combine
}

// A pair is the two ends of a message, or a rank twice.
type pair struct{ from, to int }

// A step is its transfers in the order of the timeline, with the ranks of each.
type step struct {
	transfers []transfer
	pairs     map[transfer][]pair
}

func newStep(t *sched.Timeline, i int) *step {
	s := &step{pairs: make(map[transfer][]pair)}
	for _, c := range t.Copies(i) {
		s.add(transfer{true, c.Src, c.Blocks, c.Dst, c.At, c.How}, pair{c.Rank, c.Rank})
	}
	for _, m := range t.Messages(i) {
		s.add(transfer{false, m.Src, m.Blocks, m.Dst, m.At, m.How}, pair{m.From, m.To})
	}
	return s
}

func (s *step) add(x transfer, p pair) {
	if s.pairs[x] == nil {
		s.transfers = append(s.transfers, x)
	}
	s.pairs[x] = append(s.pairs[x], p)
}

// arrows writes pairs as in "3", "0→4", or "0↔4" where there is one each way.
func arrows(pairs []pair) (words []string) {
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	pairs = slices.Compact(pairs)
	all := make(map[pair]bool, len(pairs))
	for _, p := range pairs {
		all[p] = true
	}
	for _, p := range pairs {
		switch back := all[pair{p.to, p.from}]; {
		case p.from == p.to:
			words = append(words, strconv.Itoa(p.from))
		case !back:
			words = append(words, fmt.Sprintf("%d→%d", p.from, p.to))
		case p.from < p.to:
			words = append(words, fmt.Sprintf("%d↔%d", p.from, p.to))
		}
	}
	return words
}

// showPattern prints the pairs of ranks that exchange messages in each step.
func showPattern(w io.Writer, t *sched.Timeline) error {
	lines := [][]string{{"STEP", "MESSAGES"}}
	for i := range t.Steps() {
		var pairs []pair
		for _, m := range t.Messages(i) {
			pairs = append(pairs, pair{m.From, m.To})
		}
		lines = append(lines, []string{strconv.Itoa(i + 1), strings.Join(arrows(pairs), " ")})
	}
	return printTable(w, lines)
}

// showTransfers prints the transfers of each step.
func showTransfers(w io.Writer, t *sched.Timeline) error {
	lines := [][]string{{"STEP", "WHAT", "BLOCKS", "LAND IN", "COMBINE", "RANKS"}}
	for i := range t.Steps() {
		s := newStep(t, i)
		number := strconv.Itoa(i + 1)
		for _, x := range s.transfers {
			what := "message"
			if x.copies {
				what = "copy"
			}
			lines = append(lines, []string{number, what, fmt.Sprintf("%v %v", x.src, x.blocks), fmt.Sprintf("%v %d", x.dst, x.at),
				x.how.String(), strings.Join(arrows(s.pairs[x]), " ")})
			number = ""
		}
	}
	return printTable(w, lines)
}

// A shownTransfer is the CSV form of a copy or a message. A copy has the same rank at both
// ends.
type shownTransfer struct {
	Step    int    `json:"step"` // counted from 1
	What    string `json:"what"`
	From    int    `json:"from"`
	To      int    `json:"to"`
	Src     string `json:"src"`
	Lo      int    `json:"lo"`
	Hi      int    `json:"hi"`
	Dst     string `json:"dst"`
	At      int    `json:"at"`
	Combine string `json:"combine"`
}

func shownTransfers(t *sched.Timeline) (all []shownTransfer) {
	for i := range t.Steps() {
		for _, c := range t.Copies(i) {
			all = append(all, shownTransfer{i + 1, "copy", c.Rank, c.Rank, c.Src.String(), c.Blocks.Lo, c.Blocks.Hi, c.Dst.String(), c.At, c.How.String()})
		}
		for _, m := range t.Messages(i) {
			all = append(all, shownTransfer{i + 1, "message", m.From, m.To, m.Src.String(), m.Blocks.Lo, m.Blocks.Hi, m.Dst.String(), m.At, m.How.String()})
		}
	}
	return all
}

// fill puts words into lines of about 60 characters.
func fill(words []string) (lines []string) {
	line := ""
	for _, word := range words {
		switch {
		case line == "":
			line = word
		case len(line)+len(word) > 60:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
