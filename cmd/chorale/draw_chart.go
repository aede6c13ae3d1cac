package main

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

// A quantity is what a chart shows costs against.
type quantity int

const (
	byWords quantity = iota
	byRanks
)

// A sweep is one collective by several algorithms, for many m or many p.
type sweep struct {
	s          *simulation
	collective sched.Collective
	by         quantity
	p, m       int  // the largest, or the only one
	anyPorts   bool // each algorithm has those that it is made for
}

// drawChart draws costs of a collective.
func (s *simulation) drawChart(cmd *cobra.Command, w io.Writer, f figure, arg, title string, specs []string) error {
	c, err := sched.ParseCollective(arg)
	if err != nil {
		return callErrorf("--figure %s of %s: want a collective, since the formulas are the catalogue's", f.name, arg)
	}
	v := sweep{s: s, collective: c, by: f.against, p: int(s.p), m: int(s.words), anyPorts: !cmd.Flags().Changed("ports")}
	if !cmd.Flags().Changed("words") {
		v.m = defaultWords
	}
	curves, err := v.curves(specs)
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

// validate says what is wrong with the call as a whole.
func (v *sweep) validate(specs []string) error {
	switch {
	case v.p == 0:
		return errNoRanks
	case v.p < 2:
		return fmt.Errorf("a chart of 1 rank: want 2 or more, since alone it has no cost")
	case len(specs) == 0:
		return fmt.Errorf("a chart of no algorithm: want --algorithm once or more, see chorale list %v", v.collective)
	case v.collective == sched.Barrier && v.by == byWords:
		return fmt.Errorf("a chart of a barrier against m: it moves no words, want --figure cost-p")
	case v.m < 2 && v.by == byWords:
		return fmt.Errorf("-m %d: want the largest m of the chart, 2 or more", v.m)
	}
	return checkWords(v.m, v.p)
}

// curves makes the chart.
func (v *sweep) curves(specs []string) (draw.Curves, error) {
	if err := v.validate(specs); err != nil {
		return draw.Curves{}, err
	}
	c := draw.Curves{Title: v.title(), Note: v.note(), X: v.axis(), Y: "time, in the unit of ts"}
	for _, spec := range specs {
		line, err := v.curve(spec)
		if err != nil {
			return draw.Curves{}, err
		}
		c.Lines = append(c.Lines, line)
	}
	c.Meets = v.meetings(specs, c.Lines)
	return c, nil
}

func (v *sweep) title() string {
	if v.by == byRanks {
		return fmt.Sprintf("%v: time against the number of ranks, m = %s", v.collective, plural(v.m, "word"))
	}
	return fmt.Sprintf("%v among %s: time against m", v.collective, plural(v.p, "rank"))
}

// note says what holds for the whole chart and is not the default.
func (v *sweep) note() string {
	s := v.s
	words := []string{"ts " + s.ts.String(), "tw " + s.tw.String()}
	for _, more := range []struct {
		holds bool
		words string
	}{
		{s.th > 0, "th " + s.th.String()},
		{s.top > 0, "top " + s.top.String()},
		{s.bandwidth > 0, "memory bandwidth " + s.bandwidth.String()},
		{true, v.network()},
		{s.placement != "identity", "placed " + s.placement},
		{!v.anyPorts, s.ports.value + " ports"},
		{s.switching.value == "store-and-forward", "by store and forward"},
		{s.congestion.value == "share", "links shared"},
		{s.sync, "all begin each step together"},
	} {
		if more.holds {
			words = append(words, more.words)
		}
	}
	return strings.Join(words, ", ")
}

func (v *sweep) network() string {
	if len(v.stops()) == 0 {
		return fmt.Sprintf("not simulated, being more than %d ranks", mostSwept)
	}
	return "simulated on " + cmp.Or(v.s.topology, "full")
}

func (v *sweep) axis() string {
	switch whole := whole(v.collective, 2, 1) == 1; {
	case v.by == byRanks:
		return "p, the number of ranks"
	case whole:
		return "m, in words"
	}
	return "m, in words of each rank's part"
}

// curve is one algorithm's line and marks.
func (v *sweep) curve(spec string) (draw.Curve, error) {
	name, _, _ := strings.Cut(spec, ",")
	a, err := algo.Lookup(v.collective, name)
	if err != nil {
		return draw.Curve{}, err
	}
	line := draw.Curve{Name: spec}
	if a.Restrictions.AllPort && v.anyPorts {
		line.Name += ", all ports"
	}
	var refused error
	for _, at := range v.samples() {
		cost, err := v.formula(spec, float64(at))
		if err != nil {
			if refused == nil {
				refused = err
			}
			continue
		}
		line.Formula = append(line.Formula, draw.Point{X: float64(at), Y: cost})
	}
	if len(line.Formula) == 0 {
		return draw.Curve{}, refused
	}
	line.Simulated, err = v.simulated(spec, a)
	return line, err
}

// samples are where a line is known: whole numbers, evenly spread on a log axis.
func (v *sweep) samples() (all []int) {
	first, last := 1, v.m
	if v.by == byRanks {
		first, last = 2, v.p
	}
	const n = 160
	for i := range n + 1 {
		all = append(all, int(math.Round(float64(first)*math.Pow(float64(last)/float64(first), float64(i)/n))))
	}
	for x := first; x < last; x *= 2 { // where many algorithms are at home
		all = append(all, x)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// formula is what the catalogue says, at a quantity that need not be whole.
func (v *sweep) formula(spec string, at float64) (float64, error) {
	p, m := v.p, at
	if v.by == byRanks {
		p, m = int(at), float64(v.m)
	}
	part := float64(whole(v.collective, p, 1))
	cost, err := algo.Price(v.collective, spec, p, v.s.root, int(wordBytes*m*part), m*part)
	if err != nil {
		return 0, err
	}
	return v.model().Time(cost), nil
}

func (v *sweep) model() model.Model {
	s := v.s
	return model.Model{Ts: float64(s.ts), Tw: float64(s.tw), Th: float64(s.th), Top: float64(s.top)}
}

// simulated are the marks: at powers of two, and against the number of ranks
// halfway between as well. Where there are fewer words than pieces, or no such
// network, there is none.
func (v *sweep) simulated(spec string, a algo.Algorithm) (marks []draw.Point, err error) {
	var refused error
	for _, at := range v.stops() {
		p, m := v.p, at
		if v.by == byRanks {
			p, m = at, v.m
		}
		if a.Restrictions.Allow(p) != nil {
			continue
		}
		time, err := v.simulate(spec, p, m, a.Restrictions.AllPort)
		if err != nil {
			if refused == nil {
				refused = err
			}
			continue
		}
		marks = append(marks, draw.Point{X: float64(at), Y: time})
	}
	if len(marks) == 0 && refused != nil {
		return nil, refused
	}
	return marks, nil
}

// mostSwept is how many ranks are simulated for a chart, which asks for many
// simulations.
const mostSwept = 1024

// stops are the quantities to simulate.
func (v *sweep) stops() (all []int) {
	switch {
	case v.by == byRanks:
		for p := 2; p <= min(v.p, mostSwept); p *= 2 {
			all = append(all, p)
			if between := p / 2 * 3; p > 2 && between <= min(v.p, mostSwept) {
				all = append(all, between)
			}
		}
	case v.p <= mostSwept:
		for m := 1; m <= v.m; m *= 2 {
			all = append(all, m)
		}
	}
	return all
}

func (v *sweep) simulate(spec string, p, m int, allPort bool) (float64, error) {
	s, err := algo.New(v.collective, spec, p, v.s.root, whole(v.collective, p, wordBytes*m))
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
	if v.anyPorts {
		e.config.AllPort = allPort
	}
	r, err := sim.Run(e.config, sim.Part{Schedule: s, Words: m})
	if err != nil {
		return 0, err
	}
	return r.Time, nil
}

// meetings finds where the cheapest algorithm changes by the formulas. Against
// m that is between two samples, and found to the last bit; against p it is the
// first number of ranks for which another is cheaper.
func (v *sweep) meetings(specs []string, lines []draw.Curve) (all []draw.Meeting) {
	best, at := -1, 0.0
	for _, sample := range v.samples() {
		x := float64(sample)
		next, known := v.cheapest(specs, best, x)
		if !known {
			continue // some algorithm does not take so many ranks
		}
		if best >= 0 && next != best {
			all = append(all, v.meeting(specs, lines, best, next, at, x))
		}
		best, at = next, x
	}
	return all
}

// cheapest returns which algorithm it is. Among equals, it is the one before.
func (v *sweep) cheapest(specs []string, before int, at float64) (best int, known bool) {
	costs := make([]float64, len(specs))
	for i, spec := range specs {
		cost, err := v.formula(spec, at)
		if err != nil {
			return 0, false
		}
		costs[i] = cost
	}
	best = max(before, 0)
	for i, cost := range costs {
		if cost < costs[best]*(1-1e-12) {
			best = i
		}
	}
	return best, true
}

func (v *sweep) meeting(specs []string, lines []draw.Curve, before, after int, low, high float64) draw.Meeting {
	label := "p"
	if v.by == byRanks {
		for p := low + 1; p < high; p++ {
			if next, known := v.cheapest(specs, before, p); known && next != before {
				after, high = next, p
			}
		}
	} else {
		label = "m*"
		for middle := (low + high) / 2; low < middle && middle < high; middle = (low + high) / 2 {
			one, _ := v.formula(specs[before], middle)
			other, _ := v.formula(specs[after], middle)
			if one <= other {
				low = middle
			} else {
				high = middle
			}
		}
	}
	cost, _ := v.formula(specs[after], high)
	return draw.Meeting{
		At:    draw.Point{X: high, Y: cost},
		Label: label + " = " + shortly(high),
		Words: fmt.Sprintf("%s is the cheapest before, %s after", lines[before].Name, lines[after].Name),
	}
}

// shortly writes a number as a whole one, or in three digits that count.
func shortly(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
