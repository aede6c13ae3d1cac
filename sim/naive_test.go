package sim_test

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// This is a second simulator, as simple as can be: it does what the package
// comment says, in lists, looking at everything whenever anything happens. It
// shares nothing with the first.

type naive struct {
	sim.Config
	now      float64
	ranks    []*naiveRank
	messages []*naiveMessage
	queues   map[string][]*naiveMessage // the message that holds a port or link, and behind it those that wait
}

type naiveRank struct {
	steps []naiveStep
	tail  int // words that copies combine after the last step
	at    int // its current step

	begun  bool    // its current step, or there is none
	begins float64 // when it does, if it knows
	did    sim.Rank
}

type naiveStep struct {
	before   int // words that copies combine before it
	messages []*naiveMessage
	takes    int // of these, how many it receives
	end      float64
}

// moves tells a step that has messages.
func (s naiveStep) moves() bool { return len(s.messages) > 0 }

type naiveMessage struct {
	sim.Message
	index int // among those of its sender's step

	links           []string // that it crosses
	ends            int      // that have come to it
	ported, routed  bool     // is in the lines for ports, for links
	started, over   bool
	flows           bool // its words are under way
	rises           bool // its rate does, in divide
	left            float64
	rate            float64
	flowsAt, passes float64 // when they are, and when it has arrived, if nothing slows it down
}

// notAfter reports whether a time has come, but for rounding.
func notAfter(t, now float64) bool { return t <= now*(1+1e-12) }

// simulateNaively simulates parts.
func simulateNaively(c sim.Config, parts ...sim.Part) *naive {
	n := &naive{Config: c, queues: map[string][]*naiveMessage{}}
	for _, p := range parts {
		n.add(p)
	}
	for _, r := range n.ranks {
		n.scheduleStep(r, 0)
	}
	for {
		for n.advance() {
		}
		next := n.upcoming()
		if math.IsInf(next, 1) && !n.openStep() {
			return n
		}
		if !math.IsInf(next, 1) {
			n.pass(next - n.now)
			n.now = next
		}
	}
}

// add adds a part's steps to those of the ranks that run it, and matches
// what they send with what they receive by counting.
func (n *naive) add(p sim.Part) {
	type pair struct{ from, to int }
	sent := map[pair][]*naiveMessage{}
	taken := map[pair]int{}
	rankOf := func(i int) int {
		if p.Ranks == nil {
			return i
		}
		return p.Ranks[i]
	}
	each := func(visit func(at int, r *naiveRank, step sched.Step)) {
		for i := range p.Schedule.P {
			for len(n.ranks) <= rankOf(i) {
				n.ranks = append(n.ranks, &naiveRank{})
			}
			for _, step := range p.Schedule.Program(i) {
				visit(rankOf(i), n.ranks[rankOf(i)], step)
			}
		}
	}
	first := map[int]int{}
	each(func(at int, r *naiveRank, step sched.Step) {
		if _, seen := first[at]; !seen {
			first[at] = len(r.steps)
		}
		for _, copied := range step.Copies {
			if copied.How != sched.Replace {
				r.tail += wordsOf(p, copied.Blocks)
			}
		}
		if len(step.Sends)+len(step.Recvs) == 0 && !n.Sync {
			return
		}
		s := naiveStep{before: r.tail}
		r.tail = 0
		for _, send := range step.Sends {
			for _, to := range send.To {
				m := &naiveMessage{index: len(s.messages)}
				m.SendStep = len(r.steps)
				m.From, m.To, m.Words = at, rankOf(to), wordsOf(p, send.Blocks)
				for _, link := range topo.Route(n.Topology, n.processor(m.From), n.processor(m.To)) {
					m.links = append(m.links, "link "+topo.LinkName(n.Topology, link))
				}
				m.Hops = len(m.links)
				s.messages = append(s.messages, m)
				n.messages = append(n.messages, m)
				sent[pair{m.From, m.To}] = append(sent[pair{m.From, m.To}], m)
			}
		}
		r.steps = append(r.steps, s)
	})
	each(func(at int, r *naiveRank, step sched.Step) {
		if len(step.Sends)+len(step.Recvs) == 0 && !n.Sync {
			return
		}
		k := first[at]
		first[at]++
		for _, recv := range step.Recvs {
			way := pair{rankOf(recv.From), at}
			m := sent[way][taken[way]]
			taken[way]++
			m.RecvStep, m.Combine = k, recv.How != sched.Replace
			r.steps[k].messages = append(r.steps[k].messages, m)
			r.steps[k].takes++
		}
	})
}

