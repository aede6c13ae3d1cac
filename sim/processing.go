package sim

import (
	"math"
	"slices"
)

// processing simulates a [Machine] whose messages are work of processors, event by event
// in order of time. At one time, processors end their work and messages come to their
// receivers, ranks begin steps, and work that can begin asks for its processor; until none
// of this happens any more. Then the processors that are idle begin their next work.
type processing struct {
	*programTable
	*network
	config     Config
	times      *times
	work       *workTable
	queued     []queuedMessage // those of times
	progress   []progress      // per message
	processors []processor
	pairs      map[ends]*pair // those between which messages have been under way, on a machine with a capacity

	now       float64
	events    calendar
	current   []event // those of now
	links     linkQueues
	transfers *transfers // nil where messages do not share bandwidth
	entered   []int32    // per rank: the work with whose end its current step began, or noWork

	beginning []int32 // the ranks that begin a step now
	requests  []int32 // the work that asks for its processor now
}

// A progress is how far a message has come.
type progress struct {
	sendStep, recvStep int32
	sent               bool // its sending part is over
	landed             bool // its receiving part may begin, as soon as its receiver is in its step
	awaited            bool // its receiver is
	arrived            bool // its receiving part is over
}

// A processor does one piece of work at a time.
type processor struct {
	queue []int32 // the work that waits, first come first
	busy  bool
	last  int32 // the work that it does or did last, or noWork
}

func newProcessing(c Config, p *programTable, n *network, links linkTable) *processing {
	s := &processing{
		programTable: p, network: n, config: c,
		times: newTimes(p, false), work: newWorkTable(p),
		queued:     makeList[queuedMessage](len(p.messages), len(p.messages)),
		progress:   makeList[progress](len(p.messages), len(p.messages)),
		processors: make([]processor, p.ranks),
		pairs:      make(map[ends]*pair),
		events:     newCalendar(),
		entered:    make([]int32, p.ranks),
	}
	s.times.queued, s.times.works = s.queued, s.work
	for i := range s.processors {
		s.processors[i].last = noWork
	}
	if s.queuesForLinks() {
		s.links = newLinkQueues(links)
	}
	if c.sharesBandwidth() {
		s.transfers = newTransfers(c, n, p)
	}
	for rank := range int32(p.ranks) {
		for step := p.first[rank]; step < p.first[rank+1]; step++ {
			s.describe(rank, step)
		}
	}
	return s
}

// queuesForLinks reports whether messages queue for links. They need not where each has its
// own, or where they share those of a network.
func (s *processing) queuesForLinks() bool {
	return !s.linksFollowPorts && !s.config.sharesNetwork()
}

// describe stores the ends of the messages of a step.
func (s *processing) describe(rank, step int32) {
	lo, hi := s.sent(step)
	for i := lo; i < hi; i++ {
		m := &s.queued[i]
		m.from, m.message, m.size, m.holder = rank, i, s.messages[i].size, notWaiting
		s.messages[i].to, s.progress[i].sendStep = i, step
	}
	lo, hi = s.received(step)
	for k := lo; k < hi; k++ {
		i := s.recvs[k].message()
		m := &s.queued[i]
		m.to, m.recv = rank, k
		s.progress[i].recvStep = step
	}
}

func (s *processing) run() *times {
	for rank := range int32(s.ranks()) {
		s.leaveStep(rank, 0, noWork)
	}
	s.startAll()
	for {
		at, any := s.nextTime()
		if !any {
			return s.times
		}
		s.advance(at)
		s.startAll()
	}
}

func (s *processing) ranks() int { return s.programTable.ranks }

// nextTime returns the time of the next event.
func (s *processing) nextTime() (at float64, any bool) {
	at, any = s.events.first()
	if s.transfers != nil {
		if end, active := s.transfers.nextEnd(s.now); active && (!any || end < at) {
			return end, true
		}
	}
	return at, any
}

// advance moves the time on, and handles the events of the new time.
func (s *processing) advance(to float64) {
	if s.transfers != nil {
		for _, i := range s.transfers.advance(s.now, to) {
			s.now = to
			s.endTransfer(i)
		}
	}
	s.now = to
	s.current = s.events.take(to, s.current[:0])
	for _, e := range s.current {
		switch e.kind {
		case landing:
			s.land(e.id)
		case workEnd:
			s.endWork(e.id)
		case transferStart:
			s.transfer(e.id)
		}
	}
}

