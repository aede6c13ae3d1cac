package main

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

// A simulation holds the flags that say what is simulated, and where. The verbs
// sim and draw have them in common.
type simulation struct {
	p               count
	algorithm       string
	root            int
	topology        string
	placement       string
	words           words
	ts, tw, th, top charge
	ports           choice
	switching       choice
	congestion      choice
	bandwidth       charge
	sync            bool
	memory          size
}

// simulationHelp is what the verbs say of these flags.
var simulationHelp = `OP is a collective, or matvec: the product of a matrix and a vector on a square
grid of ranks, one element on each. Every column broadcasts from its top rank,
then every row reduces to its leftmost one. A FILE holds a schedule, which is
checked first.

The m of -m is that of the textbook's formulas: the words of the whole vector for
bcast, reduce, allreduce, scan, exscan and shift, of one rank's part for scatter,
gather, allgather and reduce-scatter, of the part for one rank for alltoall, and
of each broadcast for matvec. Where an algorithm chooses by bytes, a word has 8.

With --algorithm best it is the one that takes the least time by the formulas of
chorale list, with the parameters that make it so, for this m, ts, tw, top and
these ports: of all, or as in best,among=binomial+scatter-allgather of some. The
formulas know no network, and operators commute.

The topology is one of
` + topologies() + `,
or a file: a list of links (0 1 on a line), or a graph in
DOT (.dot, .gv) or GraphML (.graphml).

The placement is identity, row-major, column-major, column-major:2x8, gray,
gray:4x8, random:SEED, or a list of the processors of rank 0, 1, 2, and so on.`

// topologies lists the words for them, in lines.
func topologies() string {
	var words []string
	for _, form := range topo.Forms() {
		words = append(words, form+",")
	}
	return strings.TrimSuffix(strings.Join(fill(words), "\n"), ",")
}

// defaultWords is how many words are simulated where nobody says.
const defaultWords = 1024

// addSimulation adds the flags to a verb.
func addSimulation(cmd *cobra.Command) *simulation {
	standard := model.Default()
	s := &simulation{
		ts: charge(standard.Ts), tw: charge(standard.Tw), th: charge(standard.Th), top: charge(standard.Top),
		ports:      choice{"single", []string{"single", "all"}},
		switching:  choice{"cut-through", []string{"cut-through", "store-and-forward"}},
		congestion: choice{"queue", []string{"queue", "share"}},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&s.p, "ranks", "n", "the number of ranks")
	flags.StringVar(&s.algorithm, "algorithm", "", "an algorithm, with parameters if need be, see chorale list; or best, for the cheapest (default: the one that a call would take)")
	flags.IntVar(&s.root, "root", 0, "the root, or the distance of a shift")
	flags.StringVar(&s.topology, "topology", "", "the network (default full, so that no two messages meet; for matvec the mesh)")
	flags.StringVar(&s.placement, "placement", "identity", "which processor each rank sits on")
	flags.VarP(&s.words, "words", "m", "the m of the formulas, in words (default 1024, or a little more where that makes equal pieces; for matvec 1)")
	flags.Var(&s.ts, "ts", "start-up time of a message")
	flags.Var(&s.tw, "tw", "time per word")
	flags.Var(&s.th, "th", "time per hop")
	flags.Var(&s.top, "top", "time per word combined")
	flags.Var(&s.ports, "ports", "what a node can do at once: one send and one receive, or one of each per link")
	flags.Var(&s.switching, "switching", "how a message passes the nodes between")
	flags.Var(&s.congestion, "congestion", "what messages do that want the same link: wait in a queue, or share its bandwidth")
	flags.Var(&s.bandwidth, "memory-bandwidth", "the words that a node's memory gives, and takes, per unit of time (default no limit)")
	flags.BoolVar(&s.sync, "sync", false, "all ranks begin each step together")
	flags.Var(&s.memory, "max-memory", "how much memory the simulation may take (default 4G)")
	return s
}

// A scenario is what is to be simulated, and what to compare it with.
type scenario struct {
	config sim.Config
	parts  []sim.Part

	title      string // what is played, in a line
	chosen     string // why this algorithm, if nobody named it
	collective string // or matvec
	algorithm  string
	p, root, m int
	placement  string // as it was asked for

	formula *formula // nil if nobody knows
	bound   model.Cost
}

// A formula is what the catalogue says.
type formula struct {
	text    string // in the letters of package algo
	words   int    // its n
	cost    model.Cost
	allPort bool // it is for nodes that use all their links at once
}

// scenario makes what the flags and the argument, OP or FILE, ask for. Its
// errors are ready to be returned by a verb: a schedule that is wrong is not a
// wrong call.
func (s *simulation) scenario(cmd *cobra.Command, arg string) (*scenario, error) {
	e := &scenario{root: s.root, p: int(s.p), m: int(s.words), placement: s.placement}
	err := s.compose(cmd, e, arg)
	if err == nil {
		err = s.network(e)
	}
	var fault *sched.Fault
	if err != nil && !errors.As(err, &fault) {
		err = callError{err}
	}
	return e, err
}