func (n *naive) processor(rank int) int {
	if n.Placement == nil {
		return rank
	}
	return n.Placement[rank]
}

// wordsOf counts the words of some blocks, one block after another.
func wordsOf(p sim.Part, blocks sched.Range) (words int) {
	s := p.Schedule
	per, m := s.Blocks, p.Words // blocks of a part of m words
	if s.Partitioned() {
		per /= s.P
	}
	for b := blocks.Lo; b < blocks.Hi && per > 0; b++ {
		i := b % s.Blocks % per
		if s.EqualBlocks {
			words += int(math.Ceil(float64(m) / float64(per)))
		} else {
			words += (i+1)*m/per - i*m/per
		}
	}
	return words
}

// scheduleStep says when a rank begins its next step.
func (n *naive) scheduleStep(r *naiveRank, at float64) {
	words := r.tail
	if r.at < len(r.steps) {
		words = r.steps[r.at].before
	}
	took := n.Model.Top * float64(words)
	r.did.Combining += took
	r.begun, r.begins = false, at+took
	if r.at == len(r.steps) {
		r.begun, r.did.End = true, at+took
	}
}

// advance does all that can be done at once, and reports whether that was
// anything.
func (n *naive) advance() (any bool) {
	for _, m := range n.messages {
		if m.started && !m.over && n.arrived(m) {
			any = true
			n.arrive(m)
		}
	}
	for _, r := range n.ranks {
		if r.begun || !notAfter(r.begins, n.now) {
			continue
		}
		r.begun, any = true, true
		for _, m := range r.steps[r.at].messages {
			m.ends++
			m.Ready = n.now
		}
		if len(r.steps[r.at].messages) == 0 {
			n.finish(r)
		}
	}
	for _, m := range n.inOrder(func(m *naiveMessage) bool { return m.ends == 2 && !m.ported }) {
		m.ported = true
		n.enqueue(m, n.ports(m))
	}
	for _, m := range n.inOrder(func(m *naiveMessage) bool { return m.ported && !m.routed && n.first(m, n.ports(m)) }) {
		m.routed = true
		n.enqueue(m, n.ways(m))
	}
	for _, m := range n.messages {
		if m.routed && !m.started && n.first(m, n.ways(m)) {
			any = true
			n.start(m)
		}
	}
	return any
}

// inOrder returns messages in the order in which they line up.
func (n *naive) inOrder(which func(*naiveMessage) bool) (some []*naiveMessage) {
	for _, m := range n.messages {
		if which(m) {
			some = append(some, m)
		}
	}
	slices.SortStableFunc(some, func(a, b *naiveMessage) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.From, b.From))
	})
	return some
}

func (n *naive) ports(m *naiveMessage) []string {
	if n.AllPort || n.instant(m) {
		return nil
	}
	return []string{sendPort(m.From), recvPort(m.To)}
}

func (n *naive) ways(m *naiveMessage) []string {
	if n.Share || n.instant(m) {
		return nil
	}
	return m.links
}

// instant tells a message that takes no time.
func (n *naive) instant(m *naiveMessage) bool {
	return n.latency(m) == 0 && (m.Words == 0 || math.IsInf(n.alone(m), 1) && n.MemoryBandwidth == 0)
}

func (n *naive) enqueue(m *naiveMessage, resources []string) {
	for _, resource := range resources {
		n.queues[resource] = append(n.queues[resource], m)
	}
}

