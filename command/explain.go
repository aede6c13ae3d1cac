package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/explain"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

func newExplain() *cobra.Command {
	var (
		x         = explainer{transport: transportChoice("mpi")}
		available count
		ranks     count
		bytes     size
		format    *choice
	)
	cmd := &cobra.Command{
		Use:   "explain OP -n P -m SIZE",
		Short: "Say what a call runs, why, and where its time goes",
		Long: `Say which algorithm a call runs on this machine and why, what it should take by the
profile that chorale tune has made, where that time goes, and how far it is from the lower
bound of any algorithm and from the next best one. With --profile, the machine is that of
FILE: its processors count, and its selections, as in a job with --machine FILE. SIZE is in
bytes: of the vector, or of each rank's part of it where it is one part per rank (scatter,
gather, allgather, reduce-scatter, alltoall).

The time is simulated, and so are its parts: again and again without one more effect, and
the part of an effect is what the time falls by. The parts add up to the time:
  start-ups        the longest chain of messages, if they were empty
  bytes            what their length adds
  calls and steps  what these cost a rank beside its messages
  combining        what combining adds to that chain
  copying          what copies within a rank add to it
  ports            messages that wait for another one at the same rank
  processors       ranks that wait for another one on the same processor
  network          messages that share the link between their host and the others
  memory           messages that share the memory
  switching        processors that turn to another rank
  other            what remains without all of these

The other algorithms are those of chorale list with the standard values of their
parameters. A table has the sizes, of 8 bytes to 4 MiB, and the numbers of ranks, up to 64,
from which a call runs another one, or another one is the fastest: by a simulation at every
power of two, and by more than 1 %.

Without a profile there are the choice, the formula and the bound, in start-ups (ts) and
bytes (tw), and no times. With --algorithm, that one is explained.

With --hosts, each host is the machine of the profile, and messages between hosts take what
chorale tune --hosts has measured, or if it has not, what TCP takes within a host. Ranks of
one host exchange messages over shared memory, unless --transport says otherwise.

With --measure, the call is made on this machine, and so is the next best one, as by
chorale bench. With --plot, a chart has the times against the size and against the number
of ranks.

chorale run --profile names the calls of a program so that they can be pasted here.

--format json prints one value, of the shape that docs/json.md gives. docs/explain.md
explains an output.`,
		Example: `  chorale explain allreduce -n 4 -m 1K --transport shm
  chorale explain bcast -n 8 -m 1M --transport inproc --algorithm binomial
  chorale explain allreduce -n 2 -m 64K --measure
  chorale explain alltoall -n 8 -m 1K --profile machine.json --plot alltoall.svg`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&ranks, "ranks", "n", "the number of ranks")
	flags.VarP(&bytes, "bytes", "m", "the size of the vector, or of each rank's part of it, as in 64K")
	flags.Var(&x.transport, "transport", "the transport: "+oneOfText(x.transport.candidates))
	flags.StringVar(&x.algorithm, "algorithm", "", "an algorithm, with parameters if need be, see chorale list (default: the one that a call would select)")
	flags.IntVar(&x.root, "root", 0, "the root, or the distance of a shift (of a shift default 1)")
	flags.BoolVar(&x.constraints.Ordered, "ordered", false, "the operation does not commute")
	flags.BoolVar(&x.constraints.Uneven, "uneven", false, "the ranks' parts differ in length, and SIZE is the mean")
	flags.StringVar(&x.hosts, "hosts", "", "the ranks of each host, as in 4+4, or cyclic:2 (default: one host)")
	flags.Var(&available, "processors", "the number of processors that the ranks share (default: this machine's, and of the simulation and with --profile the profile's)")
	addProfile(cmd, &x.profile)
	flags.BoolVar(&x.measure, "measure", false, "also measure the call, and the next best one")
	flags.StringVar(&x.plot, "plot", "", "also draw the times, into an SVG `FILE`")
	format = addFormat(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		c, err := sched.ParseCollective(args[0])
		if err != nil {
			return callError{whyNoCollective(args[0], err)}
		}
		x.collective, x.ranks, x.bytes, x.processors = c, int(ranks), int(bytes), int(available)
		if c == sched.Shift && x.ranks > 0 && !flags.Changed("root") {
			x.root = 1 % x.ranks
		}
		if err := x.validate(flags.Changed("bytes")); err != nil {
			return callError{err}
		}
		e, err := x.explain(ctx, flags.Changed("profile"))
		if err != nil {
			return err
		}
		if x.plot != "" {
			if err := x.drawExplained(e); err != nil {
				return err
			}
		}
		if format.value == "json" {
			return printJSON(cmd.OutOrStdout(), e)
		}
		return e.print(cmd.OutOrStdout())
	}
	return cmd
}

