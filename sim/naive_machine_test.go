package sim_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// This is a second simulation of messages that are work of processors, as simple as can be:
// what the comment of sim.Machine says, in lists, looking at everything whenever anything
// happens. Of the first it shares nothing, and of the naive one of the textbook's network
// the programs. It knows parts of all ranks, and networks in which nobody waits for a link:
// hosts share those to their network.

type naiveMachine struct {
	*naive
	m          *sim.Machine
	index      map[*naiveMessage]int
	landsAt    map[*naiveMessage]float64
	here, sent map[*naiveMessage]bool // its receiver is in its step; its sending part is over
	processors []*naiveProcessor
	ofRank     []*naiveProcessor // of processors
	ways       []*naiveWork      // messages between hosts
	asked      []*naiveWork      // since the last round
	copies     [][]int           // per rank, of each step and after the last one: words
	calls      map[[2]int]int    // by a rank and its step: the parts that begin before it
	entering   []int             // ranks that enter their steps
	begun      []*naiveMessage   // messages that have asked for their sending part
	full       []*naiveMessage   // those that may not yet, since too many are under way
}

type naiveProcessor struct {
	queue    []*naiveWork
	doing    *naiveWork
	lastRank int
}

type naiveKind int

const (
	sends naiveKind = iota
	receives
	between // steps of a rank
	crosses // a message the network of the hosts, which is no work of a processor
)

type naiveWork struct {
	kind    naiveKind
	rank    int
	message *naiveMessage
	took    float64
	ends    float64
	flows   bool    // its words share the memory or the network,
	flowsAt float64 // from then on,
	left    float64 // as many of them,
	rate    float64
}

func simulateMachineNaively(c sim.Config, parts ...sim.Part) *naiveMachine {
	n := &naiveMachine{
		naive: &naive{Config: c, queues: map[string][]*naiveMessage{}}, m: c.Machine,
		index: map[*naiveMessage]int{}, landsAt: map[*naiveMessage]float64{},
		here: map[*naiveMessage]bool{}, sent: map[*naiveMessage]bool{}, calls: map[[2]int]int{},
	}
	for _, p := range parts {
		for rank := range p.Schedule.P {
			step := 0
			if p.Ranks != nil {
				rank = p.Ranks[rank]
			}
			if rank < len(n.ranks) {
				step = len(n.ranks[rank].steps)
			}
			n.calls[[2]int{rank, step}]++
		}
		n.add(p)
		n.addCopies(p)
	}
	for i, m := range n.messages {
		n.index[m] = i
	}
	n.addProcessors()
	for rank := range n.ranks {
		n.leave(rank, 0)
	}
	for {
		n.round()
		next := n.next()
		if math.IsInf(next, 1) {
			return n
		}
		for _, w := range n.flowing() {
			w.left -= w.rate * (next - n.now)
		}
		n.now = next
		n.due()
	}
}

// addProcessors gives each rank one of those of its host.
func (n *naiveMachine) addProcessors() {
	ofHost := map[int][]*naiveProcessor{}
	ranks := map[int]int{}
	for rank := range n.ranks {
		host := n.host(rank)
		k := ranks[host]
		if ranks[host]++; n.m.Processors > 0 {
			k %= n.m.Processors
		}
		if k == len(ofHost[host]) {
			ofHost[host] = append(ofHost[host], &naiveProcessor{lastRank: -1})
			n.processors = append(n.processors, ofHost[host][k])
		}
		n.ofRank = append(n.ofRank, ofHost[host][k])
	}
}

func (n *naiveMachine) host(rank int) int {
	if hosts, ok := n.Topology.(*topo.Hosts); ok {
		return hosts.Host(rank)
	}
	return 0
}

// addCopies counts the words that each rank copies before each step, and after the last one.
func (n *naiveMachine) addCopies(p sim.Part) {
	for rank := range p.Schedule.P {
		if len(n.copies) <= rank {
			n.copies = append(n.copies, []int{0})
		}
		counts := n.copies[rank]
		for _, step := range p.Schedule.Program(rank) {
			made := slices.Clone(step.Copies)
			for k := range step.Recvs {
				if i := step.FusibleCopy(k); i >= 0 {
					made[i].How = sched.Left // not made
				}
			}
			for _, c := range made {
				same := c.Src == sched.In && c.Dst == sched.Out && c.Blocks.Lo == c.At
				if c.How == sched.Replace && !(same && p.Schedule.Collective == sched.Bcast) {
					counts[len(counts)-1] += wordsOf(p, c.Blocks)
				}
			}
			if len(step.Sends)+len(step.Recvs) > 0 {
				counts = append(counts, 0)
			}
		}
		n.copies[rank] = counts
	}
}

func (n *naiveMachine) processor(rank int) *naiveProcessor { return n.ofRank[rank] }

