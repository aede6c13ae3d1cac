package predict

import (
	"math"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// Machine returns what a simulation needs of a profile: a transport, between ranks whose
// words are elements of some bytes. Times are in microseconds.
func Machine(p *model.Profile, transport string, wordBytes int) (*sim.Machine, error) {
	link, err := p.Link(transport)
	if err != nil {
		return nil, err
	}
	bytes := float64(wordBytes)
	shared := math.Inf(1) // bytes from which messages share the memory
	if p.Node.Bandwidth() > 0 {
		shared = float64(p.Node.MemoryFrom)
	}
	m := &sim.Machine{
		Message: func(_, _, words int, exchange bool) float64 {
			// What an exchange of long messages takes more is the memory that they share.
			if n := bytes * float64(words); exchange && n < shared {
				return link.Exchange.Time(n)
			} else {
				return link.OneWay.Time(n)
			}
		},
		Copy:       func(words int) float64 { return p.Node.Copy.Time(bytes * float64(words)) },
		Combine:    func(words int) float64 { return p.Node.Combining(wordBytes, bytes*float64(words)) },
		Call:       link.Call.Value,
		Step:       link.Step.Value,
		Processors: p.Node.Processors,
		Switch:     link.Switch.Value,
		Memory:     p.Node.Bandwidth() / bytes,
		MemoryFrom: int(math.Ceil(float64(p.Node.MemoryFrom) / bytes)),
	}
	if len(link.Send) > 0 {
		m.Send = func(_, _, words int) float64 { return link.Send.Time(bytes * float64(words)) }
		m.Receive = func(_, _, words int) float64 { return link.Receive.Time(bytes * float64(words)) }
		m.RendezvousFrom = int(math.Ceil(float64(link.RendezvousFrom) / bytes))
		m.Capacity = link.Capacity
	}
	return m, nil
}

// Hosts returns what a simulation needs of a cluster whose hosts are each as the machine of
// a profile: over a transport between ranks of one host, and over a link between those of
// different hosts, which HostOf tells. What a step costs more over that link, each message
// between hosts costs. All messages of a host share its link to the network, which carries
// what one long message takes beside what it takes of its receiver. If the link between hosts
// has no parts that processors do, half of an empty message is work of each end, and messages
// wait for their receivers.
func Hosts(p *model.Profile, transport string, between model.Link, wordBytes int, hostOf func(rank int) int) (*sim.Machine, error) {
	m, err := Machine(p, transport, wordBytes)
	if err != nil || len(between.OneWay) == 0 {
		return m, err
	}
	bytes, within := float64(wordBytes), m.Message
	step := max(0, between.Step.Value-m.Step)
	m.Message = func(from, to, words int, exchange bool) float64 {
		switch n := bytes * float64(words); {
		case hostOf(from) == hostOf(to):
			return within(from, to, words, exchange)
		case exchange:
			return step + between.Exchange.Time(n)
		default:
			return step + between.OneWay.Time(n)
		}
	}
	perByte := last(between.OneWay).PerByte.Value
	if m.Send != nil {
		send, receive := partsBetween(between, bytes)
		m.Send, m.Receive = onHosts(hostOf, m.Send, send), onHosts(hostOf, m.Receive, receive)
		m.RendezvousBetween = int(math.Ceil(float64(between.RendezvousFrom) / bytes))
		if len(between.Receive) > 0 {
			perByte = max(perByte-last(between.Receive).PerByte.Value, least*perByte)
		}
	}
	if perByte > 0 {
		m.Network = 1 / (perByte * bytes)
	}
	return m, nil
}

// least is the part of a long message that is its network's, if its receiver's work seems to
// be all of it.
const least = 0.01

func last(c model.Curve) model.Piece { return c[len(c)-1] }

// partsBetween returns the work that a message between hosts is for its ends.
func partsBetween(between model.Link, bytes float64) (send, receive func(words int) float64) {
	if len(between.Send) == 0 {
		half := between.OneWay.Time(0) / 2
		constant := func(int) float64 { return half }
		return constant, constant
	}
	return func(words int) float64 { return between.Send.Time(bytes * float64(words)) },
		func(words int) float64 { return between.Receive.Time(bytes * float64(words)) }
}

// onHosts returns the work of messages within a host and between two.
func onHosts(hostOf func(rank int) int, within func(from, to, words int) float64, between func(words int) float64) func(from, to, words int) float64 {
	return func(from, to, words int) float64 {
		if hostOf(from) == hostOf(to) {
			return within(from, to, words)
		}
		return between(words)
	}
}

// TextbookModel returns the prices by which a message of some bytes takes what it does on
// the machine: the line on which it is, in words.
func TextbookModel(p *model.Profile, link model.Link, wordBytes int, bytes float64) model.Model {
	tw := 0.0
	for _, piece := range link.OneWay {
		if float64(piece.From) <= bytes {
			tw = piece.PerByte.Value
		}
	}
	word := float64(wordBytes)
	m := model.Model{Ts: max(0, link.Step.Value+link.OneWay.Time(bytes)-tw*bytes), Tw: tw * word}
	if bytes > 0 {
		m.Top = p.Node.Combining(wordBytes, bytes) / bytes * word
	}
	return m
}

// A Call is a collective by an algorithm, as a program makes it.
type Call struct {
	Collective sched.Collective
	Algorithm  string // as for algo.New
	Ranks      int
	Bytes      int // of the vector, or of one part where the vector is one part per rank
	Transport  string
}

// elementBytes returns the length of the elements of a call: where it combines, that of
// a float32, which is what chorale bench reduces.
func (c Call) elementBytes() int {
	if c.Collective.Combines() {
		return 4
	}
	return 1
}

// Schedule returns what the call does: the root is rank 0, and a shift is by one rank.
func (c Call) Schedule() (*sched.Schedule, error) { return c.schedule(0) }

// schedule returns what the call does with a root.
func (c Call) schedule(root int) (*sched.Schedule, error) {
	bytes := c.Bytes
	switch {
	case c.Collective == sched.Shift:
		root = 1 % c.Ranks
	case !c.Collective.Rooted():
		root = 0
	}
	if (&sched.Schedule{Collective: c.Collective}).Partitioned() {
		bytes *= c.Ranks
	}
	return algo.New(c.Collective, c.Algorithm, c.Ranks, root, bytes)
}

// Simulate runs the call on the machine of a profile. Times are in microseconds.
func Simulate(p *model.Profile, c Call) (*sim.Result, error) { return simulate(p, c, []int{0}) }

// simulate runs calls one after another, each with a root.
func simulate(p *model.Profile, c Call, roots []int) (*sim.Result, error) {
	machine, err := Machine(p, c.Transport, c.elementBytes())
	if err != nil {
		return nil, err
	}
	full, err := topo.NewFull(c.Ranks)
	if err != nil {
		return nil, err
	}
	parts := make([]sim.Part, len(roots))
	for i, root := range roots {
		schedule, err := c.schedule(root)
		if err != nil {
			return nil, err
		}
		parts[i] = sim.Part{Schedule: schedule, Words: c.Bytes / c.elementBytes()}
	}
	return sim.Run(sim.Config{Topology: full, Machine: machine}, parts...)
}

// maxRoots bounds the calls whose mean is the time of a call in a loop.
const maxRoots = 16

// TimeInLoop returns the time of a call in a loop of them, in which a rank begins the next
// call as soon as it has ended one: what a benchmark measures. It is the mean of the later half
// of some calls. The root is the given one, or if that is below 0 another one in each call.
func TimeInLoop(p *model.Profile, c Call, root int) (µs float64, err error) {
	n := min(c.Ranks, maxRoots)
	roots := make([]int, 2*n)
	for i := range roots {
		if roots[i] = root; root < 0 {
			roots[i] = i % n
		}
	}
	half, err := simulate(p, c, roots[:n])
	if err != nil {
		return 0, err
	}
	whole, err := simulate(p, c, roots)
	if err != nil {
		return 0, err
	}
	return (whole.Time - half.Time) / float64(n), nil
}
