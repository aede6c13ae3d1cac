package sim

import "math"

// queueing simulates programs whose messages wait for each other, event by event
// in order of time. Events of one time happen in this order: messages arrive
// and let the next ones pass, ranks begin steps, messages that are ready queue
// for ports, and messages that hold their ports queue for links.
//
// The queues are first come, first served, and a message joins all the queues
// of its route at once. So of the messages in them, the one that joined first is
// at the head of all its queues, and some message can always go on. And if
// messages do not share bandwidth, the time at which a message will have arrived
// is known, but for rounding, as soon as it joins the queues of its links.
type queueing struct {
	*programTable
	*network
	config Config
	times  *times

	now        float64
	queued     []queuedMessage // those of times, in the order in which their first ends are ready
	byTime     bool            // whether these are numbered in that order
	known      int32           // how many of these there are
	instants   bool            // whether some message may take no time
	lastAtPort []int32         // per send port and then per receive port: one more than the last message of its queue, or 0
	links      linkQueues
	events     calendar
	current    []event    // those of now
	transfers  *transfers // nil where messages do not share bandwidth

	ready  []turn // messages whose ends are both ready since now
	ported []turn // messages that hold their ports since now
	unused []turn // memory for sorting

	beginning []int32 // the ranks that begin a step now
	waiting   []int32 // with Sync: the ranks whose step is done
}

// A queuedMessage is the ends of a message, its times, and what it waits for. It
// is one value that fills a line of a processor's cache, because a message of many
// millions is rarely in that cache. Where messages queue, they are numbered anew, in
// the order of time, so that those of one time lie next to each other: message.to has
// the number.
type queuedMessage struct {
	ends
	message, recv int32  // of the program table
	size          uint32 // as in the program table, with the flags of these times
	index         int32  // among the messages of its sender's step

	ready  float64 // when both its ends are ready; oneEnd when one is, 0 before
	start  float64 // when it starts; before, how long its arrival or its transfer's start takes then; and before it is ready, when its first end was
	finish float64 // when it has arrived; 0 before

	// The message that it waited for last, or notWaiting. While it waits, it is
	// less than that by the number of messages that it waits for.
	holder int32

	behindSend, behindRecv int32 // one more than the message behind it in the queue for its port, or 0
	waiters                int32 // the first of those that wait for it to leave a link: see linkQueues
}

// notWaiting is the holder of a message that has not waited.
const notWaiting = -1

const oneEnd = -1

// newQueueing returns the engine for a program table that [contentionFree] has
// matched. It uses that engine's table of links again.
func newQueueing(c Config, p *programTable, n *network, links linkTable) *queueing {
	q := &queueing{
		programTable: p, network: n, config: c,
		times:  newTimes(p, c.Sync),
		queued: makeList[queuedMessage](len(p.messages), len(p.messages)),
		events: newCalendar(),
		byTime: len(p.messages) < 4*len(p.steps),

		instants: n.machine != nil || min(n.model.Ts, n.between.Ts) == 0,
	}
	q.times.queued = q.queued
	if !c.AllPort {
		q.lastAtPort = make([]int32, 2*p.ranks)
	}
	if q.queuesForLinks() {
		q.links = newLinkQueues(links)
	}
	if c.sharesBandwidth() {
		q.transfers = newTransfers(c, n, p)
	}
	return q
}

