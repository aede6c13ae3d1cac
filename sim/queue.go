package sim

import (
	"cmp"
	"slices"
)

// queue plays the score where messages wait for each other: event by event, in
// order of time. What happens at one time happens in this order: messages
// arrive and let the next ones pass, ranks begin steps, messages that are ready
// line up for ports, and those that have theirs for links.
//
// Nobody overtakes in a line, and a message joins all the lines of its route at
// once. So the one that did first is first in all of them, and some message can
// always go on.
type queue struct {
	*score
	*network
	config Config
	times  *times

	now    float64
	coming []bool  // per message: whether one of its ends has come
	behind []int32 // per message: the lines in which others are before it
	routed []bool  // per message: whether those are lines for links
	events calendar
	due    []event // those of now
	flows  *flows  // nil where nothing slows a message down that has started

	lines  []line // per lane
	places []place
	spare  int32    // the first place that is not taken, or 0
	fresh  []waiter // messages that are ready since now
	ported []waiter // messages that have their ports since now

	path []int32

	begins []int32 // the ranks that begin a step now
	held   []int32 // with Sync: the ranks whose step is done
}

// A line is who has a lane, and behind it who waits for it.
type line struct{ first, last int32 } // places; 0 for none

type place struct{ message, next int32 }

// A waiter is a message in the order in which messages line up.
type waiter struct{ place, message int32 }

func (w waiter) compare(o waiter) int {
	return cmp.Or(cmp.Compare(w.place, o.place), cmp.Compare(w.message, o.message))
}

func newQueue(c Config, s *score, n *network) *queue {
	q := &queue{
		score: s, network: n, config: c,
		times:  newTimes(s, c.Sync, true, true),
		coming: make([]bool, len(s.messages)),
		behind: make([]int32, len(s.messages)),
		routed: make([]bool, len(s.messages)),
		events: newCalendar(),
		lines:  make([]line, n.links+2*s.ranks),
		places: make([]place, 1), // place 0 is none
	}
	if c.flows() {
		q.flows = newFlows(c, n, s)
	}
	return q
}

func (q *queue) run() *times {
	for rank := range q.times.stands {
		q.prepare(int32(rank), 0)
	}
	q.settle()
	for {
		switch at, any := q.upcoming(); {
		case any:
			q.advance(at)
		case len(q.held) > 0:
			q.openRound()
		default:
			return q.times
		}
		q.settle()
	}
}

// upcoming returns when the next thing happens.
func (q *queue) upcoming() (at float64, any bool) {
	at, any = q.events.first()
	if q.flows != nil {
		if end, flowing := q.flows.first(q.now); flowing && (!any || end < at) {
			return end, true
		}
	}
	return at, any
}

// advance lets time pass, and what happens then happen.
func (q *queue) advance(to float64) {
	if q.flows != nil {
		for _, i := range q.flows.advance(q.now, to) {
			q.arrive(i, to)
		}
	}
	q.now = to
	q.due = q.events.take(to, q.due[:0])
	for _, e := range q.due {
		switch e.kind {
		case arrival:
			q.arrive(e.id, to)
		case beginning:
			q.begins = append(q.begins, e.id)
		case flowing:
			if !q.flows.add(e.id) {
				q.arrive(e.id, to)
			}
		}
	}
}

// settle lets everything start that can start now.
func (q *queue) settle() {
	for _, rank := range q.begins {
		q.begin(rank)
	}
	q.begins = q.begins[:0]
	slices.SortFunc(q.fresh, waiter.compare)
	for _, w := range q.fresh {
		q.enterPorts(w.message)
	}
	q.fresh = q.fresh[:0]
	slices.SortFunc(q.ported, waiter.compare)
	for _, w := range q.ported {
		q.enterLinks(w.message)
	}
	q.ported = q.ported[:0]
}

// openRound lets all ranks that are done go on together.
func (q *queue) openRound() {
	ranks := q.held
	q.held = nil
	q.times.open()
	for _, rank := range ranks {
		q.prepare(rank, q.times.opening)
	}
}

// prepare lets a rank begin its next step at a time, or leave.
func (q *queue) prepare(rank int32, at float64) {
	s := &q.times.stands[rank]
	words, over := q.tail[rank], s.step == q.first[rank+1]
	if !over {
		words = 0
		if q.before != nil {
			words = q.before[s.step]
		}
	}
	took := s.work(words, q.model.Top)
	switch {
	case over:
		s.did.End = s.reach + took
	case at+took > q.now:
		q.events.add(at+took, event{beginning, rank})
	default:
		q.begins = append(q.begins, rank)
	}
}

