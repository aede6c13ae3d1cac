package sim

import "slices"

// queueing simulates programs whose messages wait for each other, event by event
// in order of time. Events of one time happen in this order: messages arrive
// and let the next ones pass, ranks begin steps, messages that are ready queue
// for ports, and messages that hold their ports queue for links.
//
// The queues are first come, first served, and a message joins all the queues
// of its route at once. So of the messages in them, the one that joined first is
// at the head of all its queues, and some message can always go on.
type queueing struct {
	*programTable
	*network
	config Config
	times  *times

	now       float64
	queued    []queuedMessage // those of times
	queues    waitQueues
	events    calendar
	current   []event    // those of now
	transfers *transfers // nil where messages do not share bandwidth

	ready  []turn // messages whose ends are both ready since now
	ported []turn // messages that hold their ports since now

	beginning []int32 // the ranks that begin a step now
	waiting   []int32 // with Sync: the ranks whose step is done
}

// A queuedMessage is the ends of a message, its times, and what it waits for. It
// is one value, because a message of many millions is rarely in the processor's
// cache.
type queuedMessage struct {
	ends
	ready  float64 // when both its ends are ready; oneEnd when one is, 0 before
	start  float64 // until it starts, its latency
	finish float64 // until it has arrived, its duration

	waitedFor, holder int32 // the resource that it waited for last, or -1, and the message that held it

	blocked int32 // twice the number of queues in which it is not at the head, and 1 if these are for links
	place   int32 // the first of its places in queues, or 0
}

const oneEnd = -1

// A turn is the index of a message among those of its sender's step, and below
// it the message: of several messages, the one with the least turn queues first.
type turn uint64

func (t turn) message() int32 { return int32(uint32(t)) }

func newQueueing(c Config, p *programTable, n *network) *queueing {
	q := &queueing{
		programTable: p, network: n, config: c,
		times:  newTimes(p, c.Sync),
		queued: make([]queuedMessage, len(p.messages)),
		queues: newWaitQueues(n.links + 2*p.ranks),
		events: newCalendar(),
	}
	q.times.queued = q.queued
	p.findEnds(func(i int32) *ends { return &q.queued[i].ends })
	for i := range p.messages {
		p.messages[i].size &^= senderLast | lastSent | lastReceived
	}
	if c.sharesBandwidth() {
		q.transfers = newTransfers(c, n, p)
	}
	return q
}

func (q *queueing) run() *times {
	for rank := range q.times.ranks {
		q.scheduleStep(int32(rank), 0)
	}
	q.startAll()
	for {
		switch at, any := q.nextTime(); {
		case any:
			q.advance(at)
		case len(q.waiting) > 0:
			q.beginTogether()
		default:
			return q.times
		}
		q.startAll()
	}
}

// nextTime returns the time of the next event.
func (q *queueing) nextTime() (at float64, any bool) {
	at, any = q.events.first()
	if q.transfers != nil {
		if end, active := q.transfers.nextEnd(q.now); active && (!any || end < at) {
			return end, true
		}
	}
	return at, any
}

// advance moves the time on, and handles the events of the new time.
func (q *queueing) advance(to float64) {
	if q.transfers != nil {
		for _, i := range q.transfers.advance(q.now, to) {
			q.deliver(i, to)
		}
	}
	q.now = to
	q.current = q.events.take(to, q.current[:0])
	for _, e := range q.current {
		switch e.kind {
		case arrival:
			q.deliver(e.id, to)
		case stepStart:
			q.beginning = append(q.beginning, e.id)
		case transferStart:
			if !q.transfers.add(e.id, q.queued[e.id].ends) {
				q.deliver(e.id, to)
			}
		}
	}
}

// startAll starts every step and every message that can start now.
func (q *queueing) startAll() {
	for _, rank := range q.beginning {
		q.enterStep(rank)
	}
	q.beginning = q.beginning[:0]
	slices.Sort(q.ready)
	for _, t := range q.ready {
		q.queueForPorts(t)
	}
	q.ready = q.ready[:0]
	slices.Sort(q.ported)
	for _, t := range q.ported {
		q.queueForLinks(t.message())
	}
	q.ported = q.ported[:0]
}

// beginTogether lets all ranks, with Sync, begin their next steps.
func (q *queueing) beginTogether() {
	ranks := q.waiting
	q.waiting = nil
	q.times.beginNext()
	for _, rank := range ranks {
		q.scheduleStep(rank, q.times.begun)
	}
}

// scheduleStep lets a rank begin its next step once its copies have combined
// from a time on. After its last step it ends the rank.
func (q *queueing) scheduleStep(rank int32, at float64) {
	s := &q.times.ranks[rank]
	words, over := q.after[rank], s.step == q.first[rank+1]
	if !over {
		words = 0
		if q.before != nil {
			words = q.before[s.step]
		}
	}
	took := s.compute(words, q.model.Top)
	switch {
	case over:
		s.end = s.begun + took
	case at+took > q.now:
		q.events.add(at+took, event{stepStart, rank})
	default:
		q.beginning = append(q.beginning, rank)
	}
}