// whyNoCollective returns the error for an argument that is no collective: a pattern or a
// form of chorale bench gets a hint.
func whyNoCollective(arg string, err error) error {
	cell, parsed := parseCell(arg)
	switch {
	case parsed != nil:
		return err
	case cell.Pattern != "":
		return fmt.Errorf("%s: want a collective: messages between two ranks have no algorithm; chorale bench %s measures them", arg, arg)
	}
	return fmt.Errorf("%s: want %v alone: its forms run the same schedules, but for --uneven parts and --ordered operations", arg, cell.Collective)
}

// An explainer holds the flags.
type explainer struct {
	collective  sched.Collective
	ranks       int
	bytes       int
	root        int
	algorithm   string // "" for the one that is selected
	transport   choice
	processors  int // 0 for this machine's
	hosts       string
	constraints explain.Constraints
	profile     string
	measure     bool
	plot        string

	sizes, numbers []explain.Sample // what --plot draws
}

// validate returns what is wrong with the call. Sized tells whether it has a size.
func (x *explainer) validate(sized bool) error {
	parts := (&sched.Schedule{Collective: x.collective}).Partitioned()
	switch {
	case x.ranks == 0:
		return errNoRanks
	case x.collective == sched.Barrier && sized && x.bytes > 0:
		return fmt.Errorf("-m %s: a barrier moves no bytes", algo.FormatBytes(x.bytes))
	case x.collective != sched.Barrier && !sized:
		return fmt.Errorf("no size: want -m SIZE, as in 64K")
	case x.constraints.Uneven && !parts:
		return fmt.Errorf("--uneven and %v: want a collective with a part for each rank", x.collective)
	case x.constraints.Ordered && !x.collective.Combines():
		return fmt.Errorf("--ordered and %v: want a collective that combines", x.collective)
	case x.measure && x.hosts != "":
		return fmt.Errorf("--measure and --hosts: want chorale bench --hosts with the names of the hosts")
	case x.measure && x.transport.value == "mpi":
		return fmt.Errorf("--measure and --transport mpi: want chorale bench --transport mpi")
	case x.measure && x.processors > 0:
		return fmt.Errorf("--measure and --processors %d: what is measured has this machine's", x.processors)
	case x.measure && x.collective == sched.Shift && x.root != 1%x.ranks:
		return fmt.Errorf("--measure and a shift by %d: chorale bench measures shifts by 1: want --root 1", x.root)
	case x.measure && (x.constraints.Ordered || x.constraints.Uneven):
		return fmt.Errorf("--measure and --ordered or --uneven: want chorale bench %v:uneven or %v:func", x.collective, x.collective)
	}
	if x.hosts != "" {
		if _, _, err := algo.PlaceHosts(x.hosts, x.ranks); err != nil {
			return fmt.Errorf("--hosts %w", err)
		}
	}
	if err := plottable(x.plot, []int{1}); err != nil {
		return err
	}
	return checkBytes(x.bytes, x.ranks)
}

// query is what the selection depends on.
func (x *explainer) query() selection.Query {
	return selection.Query{
		Collective: x.collective, Ranks: x.ranks, Bytes: x.bytes, Ordered: x.constraints.Ordered, Uneven: x.constraints.Uneven,
		Transport: x.transport.value, Processors: x.processors, Hosts: x.hosts,
	}
}

