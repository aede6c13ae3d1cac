package command

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/internal/trace"
	"github.com/chorale-go/chorale/sim"
)

// A realKind is calls of a timeline that one simulation stands for.
type realKind struct {
	collective, algorithm string
	p, root, words        int
}

// String returns what selects the kind on the command line.
func (k realKind) String() string {
	return fmt.Sprintf("%s -n %d --algorithm %s -m %d", k.collective, k.p, k.algorithm, k.words)
}

// A realCall is a call of a timeline, with all of its ranks in their order. The time in it
// counts from when the last of them came.
type realCall []trace.FileCall

func (c realCall) begin() (ns int64) {
	for _, rank := range c {
		ns = max(ns, rank.Start)
	}
	return ns
}

func (c realCall) time() (ns int64) {
	for _, rank := range c {
		ns = max(ns, rank.End)
	}
	return ns - c.begin()
}

// realCalls returns the complete calls of each kind. Those that have failed, and those whose
// parts differ in length, are not compared.
func realCalls(f *trace.File) map[realKind][]realCall {
	type key struct {
		kind         realKind
		communicator uint64
		number       uint32
		first        int
	}
	ranks := map[key]map[int]trace.FileCall{}
	var order []key
	for _, c := range f.Calls {
		if c.Failed || c.Uneven {
			continue
		}
		kind := realKind{c.Collective, c.Algorithm, c.P, c.Root, (c.Count*c.Size + wordBytes - 1) / wordBytes}
		k := key{kind, c.Communicator, c.Number, c.First}
		if ranks[k] == nil {
			ranks[k] = map[int]trace.FileCall{}
			order = append(order, k)
		}
		ranks[k][c.Rank] = c
	}
	kinds := map[realKind][]realCall{}
	for _, k := range order {
		if len(ranks[k]) != k.kind.p {
			continue
		}
		call := make(realCall, k.kind.p)
		for rank, c := range ranks[k] {
			call[rank] = c
		}
		kinds[k.kind] = append(kinds[k.kind], call)
	}
	return kinds
}

// A comparison lays a simulation beside real calls. Its shares are of the whole time, from 0
// to 1.
type comparison struct {
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"`
	P          int     `json:"p"`
	Root       int     `json:"root"`
	M          int     `json:"m"`
	Line       string  `json:"line"`     // of the program
	Calls      int     `json:"calls"`    // that are in the timeline
	Compared   int     `json:"compared"` // of them, the faster half
	Real       float64 `json:"real"`     // seconds of one, the mean, from when the last rank came
	Simulated  float64 `json:"simulated"`

	Steps  []comparedStep `json:"steps"`
	Rest   comparedShare  `json:"rest"`   // after the last message
	Parts  int            `json:"parts"`  // the first step whose shares differ by a twentieth, from 1; 0 if none does
	Widest int            `json:"widest"` // the first step whose shares differ most, from 1; 0 if there are no steps
	Late   []comparedLate `json:"late"`
	Notes  []string       `json:"notes"`

	typical realCall // the median of those that are compared
}

type comparedShare struct {
	Simulated float64 `json:"simulated"`
	Real      float64 `json:"real"`
}

func (s comparedShare) differs() float64 { return s.Real - s.Simulated }

// A comparedStep is a step of the timeline: from when the one before it is done on all ranks
// until it is.
type comparedStep struct {
	Step     int `json:"step"`
	Messages int `json:"messages"`
	Words    int `json:"words"`
	comparedShare
	Last int `json:"last"` // the rank that was the last to be done, most often
}

// A comparedLate is a rank that often came last.
type comparedLate struct {
	Rank  int     `json:"rank"`  // in its communicator
	Share float64 `json:"share"` // of the calls to which it came last, from 0 to 1
	By    float64 `json:"by"`    // seconds after the first, the mean of these calls
}

func (l comparedLate) String() string {
	return fmt.Sprintf("rank %d came last to %.0f%% of the calls, %s after the first", l.Rank, 100*l.Share, secondsText(l.By))
}

// partsBy is the difference between a real and a simulated share from which they part.
const partsBy = 0.05

