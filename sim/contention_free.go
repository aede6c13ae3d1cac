package sim

import (
	"fmt"

	"github.com/chorale-go/chorale/sched"
)

// contentionFree finds the step of the timeline that each message belongs to:
// the first that both its ends have reached. The messages that a link is asked
// to carry in a step follow from that, whatever the costs.
//
// It also times everything as if no message ever waited for another. As long as
// no link and no port is requested before it is free again, these times are
// right. If one is, contended is set, and [queueing] must find the times.
//
// Ranks advance in rounds. In a round every rank that can begin a step begins it,
// in order of ranks, before any begins another. So links are requested in order
// of steps, and ranks, programs and links are visited in the order in which they
// lie in memory: the processor fetches them ahead even if there are far more than
// its caches hold.
type contentionFree struct {
	*programTable
	*network
	rendezvous
	config    Config
	times     *times
	contended bool
	links     linkTable
	round     int     // that ranks begin steps in: the step of the timeline, except with steps of copies alone
	mark      uint32  // of its links
	loads     []int32 // of the round: the messages of each link that is asked to carry several,
	congested idSet   // and these links

	runnable    idSet // the ranks that begin a step
	undelivered int   // messages
	perStep     []Step
	minSteps    int // steps of the timeline, with those of ranks that only copy at the end
}

// runContentionFree returns the solved engine, or an error if ranks wait for
// ever.
func runContentionFree(c Config, p *programTable, n *network) (*contentionFree, error) {
	e := newContentionFree(c, p, n)
	e.run()
	if e.undelivered > 0 || len(p.recvs) != len(p.messages) {
		return nil, e.stuck()
	}
	e.completeSteps()
	return e, nil
}

func newContentionFree(c Config, p *programTable, n *network) *contentionFree {
	e := &contentionFree{
		programTable: p, network: n, config: c,
		times:       newTimes(p, c.Sync),
		undelivered: len(p.messages), mark: 1,
	}
	if !p.linksFollowPorts {
		e.links = newLinkTable(n.links, len(p.messages)*c.Topology.Diameter())
	}
	if c.Record || c.Sync {
		e.times.start, e.times.finish = make([]float64, len(p.messages)), make([]float64, len(p.messages))
	}
	e.rendezvous = rendezvous{programTable: p, ranks: e.times.ranks}
	e.runnable, e.congested = newIDSet(p.ranks, p.ranks), newIDSet(n.links, 0)
	for rank := range int32(p.ranks) {
		e.runnable.add(rank)
	}
	return e
}

// run lets all ranks take all steps that they can.
func (e *contentionFree) run() {
	var round, congested []int32
	for len(e.runnable.ids) > 0 {
		round = e.runnable.take(round)
		for _, rank := range round {
			e.enterStep(rank)
		}
		e.times.beginNext()
		if len(e.loads) > 0 {
			congested = e.congested.take(congested)
			e.countLoads(e.stepOf(e.round), congested)
		}
		e.mark += uint32(len(e.loads)) + 1
		e.loads = e.loads[:0]
		e.round++
	}
}

// countLoads lists the links that are asked to carry several messages in a step.
func (e *contentionFree) countLoads(s *Step, congested []int32) {
	s.Congested = make([]Load, len(congested))
	for i, link := range congested {
		load := int(e.loads[e.links.at(link).mark-e.mark-1])
		s.Congested[i] = Load{int(link), load}
		s.MaxLinkLoad = max(s.MaxLinkLoad, load)
	}
}

// enterStep brings a rank to its next step. The messages whose other end is
// there already are transferred.
func (e *contentionFree) enterStep(rank int32) {
	s := &e.times.ranks[rank]
	n := s.step
	if n == e.first[rank+1] {
		e.finishRank(rank, s)
		return
	}
	if e.config.Sync {
		s.begun = e.times.begun
	}
	if e.before != nil {
		s.begun += s.compute(e.before[n], e.network)
	}
	if e.machine != nil {
		s.begun += e.stepCost(e.network, n, rank)
	}
	e.steps[n].timelineStep = s.timelineStep
	e.times.beginStep(n, s.begun)
	sends, endSends := e.sent(n)
	recvs, endRecvs := e.received(n)
	s.arrived = s.begun
	s.sends, s.recvs = span32{sends, endSends}, span32{recvs, endRecvs}
	s.pending = endSends - sends + endRecvs - recvs
	if s.pending == 0 {
		s.awaitNothing(e.times.begunBy)
		e.endStep(rank, s)
		return
	}
	for i := sends; i < endSends; i++ {
		to := e.messages[i].to
		if k := e.findRecv(to, rank); k >= 0 {
			e.match(i, k)
			e.transfer(i, rank, to)
		}
	}
	for k := recvs; k < endRecvs; k++ {
		from := e.recvs[k].from()
		if i := e.findMessage(from, rank); i >= 0 {
			e.match(i, k)
			e.transfer(i, from, rank)
		}
	}
}

// finishRank ends a rank's program.
func (e *contentionFree) finishRank(rank int32, s *rankState) {
	if e.copiesAfter[rank] {
		e.minSteps = max(e.minSteps, int(s.timelineStep)+1)
	}
	s.end = s.begun + s.compute(e.after[rank], e.network) + e.endCost(e.network, rank)
}

