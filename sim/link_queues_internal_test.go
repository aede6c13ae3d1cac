package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The queues are compared with plain lists of messages, one per link.
func TestAMessageStartsWhenItIsAtTheHeadOfAllItsQueues(t *testing.T) {
	for _, predicted := range []bool{true, false} {
		t.Run(fmt.Sprintf("predicted=%v", predicted), func(t *testing.T) { compareQueuesWithLists(t, predicted) })
	}
}

// compareQueuesWithLists lets messages of a ring join and leave the queues of their
// links: in order of time if their arrivals can be predicted, otherwise in any
// order. Many arrivals differ by rounding alone.
func compareQueuesWithLists(t *testing.T, predicted bool) {
	const ranks, messages = 12, 2000
	rng := rand.New(rand.NewPCG(9, 10))
	n := newNetwork(Config{Topology: ring(t, ranks)}, ranks)
	queued := make([]queuedMessage, messages)
	took, end := make([]float64, messages), make([]float64, messages)
	queues := newLinkQueues(newLinkTable(n.links, messages))
	lists := make([][]int32, n.links)
	routeOf := func(i int32) []int32 { return slices.Clone(n.route(queued[i].from, queued[i].to)) }
	now := 1.0
	var waiting, started []int32
	waits, most := 0, 0
	for next := int32(0); next < messages || len(started) > 0; {
		var got, want []int32
		released := int32(-1)
		if next < messages && (len(started) == 0 || rng.IntN(2) == 0) {
			m := &queued[next]
			from := rng.Int32N(ranks)
			m.ends = ends{from, (from + 1 + rng.Int32N(ranks-1)) % ranks}
			took[next] = float64(1+rng.IntN(3)) / 10
			known := took[next]
			if !predicted {
				known = math.Inf(1)
			}
			route := routeOf(next)
			n := queues.join(queued, next, route, now, known)
			m.holder = notWaiting - n
			if n == 0 {
				got = append(got, next)
			}
			waits += int(n)
			most = max(most, waits)
			for _, link := range route {
				lists[link] = append(lists[link], next)
			}
			waiting = append(waiting, next)
			next++
		} else {
			k := rng.IntN(len(started))
			if predicted {
				for other, i := range started {
					if end[i] < end[started[k]]*(1-1e-12) {
						k = other
					}
				}
				now = max(now, end[started[k]])
			}
			released = started[k]
			started = slices.Delete(started, k, k+1)
			queued[released].finish = now
			for at := queued[released].waiters; at != 0; {
				var waiter int32
				waiter, at = queues.leave(at)
				waits--
				if queued[waiter].endWait(released) {
					got = append(got, waiter)
				}
			}
			for _, link := range routeOf(released) {
				lists[link] = lists[link][1:]
			}
		}
		waiting = slices.DeleteFunc(waiting, func(i int32) bool {
			if slices.ContainsFunc(routeOf(i), func(link int32) bool { return lists[link][0] != i }) {
				return false
			}
			want = append(want, i)
			return true
		})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("messages %v start when %d leaves, want %v", got, released, want)
		}
		for _, i := range got {
			end[i] = now + took[i]
			if released < 0 {
				continue
			}
			p := solved{network: n, times: &times{queued: queued}}
			n.allPort = true
			link := p.waitedFor(&queued[i])
			if queued[i].holder != released || !slices.Contains(routeOf(i), link) || !slices.Contains(routeOf(released), link) {
				t.Fatalf("message %d starts when %d leaves, and has waited for link %d, which %d held", i, released, link, queued[i].holder)
			}
		}
		started = append(started, got...)
	}
	if len(waiting) > 0 {
		t.Errorf("%d messages never start", len(waiting))
	}
	if got := len(queues.waiters) - 1; got != most || most == 0 {
		t.Errorf("%d waiters for at most %d in use", got, most)
	}
}