// newComparison compares real calls with their simulation, which was recorded.
func newComparison(kind realKind, calls []realCall, r *sim.Result) *comparison {
	c := &comparison{
		Collective: kind.collective, Algorithm: kind.algorithm, P: kind.p, Root: kind.root, M: kind.words,
		Line: calls[0][0].Line, Calls: len(calls), Simulated: r.Time, Late: lateRanks(calls), Steps: []comparedStep{},
	}
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b realCall) int { return cmp.Compare(a.time(), b.time()) })
	calls = calls[:(len(calls)+1)/2]
	c.Compared, c.typical = len(calls), calls[len(calls)/2]

	steps := make([]float64, len(r.PerStep))
	lasts := make([]map[int]int, len(r.PerStep))
	whole, rest := 0.0, 0.0
	for _, call := range calls {
		done := call.begin()
		for i, end := range stepEnds(call, r) {
			if end.rank >= 0 {
				if lasts[i] == nil {
					lasts[i] = map[int]int{}
				}
				lasts[i][end.rank]++
			}
			steps[i] += float64(max(0, end.ns-done))
			done = max(done, end.ns)
		}
		whole += float64(call.time())
		rest += float64(call.begin() + call.time() - done)
	}
	share := func(x, of float64) float64 {
		if of <= 0 {
			return 0
		}
		return x / of
	}
	c.Real = whole / float64(len(calls)) / 1e9
	done := 0.0
	for i, s := range r.PerStep {
		shares := comparedShare{share(max(0, s.End-done), r.Time), share(steps[i], whole)}
		done = max(done, s.End)
		last, most := -1, 0
		for rank, n := range lasts[i] {
			if n > most || n == most && rank < last {
				last, most = rank, n
			}
		}
		c.Steps = append(c.Steps, comparedStep{i + 1, s.Messages, s.Words, shares, last})
		d := math.Abs(shares.differs())
		if c.Parts == 0 && d >= partsBy {
			c.Parts = i + 1
		}
		if c.Widest == 0 || d > math.Abs(c.Steps[c.Widest-1].differs()) {
			c.Widest = i + 1
		}
	}
	c.Rest = comparedShare{share(max(0, r.Time-done), r.Time), share(rest, whole)}
	return c
}

// A stepEnd is when a step of the timeline is done in a real call, and on which rank last.
type stepEnd struct {
	ns   int64
	rank int
}

// stepEnds returns the ends of the steps of the simulation in a real call: when the last of
// their messages was received.
func stepEnds(call realCall, r *sim.Result) []stepEnd {
	ends := make([]stepEnd, len(r.PerStep))
	for i := range ends {
		ends[i].rank = -1
	}
	for _, m := range r.Log {
		if at := call[m.To].Steps; m.RecvStep < len(at) && at[m.RecvStep] > ends[m.Step].ns {
			ends[m.Step] = stepEnd{at[m.RecvStep], m.To}
		}
	}
	return ends
}

// lateRanks returns the ranks that came last to a tenth of the calls or more, the most
// frequent first, if others waited for them for a tenth of the time.
func lateRanks(calls []realCall) []comparedLate {
	late := map[int]*comparedLate{}
	waited, spent := 0.0, 0.0
	for _, call := range calls {
		last, first := 0, int64(math.MaxInt64)
		for rank, c := range call {
			first = min(first, c.Start)
			if c.Start > call[last].Start {
				last = rank
			}
		}
		if late[last] == nil {
			late[last] = &comparedLate{Rank: last}
		}
		by := float64(call.begin() - first)
		late[last].Share++
		late[last].By += by / 1e9
		waited, spent = waited+by, spent+by+float64(call.time())
	}
	all := []comparedLate{}
	for _, l := range late {
		l.By /= l.Share
		if l.Share /= float64(len(calls)); l.Share >= 0.1 && waited >= 0.1*spent {
			all = append(all, *l)
		}
	}
	slices.SortFunc(all, func(a, b comparedLate) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Rank, b.Rank))
	})
	return all
}

// against compares a timeline with the simulation of its calls: those that the command line
// selects, or else the kind that took the most time.
func (s *simulation) against(cmd *cobra.Command, name string, args []string, format, output string) error {
	if format != "table" && format != "json" {
		return callErrorf("--format %s: want table or json with --against", format)
	}
	if output != "" {
		if _, err := comparisonPicture(output); err != nil {
			return err
		}
	}
	if len(args) > 1 || len(s.each()) > 1 {
		return callErrorf("--against compares one kind of call: want at most one OP, and one value of each flag")
	}
	in, err := os.Open(name)
	if err != nil {
		return callError{err}
	}
	defer in.Close()
	f, err := trace.Read(in)
	if err != nil {
		return callErrorf("%s: %w", name, err)
	}
	wanted := s.each()[0]
	kinds := realCalls(f)
	kind, others, err := wanted.pick(cmd, kinds, args)
	if err != nil {
		return callErrorf("%s: %w", name, err)
	}
	one := *wanted
	one.combination = combination{kind.p, kind.words, wanted.topology, kind.algorithm}
	one.root = kind.root
	cmd.Flags().Lookup("words").Changed = true
	e, err := one.scenario(cmd, kind.collective)
	if err != nil {
		return err
	}
	r, err := e.simulate(true)
	if err != nil {
		return err
	}
	c := newComparison(kind, kinds[kind], r)
	c.Notes = append([]string{}, f.Notes...)
	if len(others) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("the timeline has other calls, as %v", others[0]))
	}
	if output != "" {
		if err := c.writePicture(cmd, output, "Simulated and real: "+e.title, r); err != nil || output == "-" {
			return err
		}
	}
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), c)
	}
	return c.print(cmd.OutOrStdout(), e.title)
}