// explain explains the call. Named tells whether the profile is.
func (x *explainer) explain(ctx context.Context, named bool) (*explanation, error) {
	profile, why, err := x.readProfile(named)
	if err != nil {
		return nil, callError{err}
	}
	of := profile
	if !named { // jobs may take the rules of another one
		of = nil
	}
	q, err := here(x.query(), of)
	if err != nil {
		return nil, callError{err}
	}
	selected, err := selection.Choose(q)
	if err != nil {
		return nil, callError{err}
	}
	call := explain.Call{Collective: x.collective, Algorithm: selected.Algorithm, Ranks: x.ranks, Root: x.root, Bytes: x.bytes}
	if x.algorithm != "" {
		call.Algorithm = selection.WithHosts(x.collective, x.algorithm, x.hosts)
	}
	schedule, err := call.Schedule()
	if err != nil {
		return nil, callError{err}
	}
	e := &explanation{
		Collective: x.collective.String(), Algorithm: schedule.Algorithm, Selected: selected.Algorithm, Why: selected.Why(), Named: x.algorithm != "",
		Ranks: x.ranks, Root: x.root, Bytes: x.bytes, Transport: q.Transport, Processors: q.Processors, Hosts: x.hosts,
		Parts: []explain.Part{}, Rivals: []rival{}, SimulatedSizes: []int{}, SimulatedRanks: []int{}, NotPredicted: why,
	}
	var m *explain.Machine
	if profile != nil {
		if m, err = x.machine(e, profile, named); err != nil {
			return nil, callError{err}
		}
	}
	if m != nil {
		if err := x.predict(e, m, call, q); err != nil {
			return nil, callError{err}
		}
	}
	if err := e.price(m, call); err != nil {
		return nil, callError{err}
	}
	if err := x.changes(e, q); err != nil {
		return nil, callError{err}
	}
	if x.plot != "" && len(x.sizes)+len(x.numbers) == 0 {
		return nil, callErrorf("--plot %s: there are no times to draw: %s", x.plot, e.NotPredicted)
	}
	if x.measure {
		return e, x.measured(ctx, e)
	}
	return e, nil
}

const noProfile = "there is no profile of this machine: chorale tune makes one"

// readProfile returns the profile. If none was named, there may be none: then it says why not.
func (x *explainer) readProfile(named bool) (p *model.Profile, why string, err error) {
	if named {
		p, err = readProfile(x.profile)
		return p, "", err
	}
	if _, err := profilePath(x.profile); err != nil {
		return nil, noProfile, nil
	}
	p, err = readProfile(x.profile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, noProfile, nil
	case err != nil:
		return nil, err.Error(), nil
	}
	return p, "", nil
}

// machine returns what simulates the call, or nil if the profile does not say what that takes:
// then the explanation says why. A profile that was named has to.
func (x *explainer) machine(e *explanation, p *model.Profile, named bool) (*explain.Machine, error) {
	m := &explain.Machine{Profile: p, Transport: e.Transport, Processors: x.processors}
	var within model.Link
	err := x.onHosts(m)
	if err == nil {
		within, err = p.Link(m.Transport)
	}
	if err != nil {
		if named {
			return nil, err
		}
		e.NotPredicted = err.Error()
		return nil, nil
	}
	path, err := profilePath(x.profile)
	if err != nil {
		return nil, err
	}
	e.Profile = &profileUsed{
		File: path, Made: within.Origin.Made, Host: within.Origin.Host, Processors: cmp.Or(x.processors, p.Node.Processors),
		Hosts: 1, Quiet: within.Origin.Quiet && p.Node.Origin.Quiet,
	}
	if h := m.Hosts; h != nil {
		e.Profile.Hosts, e.Profile.Between = len(h.Sizes), h.Between.Transport
		e.Profile.Quiet = e.Profile.Quiet && h.Between.Origin.Quiet
	}
	return m, nil
}