// queuesForLinks reports whether messages queue for links. They need not where a
// message that holds its ports has its link, too.
func (q *queueing) queuesForLinks() bool {
	return !q.config.Share && !q.linksFollowPorts && !q.config.sharesNetwork()
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
			q.deliver(q.messages[i].to, to)
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
			if m := &q.queued[e.id]; !q.transfers.add(m.message, m.ends, q.memoryLimit(m)) {
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
	q.ready, q.unused = sortTurns(q.ready, q.unused)
	for _, t := range q.ready {
		q.queueForPorts(t)
	}
	q.ready = q.ready[:0]
	q.ported, q.unused = sortTurns(q.ported, q.unused)
	for _, t := range q.ported {
		q.queueForLinks(q.messages[t.message()].to)
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
	if q.isDone(rank, s) {
		s.end = at + (s.compute(q.after[rank], q.network) + q.endCost(q.network, rank))
		return
	}
	took := 0.0
	if q.before != nil {
		took = s.compute(q.before[s.step], q.network)
	}
	if q.machine != nil {
		took += q.stepCost(q.network, s.step, rank)
	}
	if at+took > q.now {
		q.events.add(at+took, event{stepStart, rank})
	} else {
		q.beginning = append(q.beginning, rank)
	}
}

// isDone reports whether a rank has taken its last step.
func (q *queueing) isDone(rank int32, s *rankState) bool { return s.step == q.first[rank+1] }

// enterStep brings a rank to its step, and with it one end of the step's
// messages.
func (q *queueing) enterStep(rank int32) {
	s := &q.times.ranks[rank]
	n := s.step
	s.arrived = q.now
	q.times.beginStep(n, q.now)
	sends, endSends := q.sent(n)
	recvs, endRecvs := q.received(n)
	s.pending = endSends - sends + endRecvs - recvs
	if s.pending == 0 {
		s.awaitNothing(q.times.begunBy)
		q.endStep(rank, s)
		return
	}
	for i := sends; i < endSends; i++ {
		m := q.queuedMessage(i)
		m.from, m.index = rank, i-sends
		q.endReady(m, true)
	}
	for _, r := range q.recvs[recvs:endRecvs] {
		m := q.queuedMessage(r.message())
		m.to = rank
		q.endReady(m, false)
	}
}

// queuedMessage returns a message of the program table, to which it gives a number if this
// is the first of its ends.
func (q *queueing) queuedMessage(message int32) *queuedMessage {
	of := &q.messages[message]
	if of.to >= 0 {
		return &q.queued[of.to]
	}
	number := message
	if q.byTime {
		number = q.known
		q.known++
	}
	m := &q.queued[number]
	m.message, m.recv = message, ^of.to
	m.size = of.size &^ (senderLast | lastSent | lastReceived)
	of.to = number
	return m
}

// endReady records that one end of a message is ready, its sender or its receiver.
// The message is ready when both are.
func (q *queueing) endReady(m *queuedMessage, sender bool) {
	if m.ready == 0 {
		m.ready, m.start = oneEnd, q.now
		return
	}
	m.ready = q.now
	if sender || m.start == q.now {
		m.size |= senderLast
	}
	q.ready = append(q.ready, q.turnOf(m))
}

func (q *queueing) turnOf(m *queuedMessage) turn { return newTurn(m.index, m.message) }

// queueForPorts queues a message for the ports of its two ends.
func (q *queueing) queueForPorts(t turn) {
	i := q.messages[t.message()].to
	m := &q.queued[i]
	m.holder = notWaiting
	switch {
	case q.instant(m):
		m.start = 0
		q.start(i, m)
		return
	case !q.config.AllPort:
		if before := q.joinPort(q.sendQueue(m), i); before != nil {
			before.behindSend = i + 1
			m.holder--
		}
		if before := q.joinPort(q.recvQueue(m), i); before != nil {
			before.behindRecv = i + 1
			m.holder--
		}
	}
	if m.holder == notWaiting {
		q.ported = append(q.ported, t)
	}
}

// sendQueue and recvQueue return the last of the queues for the ports of a
// message.
func (q *queueing) sendQueue(m *queuedMessage) *int32 { return &q.lastAtPort[m.from] }
func (q *queueing) recvQueue(m *queuedMessage) *int32 {
	return &q.lastAtPort[int32(q.programTable.ranks)+m.to]
}

// joinPort puts a message at the end of a port's queue. It returns the message
// before it, or nil.
func (q *queueing) joinPort(last *int32, i int32) (before *queuedMessage) {
	if *last != 0 {
		before = &q.queued[*last-1]
	}
	*last = i + 1
	return before
}

// instant reports whether a message takes no time. Such a message waits for no
// resource.
func (q *queueing) instant(m *queuedMessage) bool {
	switch {
	case !q.instants:
		return false
	case q.machine != nil:
		return q.alone(m, q.length(m)) == 0
	}
	e := m.ends
	return q.latency(e, 1) == 0 && (q.length(m) == 0 || q.perWord(e, 1) == 0 && q.config.MemoryBandwidth == 0)
}

// queueForLinks queues a message for all the links of its route.
func (q *queueing) queueForLinks(i int32) {
	m := &q.queued[i]
	if q.linksFollowPorts {
		q.setTook(m, 1)
		q.start(i, m)
		return
	}
	route := q.route(m.from, m.to)
	q.setTook(m, len(route))
	if q.queuesForLinks() {
		took := m.start
		if q.transfers != nil {
			took = math.Inf(1) // unknown
		}
		if waits := q.links.join(q.queued, i, route, q.now, took); waits > 0 {
			m.holder = notWaiting - waits
			return
		}
	}
	q.start(i, m)
}

// setTook stores the time from the start of a message to the event that follows.
func (q *queueing) setTook(m *queuedMessage, hops int) {
	if q.transfers != nil {
		m.start = q.latency(m.ends, hops)
		if q.machine != nil {
			m.start = q.alone(m, 0)
		}
		return
	}
	if q.machine != nil {
		m.start = q.alone(m, q.length(m))
	} else {
		m.start = q.duration(m.ends, q.length(m), hops)
	}
}

// length returns the words of a message.
func (q *queueing) length(m *queuedMessage) int { return q.lengths[m.size>>flagBits] }

// start starts a message.
func (q *queueing) start(i int32, m *queuedMessage) {
	kind := arrival
	if q.transfers != nil {
		kind = transferStart
	}
	took := m.start
	m.start = q.now
	q.events.add(q.now+took, event{kind, i})
}

// release takes a message out of all its queues.
func (q *queueing) release(i int32, m *queuedMessage) {
	if !q.config.AllPort && !q.instant(m) {
		q.leavePort(q.sendQueue(m), m.behindSend, i)
		q.leavePort(q.recvQueue(m), m.behindRecv, i)
	}
	for at := m.waiters; at != 0; {
		var waiter int32
		waiter, at = q.links.leave(at)
		if w := &q.queued[waiter]; w.endWait(i) {
			q.start(waiter, w)
		}
	}
}

// leavePort takes a message out of a port's queue, of which it is at the head. It
// lets the message behind it proceed if that is now at the head of both its queues.
func (q *queueing) leavePort(last *int32, behind, i int32) {
	if behind == 0 {
		*last = 0
		return
	}
	next := behind - 1
	if m := &q.queued[next]; m.endWait(i) {
		q.ported = append(q.ported, q.turnOf(m))
	}
}

// endWait ends the wait of a message for another one, and reports whether that is
// the last that it waited for.
func (m *queuedMessage) endWait(holder int32) (last bool) {
	m.holder++
	if m.holder < notWaiting {
		return false
	}
	m.holder = holder
	return true
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
	words := q.length(m)
	a.sending += took
	b.receiving += took
	b.receivedWords += words
	if m.size&combines != 0 {
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
	if s.as != 0 {
		q.queued[s.cause].size |= s.as
	}
	done := q.times.endStep(s, q.network)
	if q.config.Sync && !q.isDone(rank, s) {
		q.waiting = append(q.waiting, rank)
	} else {
		q.scheduleStep(rank, done)
	}
}