// pick returns the kind of calls that the command line selects, of several the one that took
// the most time, and the others.
func (s *simulation) pick(cmd *cobra.Command, kinds map[realKind][]realCall, args []string) (kind realKind, others []realKind, err error) {
	time := func(k realKind) (ns int64) {
		for _, call := range kinds[k] {
			ns += call.time()
		}
		return ns
	}
	var all, fit []realKind
	for k := range kinds {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b realKind) int {
		return cmp.Or(cmp.Compare(time(b), time(a)), strings.Compare(a.String(), b.String()), cmp.Compare(a.root, b.root))
	})
	for _, k := range all {
		if (len(args) == 0 || args[0] == k.collective) && (s.p == 0 || s.p == k.p) && (s.algorithm == "" || s.algorithm == k.algorithm) &&
			(s.root == k.root || !cmd.Flags().Changed("root")) && (s.words == k.words || !cmd.Flags().Changed("words")) {
			fit = append(fit, k)
		}
	}
	switch {
	case len(all) == 0:
		return kind, nil, fmt.Errorf("no call that all ranks of a communicator have recorded, with parts of one length")
	case len(fit) == 0:
		return kind, nil, fmt.Errorf("it has no such call: most time took %v", all[0])
	}
	return fit[0], fit[1:], nil
}

// maxCompared is how many steps the table has at most: those that differ most.
const maxCompared = 32

func (c *comparison) print(w io.Writer, title string) error {
	say := func(format string, args ...any) {
		for _, line := range wrap(fmt.Sprintf(format, args...), lineWidth) {
			fmt.Fprintln(w, line)
		}
	}
	say("%s", title)
	say("%s at %s, of which the faster %d are compared", plural(c.Calls, "call"), c.Line, c.Compared)
	say("real %s from when the last rank came, on average", secondsText(c.Real))
	unit := ""
	if c.Simulated > 0 {
		unit = ", of which 1 would be " + secondsText(c.Real/c.Simulated)
	}
	say("simulated %.4g in the unit of ts%s", c.Simulated, unit)
	fmt.Fprintln(w)
	shown := slices.Clone(c.Steps)
	if len(shown) > maxCompared {
		slices.SortStableFunc(shown, func(a, b comparedStep) int {
			return cmp.Compare(math.Abs(b.differs()), math.Abs(a.differs()))
		})
		shown = shown[:maxCompared]
		slices.SortFunc(shown, func(a, b comparedStep) int { return a.Step - b.Step })
	}
	lines := [][]string{{"STEP", "MESSAGES", "WORDS", "SIM", "REAL", "DIFFERENCE", "LAST"}}
	shares := func(s comparedShare) []string {
		return []string{sharePercent(s.Simulated), sharePercent(s.Real), fmt.Sprintf("%+.1f", 100*s.differs())}
	}
	for _, s := range shown {
		last := "-"
		if s.Last >= 0 {
			last = fmt.Sprintf("rank %d", s.Last)
		}
		line := append([]string{fmt.Sprint(s.Step), fmt.Sprint(s.Messages), fmt.Sprint(s.Words)}, shares(s.comparedShare)...)
		lines = append(lines, append(line, last))
	}
	lines = append(lines, append(append([]string{"rest", "", ""}, shares(c.Rest)...), ""))
	if err := printRows(w, lines, 0, 0, lineWidth); err != nil {
		return err
	}
	if n := len(c.Steps) - len(shown); n > 0 {
		say("%s that differ less are not shown", plural(n, "step"))
	}
	fmt.Fprintln(w)
	switch {
	case c.Parts > 0:
		first, widest := c.Steps[c.Parts-1], c.Steps[c.Widest-1]
		say("they part in step %d: %s of the real time, %s of the simulated", first.Step, sharePercent(first.Real), sharePercent(first.Simulated))
		if first.Step != widest.Step {
			say("they differ most in step %d: %s and %s", widest.Step, sharePercent(widest.Real), sharePercent(widest.Simulated))
		}
	case c.Widest > 0:
		say("no step's share differs by %.0f points", 100*partsBy)
	}
	for _, l := range c.Late[:min(len(c.Late), 4)] {
		say("%v", l)
	}
	for _, note := range c.Notes {
		say("note: %s", note)
	}
	return nil
}

func sharePercent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// secondsText formats a time with three digits.
func secondsText(seconds float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if seconds >= unit.size {
			return fmt.Sprintf("%.3g %s", seconds/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g ns", seconds*1e9)
}