func (n *naiveMachine) ask(w *naiveWork) { n.asked = append(n.asked, w) }

// leave has a rank combine some words, and then begin its next step.
func (n *naiveMachine) leave(rank, words int) {
	r := n.ranks[rank]
	took := 0.0
	combine := func(words int) {
		if words > 0 {
			took += n.m.Combine(words)
			r.did.Combining += n.m.Combine(words)
		}
	}
	combine(words)
	if c := n.copies[rank][r.at]; c > 0 && n.m.Copy != nil {
		took += n.m.Copy(c)
	}
	if r.at == len(r.steps) {
		combine(r.tail)
	} else {
		combine(r.steps[r.at].before)
		took += n.m.Step
	}
	took += float64(n.calls[[2]int{rank, r.at}]) * n.m.Call
	n.ask(&naiveWork{kind: between, rank: rank, took: took})
}

// round does all that can be done at once.
func (n *naiveMachine) round() {
	for len(n.entering)+len(n.asked) > 0 {
		for _, rank := range n.entering {
			n.enter(rank)
		}
		n.entering = nil
		asked := n.asked
		n.asked = nil
		slices.SortFunc(asked, func(a, b *naiveWork) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.kind, b.kind), cmp.Compare(n.index[a.message], n.index[b.message]))
		})
		for _, w := range asked {
			if w.took == 0 {
				n.begin(w, 0)
				n.end(w)
			} else {
				p := n.processor(w.rank)
				p.queue = append(p.queue, w)
			}
		}
	}
	for _, p := range n.processors {
		if p.doing != nil || len(p.queue) == 0 {
			continue
		}
		i := max(0, slices.IndexFunc(p.queue, func(w *naiveWork) bool { return w.rank == p.lastRank }))
		w := p.queue[i]
		p.queue = slices.Delete(p.queue, i, i+1)
		switching := 0.0
		if p.lastRank >= 0 && p.lastRank != w.rank {
			switching = n.m.Switch
		}
		p.doing, p.lastRank = w, w.rank
		n.begin(w, switching)
	}
}

func (n *naiveMachine) enter(rank int) {
	r := n.ranks[rank]
	for _, m := range r.steps[r.at].messages {
		m.ends++
		mine := m.From == rank
		if !mine {
			n.here[m] = true
		}
		if n.eager(m) && mine || !n.eager(m) && m.ends == 2 {
			m.Ready = n.now
			n.full = append(n.full, m)
			n.askNext(m.From, m.To)
		}
		if !mine && m.flows {
			n.receive(m)
		}
	}
}

// askNext has the messages from one rank to another ask that may.
func (n *naiveMachine) askNext(from, to int) {
	of := func(m *naiveMessage) bool { return m.From == from && m.To == to }
	for _, m := range slices.DeleteFunc(slices.Clone(n.full), func(m *naiveMessage) bool { return !of(m) }) {
		underWay := 0
		for _, other := range n.begun {
			if of(other) && n.eager(other) && !other.over {
				underWay++
			}
		}
		if n.m.Capacity > 0 && n.eager(m) && !n.apart(m) && underWay >= n.m.Capacity {
			continue
		}
		n.ask(&naiveWork{kind: sends, rank: m.From, message: m, took: n.m.Send(m.From, m.To, m.Words)})
		n.begun = append(n.begun, m)
		n.full = slices.DeleteFunc(n.full, func(other *naiveMessage) bool { return other == m })
	}
}

func (n *naiveMachine) apart(m *naiveMessage) bool { return n.host(m.From) != n.host(m.To) }

func (n *naiveMachine) eager(m *naiveMessage) bool {
	if n.apart(m) {
		return m.Words < n.m.RendezvousBetween
	}
	return m.Words < n.m.RendezvousFrom
}

func (n *naiveMachine) receive(m *naiveMessage) {
	n.ask(&naiveWork{kind: receives, rank: m.To, message: m, took: n.m.Receive(m.From, m.To, m.Words)})
}

func (n *naiveMachine) begin(w *naiveWork, switching float64) {
	w.ends = n.now + switching + w.took
	m := w.message
	switch w.kind {
	case sends:
		m.Start = n.now
		exchange := func(rank, step int) bool {
			s := n.ranks[rank].steps[step]
			return s.takes > 0 && s.takes < len(s.messages)
		}
		exchanged := exchange(m.From, m.SendStep) || exchange(m.To, m.RecvStep)
		way := func(words int) float64 {
			return max(0, n.m.Message(m.From, m.To, words, exchanged)-n.m.Receive(m.From, m.To, words))
		}
		if n.apart(m) && n.m.Network > 0 && way(m.Words) > way(0) {
			n.ways = append(n.ways, &naiveWork{
				kind: crosses, message: m, flows: true, flowsAt: n.now + switching + way(0),
				left: float64(m.Words), took: way(m.Words) - way(0),
			})
			return
		}
		n.landsAt[m] = n.now + (switching + way(m.Words))
	case receives:
		nothing := n.m.Receive(m.From, m.To, 0)
		if w.took > nothing && n.m.Memory > 0 && m.Words >= n.m.MemoryFrom {
			w.flows, w.left = true, float64(m.Words)
			w.flowsAt, w.ends = n.now+switching+nothing, math.Inf(1)
		}
	}
}