func (n *naive) first(m *naiveMessage, resources []string) bool {
	for _, resource := range resources {
		if n.queues[resource][0] != m {
			return false
		}
	}
	return true
}

// prices are those of a message: others, if it goes over a network between hosts.
func (n *naive) prices(m *naiveMessage) model.Model {
	if n.Between != nil && slices.ContainsFunc(m.links, toNetwork) {
		return *n.Between
	}
	return n.Model
}

// toNetwork tells a link between a host and the network by its name.
func toNetwork(link string) bool { return strings.Contains(link, "net") }

func (n *naive) latency(m *naiveMessage) float64 {
	return n.prices(m).Ts + float64(m.Hops)*n.prices(m).Th
}

// alone is the rate of a message that nothing slows down.
func (n *naive) alone(m *naiveMessage) float64 {
	if n.StoreAndForward {
		return 1 / (n.prices(m).Tw * float64(m.Hops))
	}
	return 1 / n.prices(m).Tw
}

func (n *naive) start(m *naiveMessage) {
	m.started, m.Start = true, n.now
	m.flowsAt, m.left = n.now+n.latency(m), float64(m.Words)
	m.passes = m.flowsAt
	if m.Words > 0 {
		m.passes += float64(m.Words) / n.alone(m)
	}
}

// slows reports whether messages slow each other down.
func (n *naive) slows() bool { return n.Share || n.MemoryBandwidth > 0 }

func (n *naive) arrived(m *naiveMessage) bool {
	if !n.slows() {
		return notAfter(m.passes, n.now)
	}
	free := math.IsInf(n.alone(m), 1) && n.MemoryBandwidth == 0
	return notAfter(m.flowsAt, n.now) && (free || m.left <= 1e-10*float64(m.Words))
}

func (n *naive) arrive(m *naiveMessage) {
	m.over, m.End = true, n.now
	for _, resource := range slices.Concat(n.ports(m), n.ways(m)) {
		n.queues[resource] = n.queues[resource][1:]
	}
	from, to := n.ranks[m.From], n.ranks[m.To]
	from.did.Sent++
	from.did.SentWords += m.Words
	from.did.Sending += m.End - m.Start
	to.did.Received++
	to.did.ReceivedWords += m.Words
	to.did.Receiving += m.End - m.Start
	n.finish(from)
	n.finish(to)
}

// finish ends a rank's step if all its messages have arrived.
func (n *naive) finish(r *naiveRank) {
	if r.at == len(r.steps) {
		return
	}
	s := &r.steps[r.at]
	took := 0.0
	for i, m := range s.messages {
		if !m.over {
			return
		}
		if i >= len(s.messages)-s.takes && m.Combine {
			took += n.Model.Top * float64(m.Words)
		}
	}
	r.did.Combining += took
	s.end = n.now + took
	r.at++
	if n.Sync && r.at < len(r.steps) {
		r.begun, r.begins = false, math.Inf(1) // until everybody is done
		return
	}
	n.scheduleStep(r, s.end)
}

// openStep lets all ranks begin together that are between two steps, and reports
// whether there are any.
func (n *naive) openStep() bool {
	latest := n.now
	for _, r := range n.ranks {
		for _, s := range r.steps[:r.at] {
			latest = max(latest, s.end)
		}
	}
	any := false
	for _, r := range n.ranks {
		if r.at < len(r.steps) && !r.begun {
			any = true
			n.scheduleStep(r, latest)
		}
	}
	return any
}

// upcoming returns when something happens next, +Inf for never.
func (n *naive) upcoming() float64 {
	next := math.Inf(1)
	for _, r := range n.ranks {
		if !r.begun {
			next = min(next, r.begins)
		}
	}
	if n.slows() {
		n.divide()
	}
	for _, m := range n.messages {
		switch {
		case !m.started || m.over:
		case !n.slows():
			next = min(next, m.passes)
		case !m.flows:
			next = min(next, m.flowsAt)
		case m.left > 0:
			next = min(next, n.now+m.left/m.rate)
		}
	}
	return next
}
