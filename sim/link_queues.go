package sim

import "math"

// linkQueues are the queues of links. They are first come, first served, and a
// message joins those of its route at once. It starts when it is at the head of
// all, and leaves all when it has arrived.
//
// So when a message joins, all those before it have joined, and it follows when
// they will have arrived, and then when it will: a queue need only know that of
// its last message. A message waits for those before it that arrive last. These
// times are predictions, because events that differ by rounding alone happen at
// one time. So it waits for every message that may be the last, and starts when
// the last of them arrives.
//
// Where messages share bandwidth, nobody knows when they will arrive, and a
// message waits for all that are before it.
type linkQueues struct {
	links   linkTable // when the last message of a queue will have arrived; its mark is one more than the message
	waiters []waiter  // waiter 0 stands for none
	unused  int32     // the first of those that are not in use, or 0
}

// A waiter is a message that waits for another one to arrive.
type waiter struct {
	message int32
	next    int32 // the next that waits for the same message, or of those not in use; or 0
}

// rounding bounds the error of a prediction, in proportion to the time.
const rounding = 1e-6

// newLinkQueues returns empty queues of the links of a table.
func newLinkQueues(links linkTable) linkQueues {
	clear(links.all)
	clear(links.list)
	return linkQueues{links: links, waiters: make([]waiter, 1)}
}

// join puts a message at the end of the queues of its links, and returns the
// number of messages that it waits for. Of each of these it is a waiter. Took is
// the time from its start to its arrival, or infinite if that is unknown.
func (l *linkQueues) join(queued []queuedMessage, i int32, route []int32, now, took float64) (waits int32) {
	free := math.Float64bits(now) // in the order of the times, as these are not negative
	for _, link := range route {
		free = max(free, l.links.at(link).free())
	}
	start := math.Float64frombits(free)
	late := start * (1 - rounding)
	for _, link := range route {
		last := l.links.at(link)
		if last.mark != 0 && last.freeAt() >= late && l.await(queued, int32(last.mark-1), i) {
			waits++
		}
		last.mark = uint32(i + 1)
		last.setFreeAt(start + took)
	}
	return waits
}

// await makes a message a waiter of another one, unless it is that already or the
// other one has arrived.
func (l *linkQueues) await(queued []queuedMessage, other, i int32) bool {
	m := &queued[other]
	if m.finish > 0 || m.waiters != 0 && l.waiters[m.waiters].message == i {
		return false
	}
	at := l.unused
	if at == 0 {
		at = int32(len(l.waiters))
		l.waiters = append(l.waiters, waiter{})
	} else {
		l.unused = l.waiters[at].next
	}
	l.waiters[at] = waiter{i, m.waiters}
	m.waiters = at
	return true
}

// leave ends a wait. It returns the message that has waited, and the next waiter
// of the same message.
func (l *linkQueues) leave(at int32) (message, next int32) {
	w := &l.waiters[at]
	message, next = w.message, w.next
	w.next, l.unused = l.unused, at
	return message, next
}
