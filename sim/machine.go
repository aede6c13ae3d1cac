package sim

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/topo"
)

// A Machine is what one machine takes, as measured, in place of the prices of a
// Model: times of any shape, and processors that ranks share. Message and Combine
// are required; the zero value of every other field has a meaning.
//
// A message does not wait for a protocol: as in the textbook's model, it starts
// when both its ends have reached it, and holds its ports until it has arrived.
type Machine struct {
	// Message is the time of a message of some words, 0 or more, and finite. Exchange
	// tells that one of its ends sends and receives in the same step.
	Message func(from, to, words int, exchange bool) float64
	// Combine is the time to combine some words, 0 or more, and finite.
	Combine func(words int) float64

	Call float64 // of a rank's first step, beside its messages
	Step float64 // of a rank's step that has messages, beside these

	// Processors is their number, where ranks share them: rank r is on processor
	// r mod Processors. 0 gives each rank its own, as do as many as there are ranks.
	// Where the topology is a [topo.Hosts], each host has so many for its ranks, which
	// count from 0 on each.
	// A processor sends one message at a time, and receives one, whichever of its ranks
	// they are for. While one of its ranks combines, or begins a step, it does nothing
	// else. Switch is the time of a message or of such work that the processor begins
	// for another rank than its last one; a message between two ranks of a processor
	// always has one.
	Processors int
	Switch     float64

	// Memory is the number of words per unit of time that all messages of MemoryFrom
	// words or more have together; 0 for no limit. They share it max-min fairly, where
	// none is faster than it is alone.
	Memory     float64
	MemoryFrom int

	// Network is the number of words per unit of time that each link between a host and
	// the network of a [topo.Hosts] carries, in each direction; 0 for no limit. Messages
	// share it max-min fairly. Each host has Memory of its own, and a message between hosts
	// needs that of both.
	Network float64
}

// validate reports what is wrong with a machine, or with other rules beside it.
func (m *Machine) validate(c Config) error {
	switch {
	case m.Message == nil || m.Combine == nil:
		return fmt.Errorf("a machine without times: want Message and Combine")
	case m.Processors < 0:
		return fmt.Errorf("%d processors: want 0 or more", m.Processors)
	case c.MemoryBandwidth > 0:
		return fmt.Errorf("a memory bandwidth beside that of a machine: want one of them")
	case c.Share || c.StoreAndForward:
		return fmt.Errorf("a machine and links that are shared or store messages: want one of them")
	case m.Processors > 0 && c.Sync:
		return fmt.Errorf("steps in common and processors that ranks share: want one of them")
	case m.Processors > 0 && c.AllPort:
		return fmt.Errorf("all ports and processors that ranks share: want single ports")
	}
	for _, x := range []float64{m.Call, m.Step, m.Switch, m.Memory, m.Network} {
		if !(x >= 0 && x <= maxParameter) {
			return fmt.Errorf("a machine's time %v: want a number, 0 or more", x)
		}
	}
	return nil
}

// sharesProcessors reports whether some of a number of ranks share a processor.
func (c Config) sharesProcessors(ranks int) bool {
	if c.Machine == nil || c.Machine.Processors == 0 {
		return false
	}
	hosts, ok := c.Topology.(*topo.Hosts)
	if !ok {
		return c.Machine.Processors < ranks
	}
	for host := range hosts.Count() {
		if c.Machine.Processors < hosts.Size(host) {
			return true
		}
	}
	return false
}

// shareProcessors gives each rank one of the processors of its host, of which each has so
// many. They are numbered in the order of the ranks that use them first.
func (n *network) shareProcessors(each int) {
	type processor struct{ host, number int }
	numbers := make(map[processor]int32)
	ranks := make(map[int]int) // of a host, so far
	n.processors = make([]int32, n.ranks)
	for rank := range n.processors {
		host := n.host(int32(rank))
		at := processor{host, ranks[host] % each}
		ranks[host]++
		if _, ok := numbers[at]; !ok {
			numbers[at] = int32(len(numbers))
		}
		n.processors[rank] = numbers[at]
	}
}

