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
	ends      []ends  // per message
	hops      []int32 // per message that is ready: the links of its route
	oneEnd    []bool  // per message: whether one of its ends is ready
	blocked   []int32 // per message: the queues in which it is not at the head
	forLinks  []bool  // per message: whether those are queues for links
	events    calendar
	current   []event    // those of now
	transfers *transfers // nil where messages do not share bandwidth

	queues   []waitQueue // per resource
	nodes    []queueNode
	freeNode int32  // the first node that is not in use, or 0
	ready    []turn // messages whose ends are both ready since now
	ported   []turn // messages that hold their ports since now

	path []int32 // the route of the message that leaves its queues

	beginning []int32 // the ranks that begin a step now
	waiting   []int32 // with Sync: the ranks whose step is done
}

// A waitQueue is the message that holds a resource and, behind it, those that
// wait for it. It names the first and the last node, or 0.
type waitQueue struct{ first, last int32 }

type queueNode struct{ message, next int32 }

// A turn is the index of a message among those of its sender's step, and below
// it the message: of several messages, the one with the least turn queues first.
type turn uint64

func (t turn) message() int32 { return int32(uint32(t)) }

func newQueueing(c Config, p *programTable, n *network) *queueing {
	q := &queueing{
		programTable: p, network: n, config: c,
		times:    newTimes(p, c.Sync, true, true),
		ends:     p.ends(),
		hops:     make([]int32, len(p.messages)),
		oneEnd:   make([]bool, len(p.messages)),
		blocked:  make([]int32, len(p.messages)),
		forLinks: make([]bool, len(p.messages)),
		events:   newCalendar(),
		queues:   make([]waitQueue, n.links+2*p.ranks),
		nodes:    make([]queueNode, 1), // node 0 stands for none
	}
	for i := range p.messages {
		p.messages[i].size &^= senderLast | lastSent | lastReceived
	}
	if c.sharesBandwidth() {
		q.transfers = newTransfers(c, n, p, q.ends)
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
			if !q.transfers.add(e.id) {
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
		q.queueForPorts(t.message())
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
	if !q.oneEnd[i] {
		q.oneEnd[i] = true
		return
	}
	e := q.ends[i]
	if q.times.ranks[e.from].begun >= q.times.ranks[e.to].begun {
		q.messages[i].size |= senderLast
	}
	q.times.ready[i] = q.now
	q.ready = append(q.ready, q.turn(i))
}

func (q *queueing) turn(i int32) turn {
	step := q.times.ranks[q.ends[i].from].step
	return turn(i-q.steps[step].sends)<<32 | turn(i)
}

// queueForPorts queues a message for the ports of its two ends.
func (q *queueing) queueForPorts(i int32) {
	q.times.waitedFor[i] = -1
	e := q.ends[i]
	q.hops[i] = int32(len(q.route(e.from, e.to)))
	if q.instant(i) {
		q.start(i)
		return
	}
	if !q.config.AllPort {
		q.enqueue(q.sendPort(e.from), i)
		q.enqueue(q.recvPort(e.to), i)
	}
	q.proceed(i)
}

// instant reports whether a message takes no time. Such a message waits for no
// resource.
func (q *queueing) instant(i int32) bool {
	words := q.words(&q.messages[i])
	return q.duration(words, int(q.hops[i])) == 0 && (words == 0 || q.config.MemoryBandwidth == 0)
}

// queueForLinks queues a message for all the links of its route.
func (q *queueing) queueForLinks(i int32) {
	q.forLinks[i] = true
	if !q.config.Share {
		e := q.ends[i]
		for _, link := range q.route(e.from, e.to) {
			q.enqueue(link, i)
		}
	}
	q.proceed(i)
}

// proceed lets a message go on that is at the head of all its queues.
func (q *queueing) proceed(i int32) {
	switch {
	case q.blocked[i] > 0:
	case q.forLinks[i]:
		q.start(i)
	default:
		q.ported = append(q.ported, q.turn(i))
	}
}

func (q *queueing) start(i int32) {
	hops := int(q.hops[i])
	q.times.start[i] = q.now
	if q.transfers != nil {
		q.events.add(q.now+q.latency(hops), event{transferStart, i})
	} else {
		q.events.add(q.now+q.duration(q.words(&q.messages[i]), hops), event{arrival, i})
	}
}

// enqueue puts a message at the end of a resource's queue.
func (q *queueing) enqueue(resource, i int32) {
	at := q.freeNode
	if at == 0 {
		at = int32(len(q.nodes))
		q.nodes = append(q.nodes, queueNode{})
	} else {
		q.freeNode = q.nodes[at].next
	}
	q.nodes[at] = queueNode{message: i}
	l := &q.queues[resource]
	if l.first == 0 {
		l.first = at
	} else {
		q.nodes[l.last].next = at
		q.blocked[i]++
	}
	l.last = at
}

// dequeue takes the holder of a resource out of its queue, and lets the next
// message proceed.
func (q *queueing) dequeue(resource int32) {
	l := &q.queues[resource]
	at := l.first
	left, next := q.nodes[at].message, q.nodes[at].next
	q.nodes[at].next, q.freeNode = q.freeNode, at
	l.first = next
	if next == 0 {
		return
	}
	i := q.nodes[next].message
	q.times.waitedFor[i], q.times.holder[i] = resource, left
	q.blocked[i]--
	q.proceed(i)
}

// release takes a message out of all its queues.
func (q *queueing) release(e ends) {
	if !q.config.AllPort {
		q.dequeue(q.sendPort(e.from))
		q.dequeue(q.recvPort(e.to))
	}
	if !q.config.Share {
		// A copy: the messages that start now ask the network for routes, too.
		q.path = append(q.path[:0], q.route(e.from, e.to)...)
		for _, link := range q.path {
			q.dequeue(link)
		}
	}
}

// deliver ends a message.
func (q *queueing) deliver(i int32, at float64) {
	q.now = at
	m := &q.messages[i]
	e := q.ends[i]
	if !q.instant(i) {
		q.release(e)
	}
	start := q.times.start[i]
	q.times.finish[i] = at
	a, b := &q.times.ranks[e.from], &q.times.ranks[e.to]
	step := max(a.timelineStep, b.timelineStep)
	q.times.span(step).cover(start, at)
	q.times.delayNext(at, i)
	words := q.words(m)
	a.sending += at - start
	b.receiving += at - start
	b.receivedWords += words
	if m.combine() {
		b.combine += words
	}
	if a.arrive(i, lastSent, step+1, at) {
		q.endStep(e.from, a)
	}
	if b.arrive(i, lastReceived, step+1, at) {
		q.endStep(e.to, b)
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