// transfer carries a message from end to end. It times the message as long as none has
// waited.
func (e *contentionFree) transfer(i, from, to int32) {
	m := &e.messages[i]
	a, b := &e.times.ranks[from], &e.times.ranks[to]
	if a.begun >= b.begun {
		m.size |= senderLast
	}
	words := e.words(m)
	step := max(a.timelineStep, b.timelineStep)
	here := e.stepOf(e.round)
	hops, route := 1, []int32(nil)
	if e.linksFollowPorts {
		here.LinksInUse++
		here.MaxLinkLoad = 1
	} else {
		route = e.route(from, to)
		hops = len(route)
		e.request(route, here)
	}
	e.undelivered--
	here.Messages++
	here.Words += words
	end := 0.0
	if !e.contended {
		start := max(a.begun, b.begun)
		took := e.messageTime(e.network, ends{from, to}, a.step, b.step, words, hops)
		end = start + took
		if took > 0 {
			e.contended = e.mustWait(route, a, b, start, end)
		}
		e.times.span(step).cover(start, end)
		e.times.delayNext(end, i)
		if e.times.start != nil {
			e.times.start[i], e.times.finish[i] = start, end
		}
		a.sending += took
		b.receiving += took
		b.receivedWords += words
		if m.combine() {
			b.combine += words
		}
	}
	if a.arrive(i, lastSent, step+1, end) {
		e.endStep(from, a)
	}
	if b.arrive(i, lastReceived, step+1, end) {
		e.endStep(to, b)
	}
}

// stepOf returns a step of the timeline.
func (e *contentionFree) stepOf(step int) *Step {
	for len(e.perStep) <= step {
		e.perStep = append(e.perStep, Step{})
	}
	return &e.perStep[step]
}

func (e *contentionFree) endStep(rank int32, s *rankState) {
	e.release(s)
	if s.as != 0 {
		e.messages[s.cause].size |= s.as
	}
	s.begun = e.times.endStep(s, e.network)
	e.runnable.add(rank)
}

// mustWait takes the links of a route, which the message has requested, and the
// ports of its two ranks. It reports whether one of them is not free when the message starts.
func (e *contentionFree) mustWait(route []int32, from, to *rankState, start, end float64) (wait bool) {
	for _, link := range route {
		if start < end {
			l := e.links.at(link)
			wait = wait || !notAfter(l.freeAt(), start)
			l.setFreeAt(end)
		}
	}
	if !e.config.AllPort {
		wait = wait || !notAfter(from.sendFree, start) || !notAfter(to.recvFree, start)
		from.sendFree, to.recvFree = end, end
	}
	return wait
}

// request counts the messages that the links of a route are asked to carry in the
// step.
//
// A link that one message has requested in this round has the mark of the round.
// If several have, it has the mark of the round plus 1 plus its index in loads. The
// next round's mark is above all of these.
func (e *contentionFree) request(route []int32, here *Step) {
	mark := e.mark
	for _, link := range route {
		l := e.links.at(link)
		switch {
		case l.mark > mark:
			e.loads[l.mark-mark-1]++
		case l.mark == mark:
			e.loads = append(e.loads, 2)
			e.congested.add(link)
			l.mark += uint32(len(e.loads))
		default:
			l.mark = mark
			here.LinksInUse++
		}
	}
	if len(route) > 0 {
		here.MaxLinkLoad = max(here.MaxLinkLoad, 1)
	}
}

// completeSteps adds the steps that have no messages.
func (e *contentionFree) completeSteps() {
	for len(e.perStep) < e.minSteps {
		e.perStep = append(e.perStep, Step{})
	}
}

// stuck names a message without a receive, or a receive without a message. If
// each has the other, it names a rank that waits for ever.
func (e *contentionFree) stuck() error {
	e.unmatch()
	if err := e.unmatched(); err != nil {
		return err
	}
	for rank := range e.times.ranks {
		s := &e.times.ranks[rank]
		if s.step < e.first[rank+1] {
			return fmt.Errorf("the programs do not fit together: rank %d waits for ever in its step %d", rank, s.step-e.first[rank]+1)
		}
	}
	return nil
}

// unmatched names, in programs whose messages are not matched, the first message
// without a receive or receive without a message.
func (t *programTable) unmatched() error {
	messages, recvs := t.ends(), make([]ends, len(t.recvs))
	for rank := range int32(t.ranks) {
		lo, hi := t.receivedBy(rank)
		for k := lo; k < hi; k++ {
			recvs[k] = ends{t.recvs[k].from(), rank}
		}
	}
	each := func(e *ends) (from, to int32) { return e.from, e.to }
	for i, k := range sched.Match(t.ranks, messages, each, recvs, each) {
		switch {
		case k < 0:
			return fmt.Errorf("the programs do not fit together: rank %d sends a message that rank %d does not receive", messages[i].from, messages[i].to)
		case i < 0:
			return fmt.Errorf("the programs do not fit together: rank %d awaits a message of rank %d that is not sent", recvs[k].to, recvs[k].from)
		}
	}
	return nil
}