// due ends what ends now.
func (n *naiveMachine) due() {
	for _, m := range n.messages {
		if at, started := n.landsAt[m]; started && notAfter(at, n.now) && !m.flows {
			m.flows = true // it has landed
			if n.here[m] {
				n.receive(m)
			}
		}
	}
	over := func(w *naiveWork) bool {
		return w.flows && notAfter(w.flowsAt, n.now) && w.left <= 1e-10*float64(w.message.Words)
	}
	for _, w := range n.ways {
		if over(w) {
			w.message.flows = true // it has landed
			if n.here[w.message] {
				n.receive(w.message)
			}
		}
	}
	n.ways = slices.DeleteFunc(n.ways, over)
	for _, p := range n.processors {
		w := p.doing
		if w != nil && (notAfter(w.ends, n.now) || over(w)) {
			p.doing = nil
			n.end(w)
		}
	}
}

func (n *naiveMachine) end(w *naiveWork) {
	r, m := n.ranks[w.rank], w.message
	switch {
	case w.kind == between && r.at == len(r.steps):
		r.did.End = n.now
	case w.kind == between:
		n.entering = append(n.entering, w.rank)
	case w.kind == sends:
		n.sent[m] = true
		if n.eager(m) || m.over {
			n.done(m.From)
		}
	default:
		m.over, m.End = true, n.now
		n.askNext(m.From, m.To)
		n.ranks[m.From].did.Sending += m.End - m.Start
		r.did.Receiving += m.End - m.Start
		if n.sent[m] && !n.eager(m) {
			n.done(m.From)
		}
		n.done(m.To)
	}
}

// done ends a rank's step if all its parts in it are over.
func (n *naiveMachine) done(rank int) {
	r := n.ranks[rank]
	combines := 0
	for _, m := range r.steps[r.at].messages {
		switch {
		case m.To == rank && !m.over, m.From == rank && (!n.sent[m] || !n.eager(m) && !m.over):
			return
		case m.To == rank && m.Combine:
			combines += m.Words
		}
	}
	r.at++
	n.leave(rank, combines)
}

// flowing returns the work whose words flow, each with its rate. All rates rise together, until
// a piece of work is as fast as it is alone, or something that it needs gives no more.
func (n *naiveMachine) flowing() (all []*naiveWork) {
	doing := slices.Clone(n.ways)
	for _, p := range n.processors {
		if p.doing != nil {
			doing = append(doing, p.doing)
		}
	}
	for _, w := range doing {
		if w.flows && notAfter(w.flowsAt, n.now) {
			all = append(all, w)
		}
	}
	left := map[string]float64{}
	for _, w := range all {
		for _, r := range n.needs(w) {
			if left[r] = n.m.Memory; w.kind == crosses {
				left[r] = n.m.Network
			}
		}
	}
	for rising := slices.Clone(all); len(rising) > 0; {
		users := map[string]float64{}
		for _, w := range rising {
			for _, r := range n.needs(w) {
				users[r]++
			}
		}
		share := func(w *naiveWork) float64 {
			rate := n.alone(w)
			for _, r := range n.needs(w) {
				rate = min(rate, left[r]/users[r])
			}
			return rate
		}
		least := slices.MinFunc(rising, func(a, b *naiveWork) int { return cmp.Compare(share(a), share(b)) })
		least.rate = share(least)
		for _, r := range n.needs(least) {
			left[r] -= least.rate
		}
		rising = slices.DeleteFunc(rising, func(w *naiveWork) bool { return w == least })
	}
	return all
}

// alone is the rate of some work that shares nothing.
func (n *naiveMachine) alone(w *naiveWork) float64 {
	m := w.message
	if w.kind == crosses {
		return float64(m.Words) / w.took
	}
	return float64(m.Words) / (w.took - n.m.Receive(m.From, m.To, 0))
}

// needs names what work shares: the links of two hosts, or their memory.
func (n *naiveMachine) needs(w *naiveWork) []string {
	from, to := n.host(w.message.From), n.host(w.message.To)
	switch {
	case w.kind == crosses:
		return []string{fmt.Sprint("up ", from), fmt.Sprint("down ", to)}
	case from == to:
		return []string{fmt.Sprint("memory ", from)}
	}
	return []string{fmt.Sprint("memory ", from), fmt.Sprint("memory ", to)}
}

