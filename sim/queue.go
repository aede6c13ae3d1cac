package sim

// queue plays the score where messages wait for each other: event by event, in
// order of time. What happens at one time happens in this order: messages
// arrive and give back what they held, ranks begin steps, and messages that are
// ready try to start, the one that has been so for longest first.
type queue struct {
	*score
	*network
	config Config
	times  *times

	now    float64
	coming []bool    // per message: whether one of its ends has come
	ready  []float64 // per message: when both have
	events calendar
	flows  *flows // nil where nothing slows a message down that has started

	taken   []bool                  // per lane
	freedBy []int32                 // per lane: the message that had it last
	waiting map[int32]*pile[waiter] // per lane that somebody waits for
	trying  pile[waiter]            // who may start now
	lanes   []int32                 // of the message at hand

	begins []int32 // the ranks that begin a step now
	held   []int32 // with Sync: the ranks whose step is done
	latest float64 // with Sync: when the last of them was, and
	waker  int32   // by which message
}

// A waiter is a message that is ready, and the lane that it waits for, or -1.
type waiter struct {
	ready         float64
	message, lane int32
}

func (w waiter) before(o waiter) bool {
	if w.ready != o.ready {
		return w.ready < o.ready
	}
	return w.message < o.message
}

func newQueue(c Config, s *score, n *network) *queue {
	lanes := n.links + 2*s.ranks
	q := &queue{
		score: s, network: n, config: c,
		times:   newTimes(s, c.Sync, true, true),
		coming:  make([]bool, len(s.messages)),
		ready:   make([]float64, len(s.messages)),
		events:  newCalendar(),
		taken:   make([]bool, lanes),
		freedBy: make([]int32, lanes),
		waiting: make(map[int32]*pile[waiter]),
		waker:   -1,
	}
	if c.Share || c.MemoryBandwidth > 0 {
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
		for _, i := range q.flows.advance(to - q.now) {
			q.arrive(i, to)
		}
	}
	q.now = to
	for _, e := range q.events.take(to) {
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
	for len(q.trying.items) > 0 {
		q.try(q.trying.pop())
	}
}

// openRound lets all ranks that are done go on together.
func (q *queue) openRound() {
	ranks := q.held
	q.held = nil
	for _, rank := range ranks {
		q.prepare(rank, q.latest)
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
	if q.config.Sync {
		q.times.begin[n], q.times.waker[n] = q.now, q.waker
	}
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
	q.ready[i] = q.now
	q.trying.push(waiter{q.now, i, -1})
}

// hold collects the lanes that a message holds while it is under way.
func (q *queue) hold(i int32) []int32 {
	m := &q.messages[i]
	q.lanes = q.lanes[:0]
	if !q.config.AllPort {
		q.lanes = append(q.lanes, q.wayOut(m.from), q.wayIn(m.to))
	}
	if !q.config.Share {
		q.lanes = append(q.lanes, q.route(m.from, m.to)...)
	}
	return q.lanes
}

// try starts a message if all its lanes are free, or lets it wait for the first
// that is not.
func (q *queue) try(w waiter) {
	lanes := q.hold(w.message)
	for _, lane := range lanes {
		if !q.taken[lane] {
			continue
		}
		q.line(lane).push(waiter{w.ready, w.message, lane})
		if w.lane >= 0 && !q.taken[w.lane] {
			q.wake(w.lane) // it is the next one's turn there
		}
		return
	}
	for _, lane := range lanes {
		q.taken[lane] = true
	}
	q.start(w)
}

func (q *queue) start(w waiter) {
	i := w.message
	q.times.start[i], q.times.lane[i] = q.now, w.lane
	if w.lane >= 0 {
		q.times.holder[i] = q.freedBy[w.lane]
	}
	m := &q.messages[i]
	hops := len(q.route(m.from, m.to))
	if q.flows != nil {
		q.events.add(q.now+q.latency(hops), event{flowing, i})
		return
	}
	q.events.add(q.now+q.duration(m.words, hops), event{arrival, i})
}

func (q *queue) line(lane int32) *pile[waiter] {
	l := q.waiting[lane]
	if l == nil {
		l = new(pile[waiter])
		q.waiting[lane] = l
	}
	return l
}

// wake lets the first who waits for a lane try.
func (q *queue) wake(lane int32) {
	if l := q.waiting[lane]; l != nil && len(l.items) > 0 {
		q.trying.push(l.pop())
	}
}

// arrive ends a message.
func (q *queue) arrive(i int32, at float64) {
	for _, lane := range q.hold(i) {
		q.taken[lane], q.freedBy[lane] = false, i
		q.wake(lane)
	}
	m := &q.messages[i]
	start := q.times.start[i]
	q.times.finish[i] = at
	q.times.span(m.round-1).cover(start, at)
	a, b := &q.times.stands[m.from], &q.times.stands[m.to]
	a.sent(m.words, at-start)
	b.received(m.words, at-start, m.combine)
	if a.arrived(i, at) {
		q.done(m.from, a, m.round-1)
	}
	if b.arrived(i, at) {
		q.done(m.to, b, m.round-1)
	}
}

// done ends a rank's step.
func (q *queue) done(rank int32, s *stand, round int32) {
	s.endStep(q.steps, q.model.Top)
	q.times.span(round).cover(s.reach, s.reach)
	if !q.config.Sync {
		q.prepare(rank, s.reach)
		return
	}
	if s.reach > q.latest {
		q.latest, q.waker = s.reach, s.cause
	}
	q.held = append(q.held, rank)
}
