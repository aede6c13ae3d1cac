// Package sim says how long a schedule takes on a network, and why.
//
// Run lays schedules on a topology and lets virtual time pass: a discrete-event
// simulation that holds no clock, starts no goroutine, and gives the same
// answer to the same question. Its rules:
//
//   - A rank begins a step when its own previous step is done. With Sync it
//     waits until nothing else is to happen before somebody begins one.
//   - A message is ready when both its ends have come to it. With single ports
//     it then lines up for two: its sender's way out, and its receiver's way in.
//     When it has both it lines up for every link of its route, in its
//     direction, and when it is first in all these lines it starts. It keeps
//     what it has until it has arrived. Lines are kept in the order of coming;
//     of those who come at the same time, the one that its sender's step lists
//     first goes first, and of equals that of the lower rank. A message that
//     takes no time waits for nothing.
//   - A message of m words over h links takes Ts + h·Th + m·Tw; by store and
//     forward, Ts + h·(Th + m·Tw).
//   - When a rank's messages of a step are done it combines what has come, for
//     m·Top each; what its copies combine comes before the step's messages.
//     Copies take no time else.
//   - Times that differ by rounding alone are the same time.
//
// The model is that of Grama, Gupta, Karypis and Kumar, Introduction to
// Parallel Computing (2nd ed.), 2.5 and 4.
package sim

import (
	"fmt"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/topo"
)

// A Config says where schedules are simulated. Topology is required; the zero
// value of everything else has a meaning.
type Config struct {
	Topology  topo.Topology
	Placement topo.Placement // the processor of each rank; nil for its own number
	Model     model.Model    // in any one unit of time

	AllPort         bool // a node uses all its links at once, not one port out and one in
	StoreAndForward bool // each link of a route carries the whole message before the next one does
	Share           bool // messages share a link's bandwidth, max-min fairly, rather than wait for each other
	Sync            bool // all ranks begin each step together

	// MemoryBandwidth is how many words a node's memory gives in a unit of time
	// to all that it sends together, and takes from all that it receives; 0 for
	// no limit. Messages share it max-min fairly.
	MemoryBandwidth float64

	// Record asks for Result.Log and Result.Links.
	Record bool

	// MemoryLimit is how many bytes of this process's memory Run may take, by
	// its own estimate; 0 means 4 GiB.
	MemoryLimit int64
}

// A Part is a schedule, who plays it, and how much it moves.
type Part struct {
	Schedule *sched.Schedule

	// Ranks are the ranks of the whole that play it: rank i of the schedule is
	// Ranks[i]. Nil means all of them in order.
	Ranks []int

	// Words is the m of the textbook's formulas: the words of the whole vector
	// where every rank holds all of it, and of one rank's part where the vector
	// is one part per rank. It is cut into blocks as evenly as whole words can
	// be.
	Words int
}

// Run simulates schedules, one or several. A rank that has part in several
// plays them in the order given; parts that share no rank run at the same time.
//
// The schedules must be right: see [sched.Schedule.Check]. Of one whose
// programs do not fit together Run says so. An error is one line.
//
// Time is linear in the number of links that messages cross, but with Share or a
// MemoryBandwidth each start and end costs time in proportion to the messages
// under way. Memory is about 50 bytes per message, and per step of a rank.
// What would take more than the limit is refused with a [*TooLargeError].
func Run(c Config, parts ...Part) (*Result, error) {
	ranks, err := c.validate(parts)
	if err != nil {
		return nil, err
	}
	expected := survey(parts)
	if err := c.affordable(ranks, expected, c.flows()); err != nil {
		return nil, err
	}
	s, err := newScore(ranks, parts, expected)
	if err != nil {
		return nil, err
	}
	n := newNetwork(c, ranks)
	r, err := lineUp(c, s, n)
	if err != nil {
		return nil, err
	}
	times := r.times
	if r.contended || c.flows() {
		counted := estimate{float64(len(s.steps)), float64(len(s.messages))}
		if err := c.affordable(ranks, counted, true); err != nil {
			return nil, err
		}
		times = newQueue(c, s, n).run()
	}
	return r.result(times), nil
}

// flows reports whether messages slow each other down.
func (c Config) flows() bool { return c.Share || c.MemoryBandwidth > 0 }

// mostCharge and its inverse bound what is charged, so that sums of charges and
// quotients are numbers.
const mostCharge = 1e100

// validate reports what is wrong with the call, and returns the number of
// ranks.
func (c Config) validate(parts []Part) (ranks int, err error) {
	for _, charge := range []struct {
		name  string
		value float64
	}{{"ts", c.Model.Ts}, {"tw", c.Model.Tw}, {"th", c.Model.Th}, {"top", c.Model.Top}, {"memory bandwidth", c.MemoryBandwidth}} {
		if !(charge.value >= 0) {
			return 0, fmt.Errorf("%s %v: want a number, 0 or more", charge.name, charge.value)
		}
		if x := charge.value; x > mostCharge || x > 0 && x < 1/mostCharge {
			return 0, fmt.Errorf("%s %v: want 0, or a number from %v to %v", charge.name, x, 1/mostCharge, mostCharge)
		}
	}
	switch {
	case c.Topology == nil:
		return 0, fmt.Errorf("no topology")
	case len(parts) == 0:
		return 0, fmt.Errorf("no schedule")
	}
	for _, part := range parts {
		n, err := part.validate()
		if err != nil {
			return 0, err
		}
		ranks = max(ranks, n)
	}
	return ranks, c.seat(ranks)
}

// validate returns the number of ranks that the whole must have for this part.
func (p Part) validate() (ranks int, err error) {
	s := p.Schedule
	if s == nil || s.Make == nil || s.P < 1 {
		return 0, fmt.Errorf("no schedule")
	}
	pieces := s.Blocks
	if s.Partitioned() {
		pieces /= s.P
	}
	switch {
	case p.Words < 0:
		return 0, fmt.Errorf("m %d: want a number of words, 0 or more", p.Words)
	case pieces > 1 && p.Words < pieces:
		return 0, fmt.Errorf("m %d: %v %s on %d ranks cuts it in %d pieces: want m %d or more", p.Words, s.Collective, s.Algorithm, s.P, pieces, pieces)
	case p.Ranks == nil:
		return s.P, nil
	case len(p.Ranks) != s.P:
		return 0, fmt.Errorf("%d ranks for a schedule of %d", len(p.Ranks), s.P)
	}
	seen := make(map[int]bool, s.P)
	for _, r := range p.Ranks {
		if r < 0 || seen[r] {
			return 0, fmt.Errorf("rank %d in a part: want ranks from 0 on, each once", r)
		}
		seen[r] = true
		ranks = max(ranks, r+1)
	}
	return ranks, nil
}

// seat checks that every rank has a processor of its own.
func (c Config) seat(ranks int) error {
	places := c.Topology.Processors()
	if ranks > places {
		return fmt.Errorf("%d ranks on %v, which has %d processors: want a larger one", ranks, c.Topology, places)
	}
	if c.Placement == nil {
		return nil
	}
	if len(c.Placement) < ranks {
		return fmt.Errorf("a placement of %d ranks: want %d", len(c.Placement), ranks)
	}
	taken := make([]bool, places)
	for r, at := range c.Placement[:ranks] {
		if at < 0 || at >= places || taken[at] {
			return fmt.Errorf("rank %d on processor %d: want one from 0 to %d, each once", r, at, places-1)
		}
		taken[at] = true
	}
	return nil
}
