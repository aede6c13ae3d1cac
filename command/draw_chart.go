package command

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// A quantity is the horizontal axis of a chart.
type quantity int

const (
	byWords quantity = iota
	byRanks
)

// A sweep computes the costs of several algorithms of a collective, for many m or
// many p.
type sweep struct {
	s                 *simulation
	collective        sched.Collective
	by                quantity
	p, m              int  // the largest, or the only one
	portsPerAlgorithm bool // each algorithm has the ports that it is made for

	missing []string            // why sizes have no marks, by algorithm
	chosen  map[chosenAt]string // see resolve
}

// drawChart draws the costs of a collective.
func (s *simulation) drawChart(cmd *cobra.Command, w io.Writer, f figure, arg, title string) error {
	c, err := sched.ParseCollective(arg)
	if err != nil {
		return callErrorf("--figure %s of %s: want a collective, since only the catalog has formulas", f.name, arg)
	}
	one, err := s.drawn()
	if err != nil {
		return err
	}
	v := sweep{s: one, collective: c, by: f.against, p: one.p, m: one.words, portsPerAlgorithm: !cmd.Flags().Changed("ports")}
	if !cmd.Flags().Changed("words") {
		v.m = defaultWords
	}
	curves, err := v.chartData(s.lists.algorithms.values)
	if err == nil {
		if title != "" {
			curves.Title = title
		}
		err = draw.Chart(w, curves)
	}
	if err != nil {
		return callError{err}
	}
	return nil
}

// validate returns an error for a call that cannot give a chart.
func (v *sweep) validate() error {
	switch {
	case v.p == 0:
		return errNoRanks
	case v.p < 2:
		return fmt.Errorf("a chart of 1 rank: want 2 or more, since alone it has no cost")
	case v.collective == sched.Barrier && v.by == byWords:
		return fmt.Errorf("a chart of a barrier against m: it moves no words, want --figure cost-p")
	case v.m < 2 && v.by == byWords:
		return fmt.Errorf("-m %d: want the largest m of the chart, 2 or more", v.m)
	}
	return checkWords(v.m, v.p)
}

// chartData computes the content of the chart.
func (v *sweep) chartData(named []string) (draw.ChartData, error) {
	if err := v.validate(); err != nil {
		return draw.ChartData{}, err
	}
	specs, leftOut := named, []string(nil)
	if len(named) == 0 {
		specs, leftOut = v.sensible()
	}
	c := draw.ChartData{Title: v.title(), X: v.axis(), Y: "time, in the unit of ts", Discrete: v.by == byRanks}
	for _, spec := range specs {
		series, err := v.series(spec)
		if err != nil {
			return draw.ChartData{}, err
		}
		c.Series = append(c.Series, series)
	}
	c.Crossovers = v.crossovers(specs, c.Series)
	c.Note = v.note()
	for _, spec := range specs {
		if nameOfSpec(spec) == best && seriesName(spec) == spec {
			c.Note += "; " + v.whichIsBest(spec)
		}
	}
	if len(named) == 0 {
		c.Note += "; each algorithm has the parameters that are the best at each point"
	}
	if len(leftOut) > 0 {
		c.Note += "; dearer on the whole, and left out: " + strings.Join(leftOut, ", ")
	}
	if len(v.missing) > 0 {
		c.Note += "; no mark for " + strings.Join(v.missing, "; for ")
	}
	return c, nil
}

func (v *sweep) title() string {
	if v.by == byRanks {
		return fmt.Sprintf("%v: time against the number of ranks, m = %s", v.collective, plural(v.m, "word"))
	}
	return fmt.Sprintf("%v among %s: time against m", v.collective, plural(v.p, "rank"))
}

// note describes the model, the network, and all settings that differ from their
// defaults.
func (v *sweep) note() string {
	s := v.s
	facts := []string{"ts " + s.ts.String(), "tw " + s.tw.String()}
	for _, more := range []struct {
		shown bool
		fact  string
	}{
		{s.th > 0, "th " + s.th.String()},
		{s.top > 0, "top " + s.top.String()},
		{s.bandwidth > 0, "memory bandwidth " + s.bandwidth.String()},
		{true, v.network()},
		{s.placement != "identity", "placed " + s.placement},
		{!v.portsPerAlgorithm, s.ports.value + " ports"},
		{s.switching.value == "store-and-forward", "by store and forward"},
		{s.congestion.value == "share", "links shared"},
		{s.sync, "all begin each step together"},
	} {
		if more.shown {
			facts = append(facts, more.fact)
		}
	}
	return strings.Join(facts, ", ")
}