// onHosts puts the ranks on the hosts of the flag. As in a job, those of one host exchange
// messages over shared memory, unless another transport is named.
func (x *explainer) onHosts(m *explain.Machine) error {
	if x.hosts == "" {
		return nil
	}
	sizes, places, err := algo.PlaceHosts(x.hosts, x.ranks)
	if err != nil {
		return err
	}
	if m.Transport = x.transport.value; m.Transport == "auto" {
		m.Transport = "shm"
	}
	if len(sizes) == 1 {
		return nil
	}
	if m.Transport == "inproc" {
		return errors.New("the ranks of one process are on one host")
	}
	between, err := linkBetween(m.Profile, "")
	m.Hosts = &explain.Hosts{Sizes: sizes, Places: places, Between: between}
	return err
}

// predict simulates the call, the other algorithms, other sizes, and on one host other numbers
// of ranks.
func (x *explainer) predict(e *explanation, m *explain.Machine, call explain.Call, q selection.Query) error {
	time, parts, err := m.Parts(call)
	var large *explain.TooLargeError
	switch {
	case errors.As(err, &large):
		e.NotPredicted = err.Error()
	case err != nil:
		return err
	default:
		e.Predicted, e.Parts = &time, parts
	}
	algorithms := explain.Candidates(x.collective, call.Algorithm, e.Selected)
	for i, spec := range algorithms {
		algorithms[i] = selection.WithHosts(x.collective, spec, x.hosts)
	}
	for _, r := range m.Rivals(call, algorithms, x.constraints) {
		if r.Algorithm != e.Algorithm {
			e.Rivals = append(e.Rivals, rival{r, nil})
		}
	}
	if x.ranks > 1 {
		x.sizes = m.BySize(call, explain.Octaves(explain.MinBytes, explain.MaxBytes), algorithms, x.constraints)
	}
	for _, s := range x.sizes {
		e.SimulatedSizes = append(e.SimulatedSizes, s.At)
	}
	if x.hosts != "" {
		return nil
	}
	numbers := explain.Octaves(2, explain.MaxRanks)
	chosen, err := changesByRanks(q, nil)
	if err != nil {
		return err
	}
	for _, r := range chosen[1:] {
		numbers = append(numbers, r.From)
	}
	slices.Sort(numbers)
	x.numbers = m.ByRanks(call, slices.Compact(numbers), algorithms, x.constraints)
	for _, s := range x.numbers {
		e.SimulatedRanks = append(e.SimulatedRanks, s.At)
	}
	return nil
}

// changes finds where the choice changes. By the number of ranks it does only on one host.
func (x *explainer) changes(e *explanation, q selection.Query) (err error) {
	e.BySize, e.ByRanks = []explain.Range{}, []explain.Range{}
	if x.collective != sched.Barrier {
		if e.BySize, err = changesBySize(q, x.sizes); err != nil {
			return err
		}
	}
	if x.hosts == "" {
		e.ByRanks, err = changesByRanks(q, x.numbers)
	}
	return err
}

// changesBySize finds from which size on a call runs another algorithm, or another is the
// fastest.
func changesBySize(q selection.Query, samples []explain.Sample) ([]explain.Range, error) {
	sizes := explain.Octaves(explain.MinBytes, max(explain.MaxBytes, 2*q.Bytes))
	return explain.Changes(sizes, true, func(bytes int) (explain.Choice, error) {
		q.Bytes = bytes
		c, err := selection.Choose(q)
		return explain.Choice{Algorithm: c.Algorithm, Why: c.Why()}, err
	}, samples)
}

// changesByRanks is the same by the number of ranks.
func changesByRanks(q selection.Query, samples []explain.Sample) ([]explain.Range, error) {
	numbers := make([]int, explain.MaxRanks)
	for i := range numbers {
		numbers[i] = i + 1
	}
	return explain.Changes(numbers, false, func(p int) (explain.Choice, error) {
		q.Ranks = p
		c, err := selection.Choose(q)
		return explain.Choice{Algorithm: c.Algorithm, Why: c.Why()}, err
	}, samples)
}
