package command

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A simulation holds the flags that describe a call and a network. The verbs sim and
// draw share them.
type simulation struct {
	combination
	lists     combinations
	root      int
	placement string
	memory    size
	networkRules
	machine machineFlags // of sim
}

// A combination is one value of each flag that takes a list, or 0 or "" for its default.
type combination struct {
	p         int
	words     int
	topology  string
	algorithm string
}

// combinations are the flags that take lists.
type combinations struct {
	ranks      list[int]
	words      list[int]
	topologies list[string]
	algorithms list[string]
}

// each returns a simulation for each combination of what the lists name.
func (s *simulation) each() (all []*simulation) {
	for _, p := range s.lists.ranks.orNone() {
		for _, m := range s.lists.words.orNone() {
			for _, topology := range s.lists.topologies.orNone() {
				for _, algorithm := range s.lists.algorithms.orNone() {
					one := *s
					one.combination = combination{p, m, topology, algorithm}
					if p == 0 {
						one.p, _ = topo.ProcessorsOf(topology)
					}
					all = append(all, &one)
				}
			}
		}
	}
	return all
}

// networkRules are the flags of the network's costs and rules.
type networkRules struct {
	ts, tw, th, top cost
	between         betweenCosts
	ports           choice
	switching       choice
	congestion      choice
	bandwidth       cost
	sync            bool
}

// simulationHelp is the help text for these flags.
var simulationHelp = `OP is a collective, or matvec: the product of a matrix and a vector on a square
grid of ranks, one element on each. Every column broadcasts from its top rank,
then every row reduces to its leftmost one. A FILE holds a schedule, which is
checked first.

The m of -m is that of the textbook's formulas: the words of the whole vector for
bcast, reduce, allreduce, scan, exscan and shift, of one rank's part for scatter,
gather, allgather and reduce-scatter, of the part for one rank for alltoall, and
of each broadcast for matvec. Where an algorithm depends on bytes, a word has 8.

--algorithm best selects the algorithm and the parameters that take the least time
by the formulas of chorale list, for this m, ts, tw, top and these ports: from all,
or from a few, as in best,among=binomial+scatter-allgather. The formulas ignore the
network, and assume that operators commute.

The topology is one of
` + topologies() + `,
or a file: a list of links (0 1 on a line), or a graph in
DOT (.dot, .gv) or GraphML (.graphml).

On hosts:4x8, which are four hosts of eight ranks, a message between hosts takes
--ts-between and --tw-between. So does hosts:3+2x4, by block: one host of three
ranks, and two of four; hosts:4 shares the ranks evenly. All ranks of a host share
one link to the network, or as many as in hosts:4x8,links=2. If -n is left out, the
sizes of a topology say how many ranks there are.

The placement is identity, row-major, column-major, column-major:2x8, gray,
gray:4x8, random:SEED, or a list of the processors of rank 0, 1, 2, and so on.`

// topologies returns the forms of --topology, in lines.
func topologies() string {
	var words []string
	for _, form := range topo.Forms() {
		words = append(words, form+",")
	}
	return strings.TrimSuffix(strings.Join(fill(words), "\n"), ",")
}

// defaultWords is the default of -m.
const defaultWords = 1024

