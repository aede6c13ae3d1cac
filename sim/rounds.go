package sim

import (
	"fmt"
	"slices"
)

// rounds lines the programs up: all ranks whose step is done begin their next
// one together, round after round, and a message belongs to the round in which
// the later of its ends comes to it. What a link is asked to carry in a step
// follows from that, whatever anything costs.
//
// It also times everything as if no message ever waited for another. As long
// as no lane is asked for before it is free again, that is what happens. If one
// is, contended is set, and the times must be found by queue instead.
type rounds struct {
	*score
	*network
	config    Config
	times     *times
	contended bool

	links   []lane    // per directed link
	out, in []float64 // per rank: when its way out and in is free again; nil with all ports

	now        int32   // the current round
	opening    float64 // with Sync: when its steps begin
	openedBy   int32   // after which message
	latest     float64 // the same of the next round, as far as is known
	latestBy   int32
	next       []int32 // the ranks that begin a step in the next round
	perStep    []Step
	here       Step    // this round's
	congested  []int32 // links that are asked to carry more than one message in this round
	undone     int     // messages that have not arrived
	tailRounds int     // rounds, with those of ranks that only copy in the end
}

// A lane is what messages go through one after another.
type lane struct {
	free  float64 // when it is free again
	stamp int32   // 1 + the last round in which it was asked for
	load  int32   // by so many messages
}

func newRounds(c Config, s *score, n *network) *rounds {
	r := &rounds{
		score: s, network: n, config: c,
		times:    newTimes(s, c.Sync, c.Record, false),
		links:    make([]lane, n.links),
		undone:   len(s.messages),
		openedBy: -1, latestBy: -1,
	}
	if !c.AllPort {
		r.out, r.in = make([]float64, s.ranks), make([]float64, s.ranks)
	}
	return r
}

func (r *rounds) run() error {
	ranks := make([]int32, r.score.ranks)
	for i := range ranks {
		ranks[i] = int32(i)
	}
	for len(ranks) > 0 {
		for _, rank := range ranks {
			r.arrive(rank)
		}
		r.endRound()
		ranks, r.next = r.next, ranks[:0]
	}
	if r.undone > 0 {
		return r.stuck()
	}
	r.perStep = r.perStep[:max(r.tailRounds, r.busyRounds())]
	return nil
}

// busyRounds returns the number of rounds up to the last that has a message.
func (r *rounds) busyRounds() int {
	n := len(r.perStep)
	for n > 0 && r.perStep[n-1].Messages == 0 {
		n--
	}
	return n
}

// arrive brings a rank to its next step. A message whose other end is there
// already goes.
func (r *rounds) arrive(rank int32) {
	s := &r.times.stands[rank]
	n := s.step
	if n == r.first[rank+1] {
		r.leave(rank, s)
		return
	}
	if r.config.Sync {
		s.reach = r.opening
	}
	if r.before != nil {
		s.reach += s.work(r.before[n], r.model.Top)
	}
	if r.config.Sync {
		r.times.begin[n], r.times.waker[n] = s.reach, r.openedBy
	}
	sends, endSends := r.sent(n)
	recvs, endRecvs := r.received(n)
	s.last, s.cause = s.reach, -1
	s.pending = endSends - sends + endRecvs - recvs
	for i := sends; i < endSends; i++ {
		r.come(i)
	}
	for _, i := range r.meets[recvs:endRecvs] {
		r.come(i)
	}
}

// come brings one of its ends to a message.
func (r *rounds) come(i int32) {
	const oneEnd = -1
	if m := &r.messages[i]; m.round == 0 {
		m.round = oneEnd
	} else {
		r.carry(i, m)
	}
}

// leave ends a rank's part.
func (r *rounds) leave(rank int32, s *stand) {
	if r.copying[rank] {
		r.tailRounds = max(r.tailRounds, int(r.now)+1)
	}
	s.did.End = s.reach + s.work(r.tail[rank], r.model.Top)
}

// carry lets a message go.
func (r *rounds) carry(i int32, m *message) {
	a, b := &r.times.stands[m.from], &r.times.stands[m.to]
	start := max(a.reach, b.reach)
	route := r.route(m.from, m.to)
	took := r.duration(m.words, len(route))
	end := start + took
	for _, link := range route {
		r.ask(link, start, end)
	}
	if r.out != nil {
		r.contended = r.contended || early(start, r.out[m.from]) || early(start, r.in[m.to])
		r.out[m.from], r.in[m.to] = end, end
	}
	m.round = r.now + 1
	r.undone--
	r.here.Messages++
	r.here.Words += m.words
	r.times.span(r.now).cover(start, end)
	if r.times.start != nil {
		r.times.start[i], r.times.finish[i] = start, end
	}
	a.sent(m.words, took)
	b.received(m.words, took, m.combine)
	if a.arrived(i, end) {
		r.done(m.from, a)
	}
	if b.arrived(i, end) {
		r.done(m.to, b)
	}
}

// done ends a rank's step.
func (r *rounds) done(rank int32, s *stand) {
	s.endStep(r.steps, r.model.Top)
	r.times.span(r.now).cover(s.reach, s.reach)
	if s.reach > r.latest {
		r.latest, r.latestBy = s.reach, s.cause
	}
	r.next = append(r.next, rank)
}

// early reports whether somebody who starts finds a lane taken. What is equal
// but for rounding is not.
func early(start, free float64) bool { return start < free*(1-1e-12) }

// ask takes a link, and counts what it is asked to carry in this round. Lanes
// that are asked for in order, and never before they are free, are nobody's
// bottleneck.
func (r *rounds) ask(link int32, start, end float64) {
	l := &r.links[link]
	r.contended = r.contended || early(start, l.free)
	l.free = end
	if l.stamp != r.now+1 {
		l.stamp, l.load = r.now+1, 0
		r.here.LinksInUse++
	}
	l.load++
	r.here.MaxLinkLoad = max(r.here.MaxLinkLoad, int(l.load))
	if l.load == 2 {
		r.congested = append(r.congested, link)
	}
}

func (r *rounds) endRound() {
	slices.Sort(r.congested)
	for _, link := range r.congested {
		r.here.Congested = append(r.here.Congested, Load{int(link), int(r.links[link].load)})
	}
	r.perStep = append(r.perStep, r.here)
	r.here, r.congested = Step{}, r.congested[:0]
	r.opening, r.openedBy = r.latest, r.latestBy
	r.now++
}

// stuck says who waits when nobody moves.
func (r *rounds) stuck() error {
	for rank := range r.times.stands {
		s := &r.times.stands[rank]
		if s.step < r.first[rank+1] {
			return fmt.Errorf("the programs do not fit together: rank %d waits for ever in its step %d", rank, s.step-r.first[rank]+1)
		}
	}
	return nil
}
