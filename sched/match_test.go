package sched_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale/sched"
)

// ends are the two ranks of a message or receive.
type ends struct{ from, to int32 }

func (e *ends) both() (from, to int32) { return e.from, e.to }

// pairs writes what Match yields, as in "0-1 1-0".
func pairs(ranks int, messages, recvs []ends) string {
	var words []string
	for m, r := range sched.Match(ranks, messages, (*ends).both, recvs, (*ends).both) {
		words = append(words, fmt.Sprintf("%d-%d", m, r))
	}
	return strings.Join(words, " ")
}

func TestMatchPairsInOrderPerSenderAndReceiver(t *testing.T) {
	for _, c := range []struct {
		name            string
		messages, recvs []ends
		want            string
	}{
		{"nothing", nil, nil, ""},
		{"one", []ends{{0, 1}}, []ends{{0, 1}}, "0-0"},
		{"two of one pair keep their order", []ends{{0, 1}, {0, 1}}, []ends{{0, 1}, {0, 1}}, "0-0 1-1"},
		{"senders do not queue behind each other", []ends{{0, 2}, {1, 2}}, []ends{{1, 2}, {0, 2}}, "0-1 1-0"},
		{"by receiver", []ends{{0, 2}, {1, 0}, {2, 1}}, []ends{{1, 0}, {2, 1}, {0, 2}}, "1-0 2-1 0-2"},
		{"never received", []ends{{0, 1}, {0, 1}, {1, 0}}, []ends{{0, 1}}, "2--1 0-0 1--1"},
		{"never sent", []ends{{0, 2}}, []ends{{2, 0}, {0, 2}, {1, 2}}, "-1-0 0-1 -1-2"},
		{"sent by another rank than the receive names", []ends{{0, 2}}, []ends{{1, 2}}, "0--1 -1-0"},
	} {
		if got := pairs(3, c.messages, c.recvs); got != c.want {
			t.Errorf("%s: pairs %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMatchStopsWhenTheLoopDoes(t *testing.T) {
	n := 0
	list := []ends{{0, 1}, {0, 1}, {1, 0}}
	for range sched.Match(2, list, (*ends).both, slices.SortedStableFunc(slices.Values(list), byTo), (*ends).both) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d pairs, want 1", n)
	}
}

func byTo(a, b ends) int { return cmp.Compare(a.to, b.to) }

// The plain way: a queue of messages for every pair of ranks.
func TestMatchAgreesWithOneQueuePerPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 6).Draw(t, "ranks")
		rank := rapid.Int32Range(0, int32(ranks-1))
		some := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ends { return ends{rank.Draw(t, "from"), rank.Draw(t, "to")} }), 0, 40)
		messages, recvs := some.Draw(t, "messages"), some.Draw(t, "receives")
		slices.SortStableFunc(messages, func(a, b ends) int { return cmp.Compare(a.from, b.from) })
		slices.SortStableFunc(recvs, byTo)
		queues := make(map[ends][]int)
		for i, m := range messages {
			queues[m] = append(queues[m], i)
		}
		want := make(map[string]bool)
		for i, r := range recvs {
			message := -1
			if queue := queues[r]; len(queue) > 0 {
				message, queues[r] = queue[0], queue[1:]
			}
			want[fmt.Sprintf("%d-%d", message, i)] = true
		}
		for _, rest := range queues {
			for _, i := range rest {
				want[fmt.Sprintf("%d--1", i)] = true
			}
		}
		got := strings.Fields(pairs(ranks, messages, recvs))
		if len(got) != len(want) {
			t.Fatalf("%d pairs, want %d", len(got), len(want))
		}
		for _, pair := range got {
			if !want[pair] {
				t.Fatalf("a pair %s that is not wanted", pair)
			}
		}
	})
}
