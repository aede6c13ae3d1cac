package algo_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

// messages renders the messages of s step by step, as in "0→4; 0→2 4→6". Two
// messages that cross are written 0↔4.
func messages(t *testing.T, s *sched.Schedule) string {
	t.Helper()
	return render(t, s, func(sched.Message) string { return "" })
}

// messagesAndBlocks adds the blocks that each message carries, as in
// "0→4[4..8]".
func messagesAndBlocks(t *testing.T, s *sched.Schedule) string {
	t.Helper()
	return render(t, s, func(m sched.Message) string { return "[" + m.Blocks.String() + "]" })
}

func render(t *testing.T, s *sched.Schedule, label func(sched.Message) string) string {
	t.Helper()
	timeline, err := s.Timeline()
	if err != nil {
		t.Fatalf("%s: %v", describe(s), err)
	}
	var steps []string
	for i := range timeline.Steps() {
		steps = append(steps, renderStep(timeline.Messages(i), label))
	}
	return strings.Join(steps, "; ")
}

func renderStep(ms []sched.Message, label func(sched.Message) string) string {
	slices.SortFunc(ms, func(a, b sched.Message) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	var texts []string
	crossing := func(m sched.Message) func(sched.Message) bool {
		return func(o sched.Message) bool { return o.From == m.To && o.To == m.From && label(o) == label(m) }
	}
	for _, m := range ms {
		arrow := "→"
		if slices.ContainsFunc(ms, crossing(m)) {
			if m.From > m.To {
				continue
			}
			arrow = "↔"
		}
		texts = append(texts, fmt.Sprintf("%d%s%d%s", m.From, arrow, m.To, label(m)))
	}
	return strings.Join(texts, " ")
}

// reversed turns round both the order of the steps and every arrow.
func reversed(rendered string) string {
	steps := strings.Split(rendered, "; ")
	slices.Reverse(steps)
	for i, step := range steps {
		words := strings.Fields(step)
		for k, word := range words {
			from, to, _ := strings.Cut(word, "→")
			words[k] = to + "→" + from
		}
		slices.SortFunc(words, byNumber)
		steps[i] = strings.Join(words, " ")
	}
	return strings.Join(steps, "; ")
}

// byNumber compares two arrows by the rank that sends.
func byNumber(a, b string) int {
	var x, y int
	fmt.Sscan(strings.SplitN(a, "→", 2)[0], &x)
	fmt.Sscan(strings.SplitN(b, "→", 2)[0], &y)
	return cmp.Compare(x, y)
}

// A count is what a schedule adds up to.
type count struct {
	steps, messages int
	most            int // the most blocks that one rank sends, or receives
	combined        int // the most blocks that one rank combines
}

func tally(t *testing.T, s *sched.Schedule) count {
	t.Helper()
	timeline, err := s.Timeline()
	if err != nil {
		t.Fatalf("%s: %v", describe(s), err)
	}
	sent, received, combined := make([]int, s.P), make([]int, s.P), make([]int, s.P)
	for i := range timeline.Steps() {
		for _, m := range timeline.Messages(i) {
			sent[m.From] += m.Blocks.Len()
			received[m.To] += m.Blocks.Len()
			if m.How != sched.Replace {
				combined[m.To] += m.Blocks.Len()
			}
		}
	}
	return count{timeline.Steps(), timeline.MessageCount(), max(slices.Max(sent), slices.Max(received)), slices.Max(combined)}
}