// transfer lets the words of a message flow: on their way to another host, or in its receiving
// part.
func (s *processing) transfer(i int32) {
	e, rate := s.queued[i].ends, s.flowRate(i)
	resources := s.transfers.memoriesOf(e, s.length(i))
	if !s.progress[i].landed {
		resources, rate = s.transfers.linksOf(e), s.wayRate(i)
	}
	if !s.transfers.begin(i, resources, rate) {
		s.endTransfer(i)
	}
}

// endTransfer ends the way of a message, or its receiving part.
func (s *processing) endTransfer(i int32) {
	if s.progress[i].landed {
		s.endWork(s.work.receiving(i))
	} else {
		s.land(i)
	}
}

// startAll starts all that can start now.
func (s *processing) startAll() {
	for len(s.beginning)+len(s.requests) > 0 {
		for _, rank := range s.beginning {
			s.enterStep(rank)
		}
		s.beginning = s.beginning[:0]
		requests := s.requests
		s.requests = nil
		slices.SortFunc(requests, s.work.compare)
		for _, i := range requests {
			if w := &s.work.all[i]; w.took == 0 {
				s.begin(i, 0)
				s.endWork(i)
			} else {
				p := &s.processors[s.port(w.rank)]
				p.queue = append(p.queue, i)
			}
		}
	}
	for i := range s.processors {
		if p := &s.processors[i]; !p.busy && len(p.queue) > 0 {
			s.assign(p)
		}
	}
}

// request lets some work begin as soon as its processor is free.
func (s *processing) request(i, rank int32, took float64, by int32) {
	s.work.all[i] = work{rank: rank, by: by, requested: s.now, took: took}
	s.requests = append(s.requests, i)
}

// assign lets a processor begin the first work of its queue that is its last rank's, or if
// there is none the first.
func (s *processing) assign(p *processor) {
	sameRank := func(i int32) bool { return p.last != noWork && s.work.all[i].rank == s.work.all[p.last].rank }
	at := max(0, slices.IndexFunc(p.queue, sameRank))
	i := p.queue[at]
	p.queue = slices.Delete(p.queue, at, at+1)
	w := &s.work.all[i]
	switching := 0.0
	if p.last != noWork {
		if !sameRank(i) {
			switching = s.machine.Switch
		}
		if !notAfter(s.now, w.requested) {
			w.by = p.last // for which it has waited
		}
	}
	p.busy, p.last = true, i
	s.begin(i, switching)
}

// begin begins some work, after the time in which its processor switches to its rank. Work
// that takes no time is over at once.
func (s *processing) begin(i int32, switching float64) {
	w := &s.work.all[i]
	w.began = s.now
	message, sends, ok := s.work.messageOf(i)
	if ok && sends {
		s.send(message, switching)
	}
	switch {
	case w.took == 0:
	case ok && !sends && s.flows(message):
		s.events.add(s.now+switching+s.receiveTime(message, 0), event{transferStart, message})
	default:
		s.events.add(s.now+switching+w.took, event{workEnd, i})
	}
}

// endWork ends some work.
func (s *processing) endWork(i int32) {
	w := &s.work.all[i]
	w.ended = s.now
	if p := &s.processors[s.port(w.rank)]; w.took > 0 {
		p.busy = false
	}
	switch message, sends, ok := s.work.messageOf(i); {
	case ok && sends:
		s.progress[message].sent = true
		if s.eager(message) || s.progress[message].arrived {
			s.completeSend(message, i)
		}
	case ok:
		s.deliver(message, i)
	case i >= s.work.after(0):
		s.times.ranks[w.rank].end = s.now
		s.work.lastOf[w.rank] = i
	default:
		s.entered[w.rank] = i
		s.beginning = append(s.beginning, w.rank)
	}
}

// leaveStep lets a rank combine, copy, and begin its next step, or end: from when it has
// received all until a time it combines what it has received.
func (s *processing) leaveStep(rank int32, until float64, by int32) {
	r := &s.times.ranks[rank]
	took := until - s.now
	if r.step == s.first[rank+1] {
		s.request(s.work.after(rank), rank, took+r.compute(s.after[rank], s.network)+s.endCost(s.network, rank), by)
		return
	}
	if s.before != nil {
		took += r.compute(s.before[r.step], s.network)
	}
	s.request(s.work.before(r.step), rank, took+s.stepCost(s.network, r.step, rank), by)
}

