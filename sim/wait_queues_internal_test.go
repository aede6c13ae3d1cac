package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/model"
)

// The queues are compared with plain lists of messages, one per link.
func TestAMessageStartsWhenItIsAtTheHeadOfAllItsQueues(t *testing.T) {
	const ranks, messages = 12, 2000
	rng := rand.New(rand.NewPCG(9, 10))
	c := Config{Topology: ring(t, ranks), Model: model.Model{Ts: 1}, AllPort: true}
	n := newNetwork(c, ranks)
	q := &queueing{
		programTable: &programTable{messages: make([]message, messages), lengths: []int{1}},
		network:      n, config: c,
		queued: make([]queuedMessage, messages), queues: newWaitQueues(n.links), events: newCalendar(),
	}
	lists := make([][]int32, n.links)
	routeOf := func(i int32) []int32 { return n.route(q.queued[i].from, q.queued[i].to) }
	first := func(i int32) bool {
		return !slices.ContainsFunc(routeOf(i), func(link int32) bool { return lists[link][0] != i })
	}
	var waiting, started []int32
	taken, most := 0, 0 // places
	for next := int32(0); next < messages || len(started) > 0; {
		released := int32(-1)
		if next < messages && (len(started) == 0 || rng.IntN(2) == 0) {
			from := rng.Int32N(ranks)
			q.queued[next].ends = ends{from, (from + 1 + rng.Int32N(ranks-1)) % ranks}
			q.queueForPorts(turn(next))
			q.ported = q.ported[:0]
			q.queueForLinks(next)
			for _, link := range routeOf(next) {
				lists[link] = append(lists[link], next)
				taken++
			}
			waiting = append(waiting, next)
			most = max(most, taken)
			next++
		} else {
			k := rng.IntN(len(started))
			released = started[k]
			started = slices.Delete(started, k, k+1)
			q.release(released, &q.queued[released])
			for _, link := range routeOf(released) {
				lists[link] = lists[link][1:]
				taken--
			}
		}
		var got, want []int32
		for _, e := range q.events.take(math.MaxFloat64, nil) {
			got = append(got, e.id)
		}
		slices.Sort(got)
		waiting = slices.DeleteFunc(waiting, func(i int32) bool {
			if !first(i) {
				return false
			}
			want = append(want, i)
			return true
		})
		if !slices.Equal(got, want) {
			t.Fatalf("messages %v start, want %v", got, want)
		}
		for _, i := range got {
			m := &q.queued[i]
			if released >= 0 && (m.holder != released || !slices.Contains(routeOf(i), m.waitedFor)) || released < 0 && m.waitedFor != -1 {
				t.Fatalf("message %d starts when %d leaves, and has waited for %d, which %d held", i, released, m.waitedFor, m.holder)
			}
		}
		started = append(started, got...)
	}
	if len(waiting) > 0 {
		t.Errorf("%d messages never start", len(waiting))
	}
	if got := len(q.queues.places) - 1; got != most {
		t.Errorf("%d places for at most %d in use", got, most)
	}
}
