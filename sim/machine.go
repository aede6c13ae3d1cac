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
// Without Send and Receive, and if each rank has a processor, a message starts as in the
// textbook's model when both its ends have reached it, and holds its ports until it has
// arrived. Otherwise it is what processors do:
//
//   - A processor does one piece of work at a time: the sending part of a message, the
//     receiving part, and what a rank does between two steps. It goes on with a rank until
//     nothing is left that this rank can do, and then with the work that came first. Of
//     work that comes at the same time, that of the lower rank goes first; of the same
//     rank's, sends come before receives, and these in the order of their messages. Work
//     that takes no time needs no processor.
//   - The sending part may begin when both ends have begun the steps of the message; of a
//     message of fewer than RendezvousFrom words, when the sender has. The receiving part
//     may begin when the message has been under way for its time without that part, and the
//     receiver has begun its step. The message has arrived at the end of that part.
//   - A step of the sender waits for the sending part of a message, and if that has
//     RendezvousFrom words or more for its arrival.
//   - Of the messages that do not wait for their receiver, Capacity may be under way from one
//     rank to another. The sending part of one more begins when one of these has arrived.
//   - A message queues for the links of its route between its two parts.
type Machine struct {
	// Message is the time of a message of some words, 0 or more, and finite. Exchange
	// tells that one of its ends sends and receives in the same step.
	Message func(from, to, words int, exchange bool) float64
	// Combine is the time to combine some words, 0 or more, and finite.
	Combine func(words int) float64

	// Copy is the time of a rank to copy some words before a step, or after its last one; nil
	// for none. A copy that only provides the operand with which a receive of its step
	// combines is not made (see sched.Step.FusibleCopy), nor one from In to Out of a broadcast,
	// which has one buffer.
	Copy func(words int) float64

	// Send and Receive are the time that a message takes of the processor of its sender, and
	// of its receiver: both, or nil.
	Send, Receive  func(from, to, words int) float64
	RendezvousFrom int // words from which a message waits for its receiver

	Capacity int // short messages under way from one rank to another; 0 for no limit

	// RendezvousBetween is RendezvousFrom for messages between the hosts of a [topo.Hosts], of
	// which any number may be under way.
	RendezvousBetween int

	Call float64 // of a rank in each part, before its first step there, beside its messages
	Step float64 // of a rank's step that has messages, beside these

	// Processors is their number, where ranks share them: rank r is on processor
	// r mod Processors. 0 gives each rank its own, as do as many as there are ranks.
	// Where the topology is a [topo.Hosts], each host has so many for its ranks, which
	// count from 0 on each.
	// Switch is the time that work takes more if the last work of its processor was another
	// rank's.
	Processors int
	Switch     float64

	// Memory is the number of words per unit of time that all messages of MemoryFrom
	// words or more have together; 0 for no limit. They share it max-min fairly, where
	// none is faster than it is alone. With Receive, they do so in their receiving part.
	Memory     float64
	MemoryFrom int

	// Network is the number of words per unit of time that each link between a host and
	// the network of a [topo.Hosts] carries, in each direction; 0 for no limit. Messages
	// share it max-min fairly: with Receive, between their two parts. Each host has Memory of
	// its own, and a message between hosts needs that of both.
	Network float64
}

// validate reports what is wrong with a machine, or with other rules beside it.
func (m *Machine) validate(c Config) error {
	switch {
	case m.Message == nil || m.Combine == nil:
		return fmt.Errorf("a machine without times: want Message and Combine")
	case (m.Send == nil) != (m.Receive == nil):
		return fmt.Errorf("a machine with one of Send and Receive: want both, or none")
	case min(m.RendezvousFrom, m.RendezvousBetween) < 0:
		return fmt.Errorf("a rendezvous from %d words: want 0 or more", min(m.RendezvousFrom, m.RendezvousBetween))
	case m.Capacity < 0:
		return fmt.Errorf("a capacity of %d messages: want 0 or more", m.Capacity)
	case m.Processors < 0:
		return fmt.Errorf("%d processors: want 0 or more", m.Processors)
	case c.MemoryBandwidth > 0:
		return fmt.Errorf("a memory bandwidth beside that of a machine: want one of them")
	case c.Share || c.StoreAndForward:
		return fmt.Errorf("a machine and links that are shared or store messages: want one of them")
	case (m.works() || m.Processors > 0) && c.Sync:
		return fmt.Errorf("steps in common and processors that ranks share: want one of them")
	case (m.works() || m.Processors > 0) && c.AllPort:
		return fmt.Errorf("all ports and processors that ranks share: want single ports")
	}
	for _, x := range []float64{m.Call, m.Step, m.Switch, m.Memory, m.Network} {
		if !(x >= 0 && x <= maxParameter) {
			return fmt.Errorf("a machine's time %v: want a number, 0 or more", x)
		}
	}
	return nil
}

// works reports whether messages are work of processors.
func (m *Machine) works() bool { return m != nil && m.Send != nil }

// completedMachine returns a machine on which messages are work if ranks share processors: half
// of its time is the work of each end, unless it says otherwise. Of a message between hosts it
// is half of an empty one, since a network carries the words.
func (c Config) completedMachine(ranks int) *Machine {
	if !c.sharesProcessors(ranks) || c.Machine.works() {
		return c.Machine
	}
	m := *c.Machine
	n := newNetwork(c, ranks)
	half := func(from, to, words int) float64 {
		if n.apart(ends{int32(from), int32(to)}) {
			words = 0
		}
		return m.Message(from, to, words, false) / 2
	}
	m.Send, m.Receive = half, half
	return &m
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
	took += float64(t.callsBefore(step, rank)) * n.machine.Call
	if sends, recvs := t.traffic(step); sends || recvs {
		took += n.machine.Step
	}
	if t.moved != nil && t.moved[step] > 0 {
		took += n.machine.Copy(t.moved[step])
	}
	return took
}

// callsBefore returns the number of calls that a rank begins before one of its steps.
func (t *programTable) callsBefore(step, rank int32) int32 {
	switch calls, ok := t.calls[step]; {
	case ok:
		return calls
	case step == t.first[rank]:
		return 1
	}
	return 0
}

// endCost returns what a rank's calls without a step cost after its last one, and its copies,
// on a machine.
func (t *programTable) endCost(n *network, rank int32) (took float64) {
	if t.callsAfter != nil {
		took = float64(t.callsAfter[rank]) * n.machine.Call
	}
	if i := len(t.steps) - 1 + int(rank); t.moved != nil && t.moved[i] > 0 {
		took += n.machine.Copy(t.moved[i])
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

// memoryLimit returns the rate of a message alone, in words per unit of time: on a
// machine, what is left of its time after that of an empty one.
func (q *queueing) memoryLimit(m *queuedMessage) float64 {
	words := q.length(m)
	if q.machine == nil {
		return 1 / q.perWord(m.ends, len(q.route(m.from, m.to)))
	}
	if flow := q.alone(m, words) - q.alone(m, 0); flow > 0 {
		return float64(words) / flow
	}
	return math.Inf(1)
}

// alone returns the time of a message if it had some words, and no other slowed it down.
func (q *queueing) alone(m *queuedMessage, words int) float64 {
	return q.messageTime(q.network, m.ends, q.times.ranks[m.from].step, q.times.ranks[m.to].step, words, 1)
}