func (v *sweep) network() string {
	if len(v.simulatedSizes()) == 0 {
		return fmt.Sprintf("not simulated, being more than %d ranks", maxSweptRanks)
	}
	network := "simulated on " + cmp.Or(v.s.topology, "full")
	if v.p > maxSweptRanks {
		network += fmt.Sprintf(" of up to %d ranks", maxSweptRanks)
	}
	return network
}

func (v *sweep) axis() string {
	switch isWhole := whole(v.collective, 2, 1) == 1; {
	case v.by == byRanks:
		return "p, the number of ranks"
	case isWhole:
		return "m, in words"
	}
	return "m, in words of each rank's part"
}

// series computes the line and the marks of one algorithm.
func (v *sweep) series(spec string) (draw.Series, error) {
	series := draw.Series{Name: seriesName(spec)}
	var a algo.Algorithm
	var err error
	if nameOfSpec(spec) != best {
		if a, err = algo.Lookup(v.collective, nameOfSpec(spec)); err != nil {
			return draw.Series{}, err
		}
	}
	if a.Restrictions.AllPort && v.portsPerAlgorithm {
		series.Name += ", all ports"
	}
	var firstErr error
	for _, at := range v.samples() {
		cost, err := v.formula(spec, float64(at))
		if err != nil {
			if firstErr == nil {
				firstErr = err
			}
			continue
		}
		series.Formula = append(series.Formula, draw.Point{X: float64(at), Y: cost})
	}
	if len(series.Formula) == 0 {
		return draw.Series{}, firstErr
	}
	series.Simulated, err = v.simulated(spec, a)
	return series, err
}