// compose says what is played.
func (s *simulation) compose(cmd *cobra.Command, e *scenario, arg string) error {
	switch {
	case s.p > mostRanks:
		return fmt.Errorf("-n %d: want %d ranks or fewer", s.p, mostRanks)
	case arg == matvec:
		return s.matvec(cmd, e)
	}
	c, file, err := collectiveOrFile(arg)
	switch {
	case err != nil && !exists(arg):
		return fmt.Errorf("%w, or matvec", err)
	case err != nil:
		return err
	case file == nil:
		return s.collective(cmd, e, c)
	}
	if err := noneOf(cmd, "ranks", "algorithm", "root"); err != nil {
		return err
	}
	if file.P > mostRanks {
		return fmt.Errorf("%s: %d ranks: want %d or fewer", arg, file.P, mostRanks)
	}
	if err := file.Check(); err != nil {
		return fmt.Errorf("%s: %w", arg, err)
	}
	return s.play(cmd, e, file)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// collective is a scenario of one call.
func (s *simulation) collective(cmd *cobra.Command, e *scenario, c sched.Collective) error {
	if s.p == 0 {
		return errNoRanks
	}
	m := int(s.words)
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
	played, err := algo.New(c, spec, e.p, s.root, bytes)
	if err != nil {
		return err
	}
	if err := s.play(cmd, e, played); err != nil {
		return err
	}
	e.formula, err = priced(played, bytes, e.m)
	return err
}

// model is what the network charges.
func (s *simulation) model() model.Model {
	return model.Model{Ts: float64(s.ts), Tw: float64(s.tw), Th: float64(s.th), Top: float64(s.top)}
}

// errNoRanks is for a collective.
var errNoRanks = fmt.Errorf("no number of ranks: want -n P")

// play is a scenario of one schedule.
func (s *simulation) play(cmd *cobra.Command, e *scenario, played *sched.Schedule) error {
	e.collective, e.algorithm = played.Collective.String(), played.Algorithm
	e.p, e.root = played.P, played.Root
	switch given := cmd.Flags().Changed("words"); {
	case played.Collective == sched.Barrier:
		if given && s.words > 0 {
			return fmt.Errorf("-m %d: a barrier moves no words", s.words)
		}
		e.m = 0
	case !given:
		e.m = fitting(played, defaultWords)
	}
	if err := checkWords(e.m, e.p); err != nil {
		return err
	}
	e.parts = []sim.Part{{Schedule: played, Words: e.m}}
	e.bound = algo.LowerBound(played.Collective, e.p, float64(whole(played.Collective, e.p, e.m)))
	if played.Collective == sched.Shift && e.root == 0 {
		e.bound = model.Cost{}
	}
	of := plural(e.p, "rank")
	switch {
	case played.Collective.Rooted():
		of += fmt.Sprintf(", root %d", e.root)
	case played.Collective == sched.Shift:
		of += fmt.Sprintf(", by %d", e.root)
	}
	e.title = fmt.Sprintf("%v %s: %s, m = %s", played.Collective, played.Algorithm, of, plural(e.m, "word"))
	return nil
}

// fitting returns the least m, of so many words or more, that a schedule cuts
// into equal pieces.
func fitting(s *sched.Schedule, words int) int {
	pieces := s.Blocks
	if s.Parted() {
		pieces /= s.P
	}
	pieces = max(pieces, 1)
	return (words + pieces - 1) / pieces * pieces
}

// priced returns what the catalogue says of a schedule that it has.
func priced(s *sched.Schedule, bytes, m int) (*formula, error) {
	n := whole(s.Collective, s.P, m)
	cost, err := algo.Price(s.Collective, s.Algorithm, s.P, s.Root, bytes, float64(n))
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

// network adds where the scenario takes place.
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
			return err
		}
	}
	e.title += fmt.Sprintf(", on %v", t)
	if s.placement != "identity" {
		e.title += ", placed " + s.placement
	}
	return nil
}

// simulate runs the scenario. Record asks for every message and link.
func (e *scenario) simulate(record bool) (*sim.Result, error) {
	c := e.config
	c.Record = record
	r, err := sim.Run(c, e.parts...)
	if err != nil {
		return nil, callError{err}
	}
	return r, nil
}

// wordBytes is the size of a word where bytes matter.
const wordBytes = 8

// mostWords is how many words all ranks may have together, so that nothing that
// is counted overflows.
const mostWords = 1 << 40

func checkWords(m, p int) error {
	if m > mostWords/p {
		return fmt.Errorf("-m %d: want %d or less with %s", m, mostWords/p, plural(p, "rank"))
	}
	return nil
}

// words is the value of a flag that is a number of words, as in 8, 64K or 4M.
type words int

func (w *words) String() string { return strconv.Itoa(int(*w)) }
func (w *words) Type() string   { return "WORDS" }

func (w *words) Set(text string) error {
	var n size
	if n.Set(text) != nil {
		return fmt.Errorf("want a number of words, as in 8, 64K or 4M")
	}
	*w = words(n)
	return nil
}

// charge is the value of a flag that is a price in the model's unit.
type charge float64

func (c *charge) String() string { return strconv.FormatFloat(float64(*c), 'g', -1, 64) }
func (c *charge) Type() string   { return "X" }

// mostCharge keeps sums of charges finite.
const mostCharge = 1e100

func (c *charge) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || x < 0 || x > mostCharge {
		return fmt.Errorf("want a number, 0 or more")
	}
	*c = charge(x)
	return nil
}