// port returns the number of the ports that a rank uses: those of its processor.
func (n *network) port(rank int32) int32 {
	if n.processors == nil {
		return rank
	}
	return n.processors[rank]
}

// stepCost returns what a rank's step costs beside its messages, on a machine.
func (t *programTable) stepCost(n *network, step, rank int32) (took float64) {
	if n.machine == nil {
		return 0
	}
	if step == t.first[rank] {
		took += n.machine.Call
	}
	if sends, recvs := t.traffic(step); sends || recvs {
		took += n.machine.Step
	}
	return took
}

// traffic reports whether a step sends, and whether it receives.
func (t *programTable) traffic(step int32) (sends, receives bool) {
	lo, hi := t.sent(step)
	recvs, endRecvs := t.received(step)
	return lo < hi, recvs < endRecvs
}

// exchanges reports whether a step sends and receives.
func (t *programTable) exchanges(step int32) bool {
	sends, receives := t.traffic(step)
	return sends && receives
}

// messageTime returns the time of a message that starts in two steps of its ends,
// if no other message slows it down.
func (t *programTable) messageTime(n *network, e ends, sent, received int32, words, hops int) float64 {
	if n.machine == nil {
		return n.duration(e, words, hops)
	}
	return n.machine.Message(int(e.from), int(e.to), words, t.exchanges(sent) || t.exchanges(received))
}

// Where ranks share processors, what they do beside messages is work: it holds both ports
// of its processor. It queues for them as messages do, as a message from a rank to
// itself. The work before a step is numbered by the step, and that of a rank after its
// last one by the rank, in this order, after the messages.

func (q *queueing) isWork(i int32) bool { return int(i) >= len(q.messages) }

// workBefore returns the number of the work before a step.
func (t *programTable) workBefore(step int32) int32 { return int32(len(t.messages)) + step }

// workAfter returns the number of the work after the last step of a rank.
func (t *programTable) workAfter(rank int32) int32 {
	return int32(len(t.messages)+len(t.steps)-1) + rank
}

// beginWork lets a rank work for a time, and then begin its next step, or end.
func (q *queueing) beginWork(rank int32, took float64) {
	s := &q.times.ranks[rank]
	i := q.workBefore(s.step)
	if s.step == q.first[rank+1] {
		i = q.workAfter(rank)
	}
	m := &q.queued[i]
	m.ends = ends{rank, rank}
	m.ready, m.start = q.now, took
	q.ready = append(q.ready, turn(i))
}

// endWork lets the rank of some work go on.
func (q *queueing) endWork(i int32) {
	m := &q.queued[i]
	q.release(i, m)
	m.finish = q.now
	if s := &q.times.ranks[m.from]; s.step == q.first[m.from+1] {
		s.end = q.now
		return
	}
	q.beginning = append(q.beginning, m.from)
}

// switching returns the time that a message or work takes more because its processors
// worked for other ranks before.
func (q *queueing) switching(e ends) (took float64) {
	if q.lastRank == nil {
		return 0
	}
	a, b := &q.lastRank[q.port(e.from)], &q.lastRank[q.port(e.to)]
	if *a != noRank && *a != e.from || a != b && *b != noRank && *b != e.to {
		took = q.machine.Switch
	}
	if a == b && e.from != e.to {
		took += q.machine.Switch
	}
	*a, *b = e.from, e.to
	return took
}

// noRank is the last rank of a processor that has done nothing yet.
const noRank = -1

// memoryLimit returns the rate of a message alone, in words per unit of time: on a
// machine, what is left of its time after that of an empty one.
func (q *queueing) memoryLimit(i int32) float64 {
	m := &q.queued[i]
	words := q.words(&q.messages[i])
	if q.machine == nil {
		return 1 / q.perWord(m.ends, len(q.route(m.from, m.to)))
	}
	if flow := q.alone(i, words) - q.alone(i, 0); flow > 0 {
		return float64(words) / flow
	}
	return math.Inf(1)
}

// alone returns the time of a message if it had some words, and no other slowed it down.
func (q *queueing) alone(i int32, words int) float64 {
	m := &q.queued[i]
	return q.messageTime(q.network, m.ends, q.times.ranks[m.from].step, q.times.ranks[m.to].step, words, 1)
}