// enterStep brings a rank to its step, and with it one end of the step's
// messages.
func (q *queueing) enterStep(rank int32) {
	s := &q.times.ranks[rank]
	n := s.step
	s.begun, s.arrived = q.now, q.now
	q.times.beginStep(n, q.now)
	sends, endSends := q.sent(n)
	recvs, endRecvs := q.received(n)
	s.sends, s.recvs = span32{sends, endSends}, span32{recvs, endRecvs}
	s.pending = endSends - sends + endRecvs - recvs
	if s.pending == 0 {
		s.awaitNothing(q.times.begunBy)
		q.endStep(rank, s)
		return
	}
	for i := sends; i < endSends; i++ {
		q.endReady(i)
	}
	for _, r := range q.recvs[recvs:endRecvs] {
		q.endReady(r.message())
	}
}

// endReady records that one end of a message is ready. The message is ready
// when both are.
func (q *queueing) endReady(i int32) {
	m := &q.queued[i]
	if m.ready == 0 {
		m.ready = oneEnd
		return
	}
	m.ready = q.now
	from := &q.times.ranks[m.from]
	if from.begun >= q.times.ranks[m.to].begun {
		q.messages[i].size |= senderLast
	}
	q.ready = append(q.ready, turn(i-from.sends.lo)<<32|turn(i))
}

// queueForPorts queues a message for the ports of its two ends.
func (q *queueing) queueForPorts(t turn) {
	i := t.message()
	m := &q.queued[i]
	m.waitedFor = -1
	switch {
	case q.instant(i):
		q.start(i, m)
		return
	case !q.config.AllPort:
		behind := q.queues.join(i, &m.place, []int32{q.sendPort(m.from), q.recvPort(m.to)})
		m.blocked = 2 * behind
	}
	if m.blocked == 0 {
		q.ported = append(q.ported, t)
	}
}

// instant reports whether a message takes no time. Such a message waits for no
// resource.
func (q *queueing) instant(i int32) bool {
	return q.latency(1) == 0 && (q.words(&q.messages[i]) == 0 || q.perWord(1) == 0 && q.config.MemoryBandwidth == 0)
}

// queueForLinks queues a message for all the links of its route.
func (q *queueing) queueForLinks(i int32) {
	m := &q.queued[i]
	route := q.route(m.from, m.to)
	m.start, m.finish = q.latency(len(route)), q.duration(q.words(&q.messages[i]), len(route))
	if q.config.Share {
		q.start(i, m)
		return
	}
	m.blocked = 2*q.queues.join(i, &m.place, route) + 1
	if m.blocked == 1 {
		q.start(i, m)
	}
}

// start starts a message.
func (q *queueing) start(i int32, m *queuedMessage) {
	took, kind := m.finish, arrival
	if q.transfers != nil {
		took, kind = m.start, transferStart
	}
	m.start = q.now
	q.events.add(q.now+took, event{kind, i})
}

// release takes a message out of all its queues.
func (q *queueing) release(i int32, m *queuedMessage) {
	if m.place == 0 {
		return
	}
	at := m.place
	if !q.config.AllPort {
		at = q.leave(q.sendPort(m.from), at, i)
		at = q.leave(q.recvPort(m.to), at, i)
	}
	if !q.config.Share {
		for _, link := range q.route(m.from, m.to) {
			at = q.leave(link, at, i)
		}
	}
	q.queues.free(m.place)
}

// leave takes a message out of a queue of which it is at the head, and lets the
// next one proceed if it is now at the head of all its queues. It returns the
// place of the message in its next queue.
func (q *queueing) leave(resource, at, i int32) (next int32) {
	p := &q.queues.places[at]
	if p.behind == 0 {
		q.queues.last[resource] = 0
		return p.next
	}
	m := &q.queued[p.behind-1]
	m.blocked -= 2
	if m.blocked <= 1 {
		m.waitedFor, m.holder = resource, i
		q.proceed(p.behind-1, m)
	}
	return p.next
}

// proceed lets a message go on that is at the head of all its queues.
func (q *queueing) proceed(i int32, m *queuedMessage) {
	if m.blocked == 1 {
		q.start(i, m)
		return
	}
	q.ported = append(q.ported, turn(i-q.times.ranks[m.from].sends.lo)<<32|turn(i))
}

// deliver ends a message.
func (q *queueing) deliver(i int32, at float64) {
	q.now = at
	m := &q.queued[i]
	q.release(i, m)
	m.finish = at
	took := at - m.start
	a, b := &q.times.ranks[m.from], &q.times.ranks[m.to]
	step := max(a.timelineStep, b.timelineStep)
	q.times.span(step).cover(m.start, at)
	q.times.delayNext(at, i)
	words := q.words(&q.messages[i])
	a.sending += took
	b.receiving += took
	b.receivedWords += words
	if q.messages[i].combine() {
		b.combine += words
	}
	if a.arrive(i, lastSent, step+1, at) {
		q.endStep(m.from, a)
	}
	if b.arrive(i, lastReceived, step+1, at) {
		q.endStep(m.to, b)
	}
}

func (q *queueing) endStep(rank int32, s *rankState) {
	q.times.endStep(rank, q.messages, q.model.Top)
	if !q.config.Sync {
		q.scheduleStep(rank, s.begun)
		return
	}
	q.waiting = append(q.waiting, rank)
}