func (n *naiveMachine) next() float64 {
	next := math.Inf(1)
	for m, at := range n.landsAt {
		if !m.flows {
			next = min(next, at)
		}
	}
	for _, p := range n.processors {
		if w := p.doing; w != nil {
			next = min(next, w.ends)
			if w.flows && !notAfter(w.flowsAt, n.now) {
				next = min(next, w.flowsAt)
			}
		}
	}
	for _, w := range n.ways {
		if !notAfter(w.flowsAt, n.now) {
			next = min(next, w.flowsAt)
		}
	}
	for _, w := range n.flowing() {
		next = min(next, n.now+w.left/w.rate)
	}
	return next
}

func TestMessagesThatAreWorkHaveTheTimesOfANaiveSimulation(t *testing.T) {
	affine := func(startup, perWord float64) func(from, to, words int) float64 {
		return func(_, _, words int) float64 { return startup + perWord*float64(words) }
	}
	machines := []*sim.Machine{
		{Send: affine(1, 0.25), Receive: affine(2, 0.5), RendezvousFrom: 6},
		{Send: affine(1, 0), Receive: affine(1, 0), RendezvousFrom: 100, Capacity: 1, Call: 2, Step: 1, Processors: 2, Switch: 3},
		{Send: affine(0, 0), Receive: affine(0, 1), Processors: 3, Switch: 0.7, Step: 0.1},
		{Send: affine(0.3, 0.01), Receive: affine(0.2, 0.3), RendezvousFrom: 3, Capacity: 2, Processors: 1, Switch: 1.9},
		{Send: affine(0.5, 0.3), Receive: affine(0.7, 0.2), RendezvousFrom: 4, Memory: 3.5, MemoryFrom: 4, Step: 0.3},
		{Send: affine(1, 0.5), Receive: affine(1, 0.5), Memory: 1, MemoryFrom: 2, Processors: 2, Switch: 1},
	}
	hosts := []*sim.Machine{
		{Send: affine(1, 0.25), Receive: affine(1, 0.2), RendezvousFrom: 6, RendezvousBetween: 3, Capacity: 1, Network: 0.9},
		{Send: affine(1, 0), Receive: affine(2, 0.1), RendezvousBetween: 50, Network: 1.5, Processors: 1, Switch: 1, Memory: 2, MemoryFrom: 3},
	}
	machines = append(machines, hosts...)
	for i, m := range machines {
		if i%2 == 0 {
			m.Copy = func(words int) float64 { return 0.5 + 0.125*float64(words) }
		}
		m.Message = func(_, _, words int, exchange bool) float64 {
			if exchange {
				return 5 + 0.75*float64(words)
			}
			return 4 + 0.5*float64(words)
		}
		m.Combine = func(words int) float64 { return 0.375 * float64(words) }
		for _, a := range algo.Catalog() {
			for _, p := range []int{2, 3, 5, 8} {
				s, err := algo.New(a.Collective, a.Name, p, 0, algo.VariantBytes)
				if err != nil || testing.Short() && p > 5 {
					continue // a restriction
				}
				part := sim.Part{Schedule: s, Words: wordsFor(s, 5)}
				for _, topology := range []topo.Topology{must(topo.NewFull(p)), must(topo.NewHosts(1, (p+1)/2, p/2))} {
					if _, ok := topology.(*topo.Hosts); ok != slices.Contains(hosts, m) {
						continue // hosts without a network wait for its links
					}
					c := sim.Config{Topology: topology, Machine: m, Record: true}
					for _, parts := range [][]sim.Part{{part}, {part, part}} {
						got, want := must(sim.Run(c, parts...)), simulateMachineNaively(c, parts...)
						if broken := want.differs(got); broken != "" {
							t.Fatalf("machine %d, %v %s on %d ranks of %v, %d times: %s", i, a.Collective, a.Name, p, topology, len(parts), broken)
						}
					}
				}
			}
		}
	}
}

// differs says where the times of a result are others; "" if they are not.
func (n *naiveMachine) differs(r *sim.Result) string {
	n.number()
	for rank, want := range n.ranks {
		got := r.PerRank[rank]
		if !near(got.End, want.did.End) || !near(got.Combining, want.did.Combining) || !near(got.Sending, want.did.Sending) || !near(got.Receiving, want.did.Receiving) {
			return sprint("rank", rank, "is", got, "want", want.did)
		}
	}
	for i, want := range n.log() {
		if got := r.Log[i]; !same(got, want) {
			return sprint("message", i, "is", got, "want", want)
		}
	}
	return ""
}

func sprint(all ...any) string { return fmt.Sprintln(all...) }