// addSimulation adds the flags to a verb.
func addSimulation(cmd *cobra.Command) *simulation {
	standard := model.Default()
	s := &simulation{
		lists: combinations{numbersOfRanks(), sizes("words"), topologyList(), algorithmList()},
		networkRules: networkRules{
			ts: cost(standard.Ts), tw: cost(standard.Tw), th: cost(standard.Th), top: cost(standard.Top),
			ports:      choice{"single", []string{"single", "all"}},
			switching:  choice{"cut-through", []string{"cut-through", "store-and-forward"}},
			congestion: choice{"queue", []string{"queue", "share"}},
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&s.lists.ranks, "ranks", "n", "the number of ranks")
	flags.Var(&s.lists.algorithms, "algorithm", "an algorithm, with parameters if need be, see chorale list; or best, for the cheapest (default: the one that a call would select)")
	flags.IntVar(&s.root, "root", 0, "the root, or the distance of a shift")
	flags.Var(&s.lists.topologies, "topology", "the network, as in ring, torus or torus:4x8 (default full, so that no two messages share a link; for matvec the mesh)")
	flags.StringVar(&s.placement, "placement", "identity", "the processor of each rank")
	flags.VarP(&s.lists.words, "words", "m", "the m of the formulas, in words (default 1024, or a little more where that makes equal pieces; for matvec 1)")
	flags.Var(&s.ts, "ts", "start-up time of a message")
	flags.Var(&s.tw, "tw", "time per word")
	flags.Var(&s.th, "th", "time per hop")
	flags.Var(&s.top, "top", "time per word combined")
	flags.Var(&s.between.ts, "ts-between", "start-up time of a message between hosts, on a topology of hosts (default that of --ts)")
	flags.Var(&s.between.tw, "tw-between", "time per word between hosts (default that of --tw)")
	flags.Var(&s.ports, "ports", "the transfers that a node can do at once: single (one send and one receive) or all (one of each per link)")
	flags.Var(&s.switching, "switching", "how a message crosses intermediate nodes: cut-through or store-and-forward")
	flags.Var(&s.congestion, "congestion", "how messages use the same link: queue (one after another) or share (its bandwidth)")
	flags.Var(&s.bandwidth, "memory-bandwidth", "the words that a node's memory can read, and write, per unit of time (default no limit)")
	flags.BoolVar(&s.sync, "sync", false, "all ranks begin each step together")
	addMemory(cmd, &s.memory)
	return s
}

// A scenario is a simulation that can be run, and the formula to compare it with.
type scenario struct {
	config sim.Config
	parts  []sim.Part

	title      string // in a line
	chosen     string // the reason for the algorithm; "" if it was named
	collective string // or matvec
	algorithm  string
	p, root, m int
	placement  string // as on the command line

	transport string // of the machine that is simulated; "" for the textbook's
	quiet     bool   // it was, when it was measured
	twoPrices bool   // messages between hosts have prices of their own

	formula *formula // nil if it is unknown
	bound   model.Cost
}

// A formula is the cost of an algorithm by the catalog.
type formula struct {
	text    string // in the symbols of package algo
	words   int    // its n
	cost    model.Cost
	allPort bool // it is for nodes that use all their links at once
}

// scenario returns the scenario of the flags and the argument, OP or FILE. Its errors
// are ready to be returned by a verb: a wrong schedule is not a wrong call.
func (s *simulation) scenario(cmd *cobra.Command, arg string) (*scenario, error) {
	e := &scenario{root: s.root, p: s.p, m: s.words, placement: s.placement}
	err := s.compose(cmd, e, arg)
	if err == nil {
		err = s.network(e)
	}
	if err == nil && s.machine.given(cmd) {
		err = s.machine.apply(cmd, e)
	}
	if e.twoPrices {
		e.formula = nil // it has one price for all messages
		if err == nil && s.isBest() {
			err = fmt.Errorf("--algorithm best and messages between hosts at another price: the formulas have one for all: want --best 1, which simulates")
		}
	}
	var fault *sched.Fault
	if err != nil && !errors.As(err, &fault) {
		err = callError{err}
	}
	return e, err
}

// compose sets the schedules of a scenario.
func (s *simulation) compose(cmd *cobra.Command, e *scenario, arg string) error {
	switch {
	case arg == matvec:
		return s.matvec(cmd, e)
	}
	c, file, err := collectiveOrFile(arg, s.memory)
	switch {
	case err != nil && !exists(arg):
		if algo.IsFile(arg) {
			return err
		}
		return fmt.Errorf("%w, or matvec", err)
	case err != nil:
		return err
	case file == nil:
		return s.collective(cmd, e, c)
	}
	if err := noneOf(cmd, "ranks", "algorithm", "root"); err != nil {
		return err
	}
	if err := file.CheckWithin(int64(s.memory)); err != nil {
		return fmt.Errorf("%s: %w", arg, err)
	}
	return s.schedule(cmd, e, file)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// collective sets a scenario of one call.
func (s *simulation) collective(cmd *cobra.Command, e *scenario, c sched.Collective) error {
	if s.p == 0 {
		return s.noRanks()
	}
	m := s.words
	if !cmd.Flags().Changed("words") && c != sched.Barrier {
		m = defaultWords
	}
	if err := checkWords(m, e.p); err != nil {
		return err
	}
	spec, why, err := s.choose(cmd, c, e.p, m)
	if err != nil {
		return err
	}
	e.chosen = why
	bytes := whole(c, e.p, wordBytes*m)
	schedule, err := newSchedule(c, spec, e.p, s.root, bytes, s.memory)
	if err != nil {
		return err
	}
	if err := s.schedule(cmd, e, schedule); err != nil {
		return err
	}
	e.formula, err = priced(schedule, spec, bytes, e.m)
	if errors.Is(err, algo.ErrNoFormula) {
		return nil
	}
	return err
}

// model returns the costs of the network.
func (s *simulation) model() model.Model {
	return model.Model{Ts: float64(s.ts), Tw: float64(s.tw), Th: float64(s.th), Top: float64(s.top)}
}

// errNoRanks is the error for a collective without -n.
var errNoRanks = fmt.Errorf("no number of ranks: want -n P")

// noRanks returns the error for a collective without -n. The sizes of a topology would say
// how many ranks there are, unless they are wrong.
func (s *simulation) noRanks() error {
	var wrong *topo.SyntaxError
	if strings.Contains(s.topology, ":") {
		if _, err := topo.Parse(s.topology, 1); errors.As(err, &wrong) {
			return err
		}
	}
	return errNoRanks
}

// schedule sets a scenario of one schedule.
func (s *simulation) schedule(cmd *cobra.Command, e *scenario, schedule *sched.Schedule) error {
	e.collective, e.algorithm = schedule.Collective.String(), schedule.Algorithm
	e.p, e.root = schedule.P, schedule.Root
	switch given := cmd.Flags().Changed("words"); {
	case schedule.Collective == sched.Barrier:
		if given && s.words > 0 {
			return fmt.Errorf("-m %d: a barrier moves no words", s.words)
		}
		e.m = 0
	case !given:
		e.m = fitting(schedule, defaultWords)
	}
	if err := checkWords(e.m, e.p); err != nil {
		return err
	}
	e.parts = []sim.Part{{Schedule: schedule, Words: e.m}}
	e.bound = algo.LowerBound(schedule.Collective, e.p, float64(whole(schedule.Collective, e.p, e.m)))
	if schedule.Collective == sched.Shift && e.root == 0 {
		e.bound = model.Cost{}
	}
	of := plural(e.p, "rank")
	switch {
	case schedule.Collective.Rooted():
		of += fmt.Sprintf(", root %d", e.root)
	case schedule.Collective == sched.Shift:
		of += fmt.Sprintf(", by %d", e.root)
	}
	e.title = fmt.Sprintf("%v %s: %s, m = %s", schedule.Collective, schedule.Algorithm, of, plural(e.m, "word"))
	return nil
}

// fitting returns the least m, of words or more, that a schedule cuts into equal
// pieces.
func fitting(s *sched.Schedule, words int) int {
	pieces := s.Blocks
	if s.Partitioned() {
		pieces /= s.P
	}
	pieces = max(pieces, 1)
	return (words + pieces - 1) / pieces * pieces
}

// priced returns the catalog's formula of the schedule that spec names.
func priced(s *sched.Schedule, spec string, bytes, m int) (*formula, error) {
	n := whole(s.Collective, s.P, m)
	cost, err := algo.Price(s.Collective, spec, s.P, s.Root, bytes, float64(n))
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(s.Algorithm, ",")
	a, err := algo.Lookup(s.Collective, name)
	if err != nil {
		return nil, err
	}
	return &formula{text: a.Formula, words: n, cost: cost, allPort: a.Restrictions.AllPort}, nil
}

// network sets the network of a scenario.
func (s *simulation) network(e *scenario) error {
	spec := s.topology
	if spec == "" {
		spec = "full"
		if e.collective == matvec {
			n := e.parts[0].Schedule.P
			spec = fmt.Sprintf("mesh:%dx%d", n, n)
		}
	}
	t, err := parseTopology(spec, e.p)
	if err != nil {
		if s.topology == "" {
			err = fmt.Errorf("%w; or another --topology, such as star or hypercube", err)
		}
		return err
	}
	e.config = sim.Config{
		Topology:        t,
		Model:           s.model(),
		AllPort:         s.ports.value == "all",
		StoreAndForward: s.switching.value == "store-and-forward",
		Share:           s.congestion.value == "share",
		Sync:            s.sync,
		MemoryBandwidth: float64(s.bandwidth),
		MemoryLimit:     int64(s.memory),
	}
	if s.placement != "identity" {
		if e.config.Placement, err = topo.ParsePlacement(s.placement, t); err != nil {
			return withNearest(err)
		}
	}
	if err := s.betweenHosts(e); err != nil {
		return err
	}
	e.title += fmt.Sprintf(", on %v", t)
	if s.placement != "identity" {
		e.title += ", placed " + s.placement
	}
	return nil
}

// simulate runs the scenario. With record, the result has every message and link.
func (e *scenario) simulate(record bool) (*sim.Result, error) {
	c := e.config
	c.Record = record
	r, err := sim.Run(c, e.parts...)
	if err != nil {
		return nil, callError{err}
	}
	return r, nil
}

// wordBytes is the size of a word in bytes, where an algorithm depends on them.
const wordBytes = 8

// maxWords bounds the words of all ranks together, so that no count overflows.
const maxWords = 1 << 40

func checkWords(m, p int) error {
	if m > maxWords/p {
		return fmt.Errorf("-m %d: want %d or less with %s", m, maxWords/p, plural(p, "rank"))
	}
	return nil
}

// cost is the value of a flag: a cost in the model's unit.
type cost float64

func (c *cost) String() string { return strconv.FormatFloat(float64(*c), 'g', -1, 64) }
func (c *cost) Type() string   { return "X" }

// maxCost keeps sums of costs finite.
const maxCost = 1e100

func (c *cost) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || x < 0 || x > maxCost {
		return fmt.Errorf("want a number, 0 or more")
	}
	*c = cost(x)
	return nil
}
