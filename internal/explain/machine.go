package explain

import (
	"fmt"
	"math"
	"sort"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A Call is a collective by an algorithm.
type Call struct {
	Collective sched.Collective
	Algorithm  string // as for algo.New
	Ranks      int
	Root       int // or the distance of a shift
	Bytes      int // of the vector, or of one part where the vector is one part per rank
}

// Schedule returns what the call does.
func (c Call) Schedule() (*sched.Schedule, error) {
	return algo.New(c.Collective, c.Algorithm, c.Ranks, c.Root, c.parts()*c.Bytes)
}

// parts returns the number of parts of the vector.
func (c Call) parts() int {
	if s := (sched.Schedule{Collective: c.Collective}); s.Partitioned() {
		return c.Ranks
	}
	return 1
}

// ElementBytes returns the length of the elements of the call: where it combines, that of a
// float32 if its bytes are a multiple of that.
func (c Call) ElementBytes() int {
	if c.Collective.Combines() && c.Bytes%combined == 0 {
		return combined
	}
	return 1
}

// combined is the length of the elements that a call combines.
const combined = 4

// A Machine is where calls are simulated.
type Machine struct {
	Profile    *model.Profile
	Transport  string
	Processors int    // that ranks share; 0 for as many as the profile says
	Hosts      *Hosts // on which the ranks are; nil for one
}

// Hosts are several, each of which is the machine of the profile.
type Hosts struct {
	Sizes   []int      // the ranks of each
	Places  []int      // of the ranks, where those of one host follow those of the one before
	Between model.Link // messages between hosts
}

// Link returns what messages cost: on several hosts, those between them.
func (m *Machine) Link() (model.Link, error) {
	if m.Hosts != nil {
		return m.Hosts.Between, nil
	}
	return m.Profile.Link(m.Transport)
}

// MaxMessages is how many messages a call may have that is simulated.
const MaxMessages = 1 << 17

// maxRanks is how many ranks a call may have that is simulated.
const maxRanks = 1 << 14

// A TooLargeError says that a call has too many ranks, or too many messages.
type TooLargeError struct {
	Ranks    int
	Messages float64 // 0 where the ranks alone are too many
}

func (e *TooLargeError) Error() string {
	if e.Messages == 0 {
		return fmt.Sprintf("%d ranks are too many: want %d or fewer, or chorale sim, which takes more", e.Ranks, maxRanks)
	}
	return fmt.Sprintf("about %.3g messages are too many: want %d or fewer, or chorale sim, which takes more", e.Messages, MaxMessages)
}

// Simulate returns the time of a call.
func (m *Machine) Simulate(c Call) (float64, error) {
	s, err := c.Schedule()
	if err != nil {
		return 0, err
	}
	e, err := m.experiment(c, s)
	if err != nil {
		return 0, err
	}
	return e.run()
}

// An experiment is a simulation that is about to run.
type experiment struct {
	config  sim.Config
	machine sim.Machine
	part    sim.Part
}

// experiment prepares the simulation of a call, whose schedule is given.
func (m *Machine) experiment(c Call, s *sched.Schedule) (e experiment, err error) {
	if c.Ranks > maxRanks {
		return e, &TooLargeError{Ranks: c.Ranks}
	}
	if n := s.Size().Messages; n > MaxMessages {
		return e, &TooLargeError{c.Ranks, n}
	}
	config, err := m.network(c.Ranks)
	if err != nil {
		return e, err
	}
	machine, words, err := m.machine(c, s, config)
	if err != nil {
		return e, err
	}
	if m.Processors > 0 {
		machine.Processors = m.Processors
	}
	return experiment{config, *machine, sim.Part{Schedule: s, Words: words}}, nil
}

// network returns a simulation on the hosts of the machine.
func (m *Machine) network(ranks int) (c sim.Config, err error) {
	if m.Hosts == nil {
		c.Topology, err = topo.NewFull(ranks)
		return c, err
	}
	c.Topology, err = topo.NewHosts(1, m.Hosts.Sizes...)
	c.Placement = m.Hosts.Places
	return c, err
}

// on returns the machine of the profile, or several of them, for words of some bytes.
func (m *Machine) on(network sim.Config, wordBytes int) (*sim.Machine, error) {
	hosts, ok := network.Topology.(*topo.Hosts)
	if !ok {
		return predict.Machine(m.Profile, m.Transport, wordBytes)
	}
	return predict.Hosts(m.Profile, m.Transport, m.Hosts.Between, wordBytes, func(rank int) int { return hosts.Host(network.Placement[rank]) })
}

// machine returns the machine that simulates a call, and the number of words that it moves.
// A word is an element. A vector that has fewer elements than the schedule cuts pieces has a
// word for each piece, which stands for its share of the bytes.
func (m *Machine) machine(c Call, s *sched.Schedule, network sim.Config) (machine *sim.Machine, words int, err error) {
	element := c.ElementBytes()
	words = c.Bytes / element
	pieces := s.Blocks / c.parts()
	if pieces <= 1 || words >= pieces {
		machine, err = m.on(network, element)
		return machine, words, err
	}
	if machine, err = m.on(network, 1); err != nil {
		return nil, 0, err
	}
	share := func(words int) float64 { return math.Round(float64(words) * float64(c.Bytes) / float64(pieces)) }
	message := machine.Message
	machine.Message = func(from, to, words int, exchange bool) float64 {
		return message(from, to, int(share(words)), exchange)
	}
	machine.Combine = func(words int) float64 { return m.Profile.Node.Combining(combined, share(words)) }
	copied := machine.Copy
	machine.Copy = func(words int) float64 { return copied(int(share(words))) }
	if send, receive := machine.Send, machine.Receive; send != nil {
		machine.Send = func(from, to, words int) float64 { return send(from, to, int(share(words))) }
		machine.Receive = func(from, to, words int) float64 { return receive(from, to, int(share(words))) }
		for _, from := range []*int{&machine.RendezvousFrom, &machine.RendezvousBetween} {
			bytes := *from
			*from = sort.Search(pieces+1, func(words int) bool { return int(share(words)) >= bytes })
		}
	}
	machine.Memory = 0 // so few bytes fill neither it
	if machine.Network > 0 {
		machine.Network = boundless // nor the network
	}
	return machine, pieces, nil
}

// run simulates.
func (e *experiment) run() (float64, error) {
	machine := e.machine
	e.config.Machine = &machine
	r, err := sim.Run(e.config, e.part)
	if err != nil {
		return 0, err
	}
	return r.Time, nil
}
