package sim

import (
	"cmp"
	"fmt"
	"slices"
)

// rounds lines the programs up, and finds the step that each message belongs
// to: the first that both its ends have come to. What a link is asked to carry
// in a step follows from that, whatever anything costs.
//
// It also times everything as if no message ever waited for another. As long
// as no lane is asked for before it is free again, that is what happens. If one
// is, contended is set, and the times must be found by queue instead.
//
// Ranks may go on in any order. Depth first, a rank goes on as far as it gets,
// and with it those that waited for it; most schedules then touch memory that
// they have touched just before. But links must be asked for in the order of
// steps, and where they are not, disordered is set, and all must be done again
// breadth first: all ranks that can begin a step begin it, round after round.
type rounds struct {
	*score
	*network
	config     Config
	times      *times
	contended  bool
	disordered bool

	links   []lane    // per directed link
	out, in []float64 // per rank: when its way out and in is free again; nil with all ports

	work    []int32 // the ranks that begin a step
	undone  int     // messages that have not arrived
	perStep []Step
	tail    int // steps, with those of ranks that only copy in the end
}

// A lane is what messages go through one after another.
type lane struct {
	free float64 // when it is free again
	step int32   // 1 + the last step in which it was asked for
	many int32   // 0 if once; otherwise 1 + its place in that step's list of congested links
}

// lineUp returns the rounds of a score.
func lineUp(c Config, s *score, n *network) (*rounds, error) {
	r := newRounds(c, s, n)
	if c.Sync {
		r.breadthFirst()
	} else if r.depthFirst(); r.disordered {
		for i := range s.messages {
			s.messages[i].round = 0
		}
		r = newRounds(c, s, n)
		r.breadthFirst()
	}
	if r.undone > 0 {
		return nil, r.stuck()
	}
	r.complete()
	return r, nil
}

func newRounds(c Config, s *score, n *network) *rounds {
	r := &rounds{
		score: s, network: n, config: c,
		times:  newTimes(s, c.Sync, c.Record, false),
		links:  make([]lane, n.links),
		undone: len(s.messages),
	}
	if !c.AllPort {
		r.out, r.in = make([]float64, s.ranks), make([]float64, s.ranks)
	}
	r.work = make([]int32, s.ranks)
	for i := range r.work {
		r.work[i] = int32(s.ranks - 1 - i)
	}
	return r
}

func (r *rounds) depthFirst() {
	for n := len(r.work); n > 0 && !r.disordered; n = len(r.work) {
		rank := r.work[n-1]
		r.work = r.work[:n-1]
		r.arrive(rank)
	}
}

func (r *rounds) breadthFirst() {
	var ranks []int32
	for len(r.work) > 0 {
		ranks, r.work = r.work, ranks[:0]
		for _, rank := range ranks {
			r.arrive(rank)
		}
		r.times.open()
	}
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
		s.reach = r.times.opening
	}
	if r.before != nil {
		s.reach += s.work(r.before[n], r.model.Top)
	}
	r.times.begins(n, s.reach)
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
		r.tail = max(r.tail, int(s.round)+1)
	}
	s.did.End = s.reach + s.work(r.score.tail[rank], r.model.Top)
}

// carry lets a message go.
func (r *rounds) carry(i int32, m *message) {
	a, b := &r.times.stands[m.from], &r.times.stands[m.to]
	words := r.words(m)
	round := max(a.round, b.round)
	here := r.step(round)
	start := max(a.reach, b.reach)
	route := r.route(m.from, m.to)
	took := r.duration(words, len(route))
	end := start + took
	for _, link := range route {
		r.ask(link, round, here, start, end)
	}
	if r.out != nil && took > 0 {
		r.contended = r.contended || !by(r.out[m.from], start) || !by(r.in[m.to], start)
		r.out[m.from], r.in[m.to] = end, end
	}
	m.round = round + 1
	r.undone--
	here.Messages++
	here.Words += words
	r.times.span(round).cover(start, end)
	r.times.late(end, i)
	if r.times.start != nil {
		r.times.start[i], r.times.finish[i] = start, end
	}
	a.sent(words, took)
	b.received(words, took, m.combine())
	if a.arrived(i, m.round, end) {
		r.done(m.from, a)
	}
	if b.arrived(i, m.round, end) {
		r.done(m.to, b)
	}
}

// step returns that of a round.
func (r *rounds) step(round int32) *Step {
	for len(r.perStep) <= int(round) {
		r.perStep = append(r.perStep, Step{})
	}
	return &r.perStep[round]
}

// done ends a rank's step.
func (r *rounds) done(rank int32, s *stand) {
	r.times.endStep(s, r.steps, r.model.Top)
	r.work = append(r.work, rank)
}

// ask takes a link, and counts what it is asked to carry in a step. Lanes that
// are asked for in order, and never before they are free, are nobody's
// bottleneck.
func (r *rounds) ask(link, round int32, here *Step, start, end float64) {
	l := &r.links[link]
	if start < end {
		r.contended = r.contended || !by(l.free, start)
		l.free = end
	}
	switch {
	case l.step < round+1:
		l.step, l.many = round+1, 0
		here.LinksInUse++
		here.MaxLinkLoad = max(here.MaxLinkLoad, 1)
		return
	case l.step > round+1:
		r.disordered = true
		return
	case l.many == 0:
		here.Congested = append(here.Congested, Load{int(link), 1})
		l.many = int32(len(here.Congested))
	}
	load := &here.Congested[l.many-1]
	load.Messages++
	here.MaxLinkLoad = max(here.MaxLinkLoad, load.Messages)
}

// complete puts the steps in order.
func (r *rounds) complete() {
	for len(r.perStep) < r.tail {
		r.perStep = append(r.perStep, Step{})
	}
	for _, s := range r.perStep {
		slices.SortFunc(s.Congested, func(a, b Load) int { return cmp.Compare(a.Link, b.Link) })
	}
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
