package match

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// The oracle is a slice that every search looks through from the beginning.
func TestASearchFindsTheFirstMatchHoweverManyMessagesAreQueued(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	anyOr := func(n int) int { return random.IntN(n+1) - 1 }
	for _, most := range []int{4, searchMax, 10 * searchMax} {
		var q TaggedQueue
		var oracle []*Tagged
		indexed := false
		for range 200 * most {
			if len(oracle) < most && random.IntN(3) > 0 {
				oracle = append(oracle, arrive(&q, uint32(random.IntN(2)), random.IntN(3), random.IntN(20)))
				continue
			}
			p := pattern(uint32(random.IntN(2)), anyOr(3), anyOr(20))
			i := slices.IndexFunc(oracle, p.Matches)
			var want *Tagged
			if i >= 0 {
				want = oracle[i]
			}
			if got := q.Find(p); got != want {
				t.Fatalf("with %d messages, %+v finds %+v, want %+v", len(oracle), p, got, want)
			}
			indexed = indexed || q.index != nil
			switch random.IntN(50) {
			case 0:
				q.Release(p.Context)
				oracle = slices.DeleteFunc(oracle, func(m *Tagged) bool { return m.Context == p.Context })
			case 1, 2, 3: // stays queued
			default:
				if want != nil && (!q.Remove(want) || q.Remove(want)) {
					t.Fatal("a message is not there once")
				}
				if i >= 0 {
					oracle = slices.Delete(oracle, i, i+1)
				}
			}
		}
		if want := most > searchMax; indexed != want {
			t.Errorf("up to %d messages: indexed: %v, want %v", most, indexed, want)
		}
		if got, want := q.Held(), len(oracle)*(1+transport.MessageCost); got != want {
			t.Errorf("%d messages of a byte: %d bytes are held", len(oracle), got)
		}
		for len(oracle) > 0 {
			q.Remove(oracle[0])
			oracle = oracle[1:]
		}
		if q.index != nil || q.messages != (list{}) || q.Held() != 0 {
			t.Errorf("an empty queue holds %+v, %+v", q.index, q.messages)
		}
	}
}

// With a search or a removal that takes longer the more messages are queued, this
// test takes minutes.
func TestManyQueuedMessagesAreReceivedInLinearTime(t *testing.T) {
	const n = 100_000
	for name, tag := range map[string]func(i int) int{
		"in the order of arrival": func(i int) int { return i },
		"the last first":          func(i int) int { return n - 1 - i },
		"from any":                func(int) int { return transport.Any },
	} {
		t.Run(name, func(t *testing.T) {
			var q TaggedQueue
			for i := range n {
				q.Add(&Tagged{MessageInfo: transport.MessageInfo{From: 1, Tag: i}})
			}
			for i := range n {
				m := q.Find(pattern(0, 1, tag(i)))
				if m == nil || !q.Remove(m) {
					t.Fatalf("receive %d finds %+v", i, m)
				}
			}
		})
	}
}