// samples returns the quantities at which lines are computed: integers, evenly
// spaced on a log axis; of ranks all up to 200.
func (v *sweep) samples() (sizes []int) {
	first, last := 1, v.m
	if v.by == byRanks {
		first, last = 2, v.p
		for p := first; p < last; p = max(p+1, p*101/100) {
			sizes = append(sizes, p)
		}
		sizes = append(sizes, last)
	} else {
		const n = 160
		for i := range n + 1 {
			sizes = append(sizes, int(math.Round(math.Pow(float64(last), float64(i)/n))))
		}
	}
	for x := first; x < last; x *= 2 { // many algorithms prefer powers of two
		sizes = append(sizes, x)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// formula evaluates the catalog's formula of an algorithm. The quantity need not be
// an integer.
func (v *sweep) formula(spec string, at float64) (float64, error) {
	p, m := v.p, at
	if v.by == byRanks {
		p, m = int(at), float64(v.m)
	}
	part := float64(whole(v.collective, p, 1))
	spec, err := v.resolve(spec, at)
	if err != nil {
		return 0, err
	}
	cost, err := algo.Price(v.collective, spec, p, v.s.root, int(wordBytes*m*part), m*part)
	if err != nil {
		return 0, err
	}
	return v.model().Time(cost), nil
}

// chosenAt is a value of --algorithm that begins with best, and a quantity.
type chosenAt struct {
	spec string
	at   float64
}

// resolve returns the algorithm at a quantity: the one that the formulas select there
// if it is best.
func (v *sweep) resolve(spec string, at float64) (string, error) {
	if nameOfSpec(spec) != best {
		return spec, nil
	}
	if known, ok := v.chosen[chosenAt{spec, at}]; ok {
		return known, nil
	}
	needs, err := v.s.constraints(spec)
	if err != nil {
		return "", err
	}
	p, m := v.p, at
	if v.by == byRanks {
		p, m = int(at), float64(v.m)
	}
	words := m * float64(whole(v.collective, p, 1))
	choice, err := algo.Cheapest(v.collective, p, v.s.root, words, int(wordBytes*words), v.model(), needs)
	if err != nil {
		return "", err
	}
	if v.chosen == nil {
		v.chosen = make(map[chosenAt]string)
	}
	v.chosen[chosenAt{spec, at}] = choice.Spec
	return choice.Spec, nil
}

func (v *sweep) model() model.Model {
	s := v.s
	return model.Model{Ts: float64(s.ts), Tw: float64(s.tw), Th: float64(s.th), Top: float64(s.top)}
}

// simulated computes the marks of an algorithm. It leaves out sizes with fewer
// words than pieces, and sizes that the network does not have.
func (v *sweep) simulated(spec string, a algo.Algorithm) (marks []draw.Point, err error) {
	var firstErr error
	var reasons []string
	without := map[string][]int{} // sizes without a mark, by reason
	for _, at := range v.simulatedSizes() {
		p, m := v.p, at
		if v.by == byRanks {
			p, m = at, v.m
		}
		err := a.Restrictions.Allow(p)
		refused := err != nil
		var time float64
		if err == nil {
			time, err = v.simulate(spec, p, m, a.Restrictions.AllPort)
		}
		if err != nil {
			if firstErr == nil && !refused {
				firstErr = err
			}
			reason := v.whyNot(err, refused)
			if without[reason] == nil {
				reasons = append(reasons, reason)
			}
			without[reason] = append(without[reason], at)
			continue
		}
		marks = append(marks, draw.Point{X: float64(at), Y: time})
	}
	if len(marks) == 0 && firstErr != nil {
		return nil, firstErr
	}
	for _, reason := range reasons {
		v.missing = append(v.missing, fmt.Sprintf("%s at %s (%s)", seriesName(spec), fewNumbers(without[reason]), reason))
	}
	return marks, nil
}

// whyNot shortens the reason for which a size cannot be simulated.
func (v *sweep) whyNot(err error, refused bool) string {
	reason, _, _ := strings.Cut(err.Error(), ": want")
	switch {
	case refused: // by the restrictions of the algorithm
		reason, _, _ = strings.Cut(reason, ",")
	case strings.Contains(reason, "pieces"), strings.Contains(reason, "words, or not"):
		return "fewer words than pieces"
	case strings.HasPrefix(reason, "topology"):
		return "no " + v.s.topology + " of that size"
	}
	return reason
}

// maxSweptRanks is how many ranks are simulated for a chart. A chart takes many
// simulations.
const maxSweptRanks = 1024

// simulatedSizes returns the quantities to simulate: powers of two, and for numbers
// of ranks also the middle between two powers.
func (v *sweep) simulatedSizes() (sizes []int) {
	switch {
	case v.by == byRanks:
		for p := 2; p <= min(v.p, maxSweptRanks); p *= 2 {
			sizes = append(sizes, p)
			if between := p / 2 * 3; p > 2 && between <= min(v.p, maxSweptRanks) {
				sizes = append(sizes, between)
			}
		}
	case v.p <= maxSweptRanks:
		for m := 1; m <= v.m; m *= 2 {
			sizes = append(sizes, m)
		}
	}
	return sizes
}

func (v *sweep) simulate(spec string, p, m int, allPort bool) (float64, error) {
	at := float64(m)
	if v.by == byRanks {
		at = float64(p)
	}
	spec, err := v.resolve(spec, at)
	if err != nil {
		return 0, err
	}
	s, err := newSchedule(v.collective, spec, p, v.s.root, whole(v.collective, p, wordBytes*m), v.s.memory)
	if err != nil {
		return 0, err
	}
	if v.collective == sched.Barrier {
		m = 0
	}
	e := scenario{p: p, collective: v.collective.String(), placement: v.s.placement}
	if err := v.s.network(&e); err != nil {
		return 0, err
	}
	if v.portsPerAlgorithm {
		e.config.AllPort = allPort
	}
	r, err := sim.Run(e.config, sim.Part{Schedule: s, Words: m})
	if err != nil {
		return 0, err
	}
	return r.Time, nil
}

// seriesName returns the name of an algorithm in a chart. The best parameters of one
// algorithm have its name.
func seriesName(spec string) string {
	if name, ok := strings.CutPrefix(spec, bestAmong); ok && !strings.Contains(name, "+") {
		return name
	}
	return spec
}

// fewNumbers lists numbers, and leaves out the middle of more than four.
func fewNumbers(numbers []int) string {
	var texts []string
	for i, n := range numbers {
		if len(numbers) > 4 && i == 3 {
			texts = append(texts, "…")
		} else if len(numbers) <= 4 || i < 3 || i == len(numbers)-1 {
			texts = append(texts, strconv.Itoa(n))
		}
	}
	return strings.Join(texts, ", ")
}

// formatShort formats a number from 100 as an integer, and a smaller number to
// three significant digits.
func formatShort(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