// begin brings a rank to its step. Messages whose other end is there are ready.
func (q *queue) begin(rank int32) {
	s := &q.times.stands[rank]
	n := s.step
	s.reach, s.last, s.cause = q.now, q.now, -1
	q.times.begins(n, q.now)
	sends, endSends := q.sent(n)
	recvs, endRecvs := q.received(n)
	s.pending = endSends - sends + endRecvs - recvs
	for i := sends; i < endSends; i++ {
		q.come(i)
	}
	for _, i := range q.meets[recvs:endRecvs] {
		q.come(i)
	}
}

// come brings one of its ends to a message.
func (q *queue) come(i int32) {
	if !q.coming[i] {
		q.coming[i] = true
		return
	}
	q.fresh = append(q.fresh, q.waiter(i))
}

func (q *queue) waiter(i int32) waiter {
	step := q.times.stands[q.messages[i].from].step
	return waiter{i - q.steps[step].sends, i}
}

// enterPorts lines a message up for its two ends' ports.
func (q *queue) enterPorts(i int32) {
	q.times.lane[i] = -1
	m := &q.messages[i]
	if q.instant(m) {
		q.start(i)
		return
	}
	if !q.config.AllPort {
		q.join(q.wayOut(m.from), i)
		q.join(q.wayIn(m.to), i)
	}
	q.goOn(i)
}

// instant reports whether a message takes no time. It waits for nothing.
func (q *queue) instant(m *message) bool {
	words := q.words(m)
	return q.duration(words, len(q.route(m.from, m.to))) == 0 && (words == 0 || q.config.MemoryBandwidth == 0)
}

// enterLinks lines a message up for all the links of its route.
func (q *queue) enterLinks(i int32) {
	q.routed[i] = true
	if !q.config.Share {
		m := &q.messages[i]
		for _, link := range q.route(m.from, m.to) {
			q.join(link, i)
		}
	}
	q.goOn(i)
}

// goOn lets a message go on that is first in all its lines.
func (q *queue) goOn(i int32) {
	switch {
	case q.behind[i] > 0:
	case q.routed[i]:
		q.start(i)
	default:
		q.ported = append(q.ported, q.waiter(i))
	}
}

func (q *queue) start(i int32) {
	m := &q.messages[i]
	hops := len(q.route(m.from, m.to))
	q.times.start[i] = q.now
	if q.flows != nil {
		q.events.add(q.now+q.latency(hops), event{flowing, i})
	} else {
		q.events.add(q.now+q.duration(q.words(m), hops), event{arrival, i})
	}
}

// join puts a message at the end of a line.
func (q *queue) join(lane, i int32) {
	at := q.spare
	if at == 0 {
		at = int32(len(q.places))
		q.places = append(q.places, place{})
	} else {
		q.spare = q.places[at].next
	}
	q.places[at] = place{message: i}
	l := &q.lines[lane]
	if l.first == 0 {
		l.first = at
	} else {
		q.places[l.last].next = at
		q.behind[i]++
	}
	l.last = at
}

// leave takes the first message out of a line. The next one's turn may have
// come.
func (q *queue) leave(lane int32) {
	l := &q.lines[lane]
	at := l.first
	left, next := q.places[at].message, q.places[at].next
	q.places[at].next, q.spare = q.spare, at
	l.first = next
	if next == 0 {
		return
	}
	i := q.places[next].message
	q.times.lane[i], q.times.holder[i] = lane, left
	q.behind[i]--
	q.goOn(i)
}

// leaveAll takes a message out of all lines.
func (q *queue) leaveAll(m *message) {
	if !q.config.AllPort {
		q.leave(q.wayOut(m.from))
		q.leave(q.wayIn(m.to))
	}
	if !q.config.Share {
		q.path = append(q.path[:0], q.route(m.from, m.to)...) // who starts now has a route, too
		for _, link := range q.path {
			q.leave(link)
		}
	}
}

// arrive ends a message.
func (q *queue) arrive(i int32, at float64) {
	q.now = at
	m := &q.messages[i]
	if !q.instant(m) {
		q.leaveAll(m)
	}
	start := q.times.start[i]
	q.times.finish[i] = at
	q.times.span(m.round-1).cover(start, at)
	q.times.late(at, i)
	a, b := &q.times.stands[m.from], &q.times.stands[m.to]
	words := q.words(m)
	a.sent(words, at-start)
	b.received(words, at-start, m.combine())
	if a.arrived(i, m.round, at) {
		q.done(m.from, a)
	}
	if b.arrived(i, m.round, at) {
		q.done(m.to, b)
	}
}

// done ends a rank's step.
func (q *queue) done(rank int32, s *stand) {
	q.times.endStep(s, q.steps, q.model.Top)
	if !q.config.Sync {
		q.prepare(rank, s.reach)
		return
	}
	q.held = append(q.held, rank)
}