// enterStep brings a rank to its step, and with it one end of the step's messages.
func (s *processing) enterStep(rank int32) {
	r := &s.times.ranks[rank]
	n := r.step
	r.arrived = s.now
	sends, endSends := s.sent(n)
	recvs, endRecvs := s.received(n)
	if r.pending = endSends - sends + endRecvs - recvs; r.pending == 0 {
		r.awaitNothing(noWork)
		s.endStep(rank, s.entered[rank])
		return
	}
	for i := sends; i < endSends; i++ {
		s.endReady(i, rank)
	}
	for _, v := range s.recvs[recvs:endRecvs] {
		i := v.message()
		s.progress[i].awaited = true
		s.endReady(i, rank)
		if s.progress[i].landed {
			s.receive(i, s.entered[rank])
		}
	}
}

// endReady records that one end of a message is ready. A message is ready when both are, or
// an eager one when its sender is.
func (s *processing) endReady(i, rank int32) {
	m := &s.queued[i]
	switch {
	case s.eager(i) && rank != m.from:
		return
	case !s.eager(i) && m.ready == 0:
		m.ready = oneEnd
		return
	}
	m.ready = s.now
	if !s.counts(i) || s.hasRoom(i) {
		s.requestSend(i, s.entered[rank])
	}
}

// requestSend lets the sending part of a message begin.
func (s *processing) requestSend(i, by int32) {
	m := &s.queued[i]
	s.request(s.work.sending(i), m.from, s.machine.Send(int(m.from), int(m.to), s.length(i)), by)
}

// send starts a message, whose sender's processor switches to it for a time before.
func (s *processing) send(i int32, switching float64) {
	m := &s.queued[i]
	m.start = s.now
	if s.config.sharesNetwork() && s.apart(m.ends) && s.wayRate(i) < math.Inf(1) {
		s.events.add(s.now+switching+s.flight(i, 0), event{transferStart, i})
		return
	}
	took := switching + s.flight(i, s.length(i))
	if s.queuesForLinks() {
		if waits := s.links.join(s.queued, i, s.route(m.from, m.to), s.now, took); waits > 0 {
			m.holder = notWaiting - waits
			return
		}
	}
	s.events.add(s.now+took, event{landing, i})
}

// land brings a message to its receiver.
func (s *processing) land(i int32) {
	m := &s.queued[i]
	for at := m.waiters; at != 0; {
		var waiter int32
		waiter, at = s.links.leave(at)
		if s.queued[waiter].endWait(i) {
			s.events.add(s.now+s.flight(waiter, s.length(waiter)), event{landing, waiter})
		}
	}
	m.finish = s.now // of its way, so that no other message waits for it any more
	s.progress[i].landed = true
	if s.progress[i].awaited {
		s.receive(i, s.work.sending(i))
	}
}

// receive lets the receiving part of a message begin.
func (s *processing) receive(i, by int32) {
	s.request(s.work.receiving(i), s.queued[i].to, s.receiveTime(i, s.length(i)), by)
}

// deliver ends a message with its receiving part.
func (s *processing) deliver(i, by int32) {
	m, p := &s.queued[i], &s.progress[i]
	m.finish, p.arrived = s.now, true
	if s.counts(i) {
		s.makeRoom(m.ends, by)
	}
	if m.holder = notWaiting; !notAfter(m.start, m.ready) {
		m.holder = 0 // the message has waited
	}
	a, b := &s.times.ranks[m.from], &s.times.ranks[m.to]
	s.times.span(s.timelineStep(i)).cover(m.start, s.now)
	a.sending += s.now - m.start
	b.receiving += s.now - m.start
	b.receivedWords += s.length(i)
	if s.messages[i].combine() {
		b.combine += s.length(i)
	}
	if p.sent && !s.eager(i) {
		s.completeSend(i, by)
	}
	if b.arrive(i, lastReceived, s.timelineStep(i)+1, s.now) {
		s.endStep(m.to, by)
	}
}

// completeSend ends the part that a message has in the step of its sender.
func (s *processing) completeSend(i, by int32) {
	from := s.queued[i].from
	if s.times.ranks[from].arrive(i, lastSent, s.timelineStep(i)+1, s.now) {
		s.endStep(from, by)
	}
}

func (s *processing) endStep(rank, by int32) {
	s.leaveStep(rank, s.times.endStep(&s.times.ranks[rank], s.network), by)
}
