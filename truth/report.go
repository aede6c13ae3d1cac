package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/model"
)

// A cell is a call that was measured and simulated.
type cell struct {
	bench.Row           // of the first round; Median is that of all
	vector    int       // bytes: of all parts, where a vector has a part for each rank
	rounds    []float64 // the median of each
}

// merge adds a round to the cells of those before.
func merge(all, round []cell) []cell {
	at := make(map[bench.Call]int, len(all))
	for i, c := range all {
		at[c.key()] = i
	}
	for _, c := range round {
		if i, ok := at[c.key()]; ok {
			all[i].rounds = append(all[i].rounds, c.rounds...)
			all[i].Median = middle(all[i].rounds)
			all[i].Stable = all[i].Stable && c.Stable
		} else {
			all = append(all, c)
		}
	}
	return all
}

// key is what is the same of a cell in every round.
func (c cell) key() bench.Call {
	k := c.Call
	k.Selected = "" // which depends on the machine's state
	return k
}

// middle returns the geometric mean of the middle numbers.
func middle(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return math.Sqrt(s[(len(s)-1)/2] * s[len(s)/2])
}

// spread is how far the rounds of a cell are apart, relative to the shortest time.
func (c cell) spread() float64 { return slices.Max(c.rounds)/slices.Min(c.rounds) - 1 }

// error is how far the simulated time is from the measured one, relative to this.
func (c cell) error() float64 { return math.Abs(*c.Simulated-c.Median) / c.Median }

// ratio is the measured time over the simulated one.
func (c cell) ratio() float64 { return c.Median / *c.Simulated }

// A report is what was measured.
type report struct {
	Date, Command string
	Rounds        int
	profile       *model.Profile
	cells         []cell
}

// A class is the cells of a transport whose ranks have a processor each, or share them.
type class struct {
	transport string
	shares    bool
	cells     []cell
}

// The aims, by whether ranks share processors: for the median of the errors, and for nine in
// ten of them.
var aims = map[bool]struct{ median, most float64 }{false: {0.15, 0.35}, true: {0.30, 0.60}}

// An aim of a decision: the algorithm that is chosen takes at most this factor of the best
// one's time, in this share of the calls.
const (
	near       = 1.10
	rightShare = 0.95
)

func (c class) name() string {
	if c.shares {
		return c.transport + ", shared processors"
	}
	return c.transport + ", a processor each"
}

// classes returns the cells by class, those with a processor for each rank first.
func (r *report) classes() (all []class) {
	for _, shares := range []bool{false, true} {
		for _, c := range r.cells {
			if (c.Ranks > r.profile.Node.Processors) != shares {
				continue
			}
			i := slices.IndexFunc(all, func(o class) bool { return o.transport == c.Transport && o.shares == shares })
			if i < 0 {
				i, all = len(all), append(all, class{transport: c.Transport, shares: shares})
			}
			all[i].cells = append(all[i].cells, c)
		}
	}
	return all
}

// quantile returns the number below which a part of some numbers is.
func quantile(x []float64, part float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[max(0, int(math.Ceil(part*float64(len(s))))-1)]
}

func collect(cells []cell, of func(cell) float64) []float64 {
	x := make([]float64, len(cells))
	for i, c := range cells {
		x[i] = of(c)
	}
	return x
}

// share returns the part of some numbers that are at most a bound.
func share(x []float64, bound float64) float64 {
	n := 0
	for _, v := range x {
		if v <= bound {
			n++
		}
	}
	return float64(n) / float64(max(1, len(x)))
}

// A decision is the choice among the algorithms of a call.
type decision struct {
	call      string
	transport string
	chosen    cell // whose time is the least, of those by which it is chosen
	best      cell // whose measured time is
}

// loss is how many times as long as the best the one takes that is chosen.
func (d decision) loss() float64 { return d.chosen.Median / d.best.Median }

// bySimulation is the time by which a simulation chooses, and byFirstRound that by which a
// first measurement does.
func bySimulation(c cell) float64 { return *c.Simulated }
func byFirstRound(c cell) float64 { return c.rounds[0] }

// secondRounds returns cells whose times are those of the second round.
func secondRounds(cells []cell) []cell {
	second := slices.Clone(cells)
	for i := range second {
		second[i].Median = second[i].rounds[len(second[i].rounds)-1]
	}
	return second
}

// decisions returns the decisions of calls that have several algorithms, by a time.
func decisions(cells []cell, by func(cell) float64) (all []decision) {
	of := make(map[string][]cell)
	var calls []string
	for _, c := range cells {
		call := fmt.Sprintf("%s, n=%d, %s, %s", c.Collective, c.Ranks, algo.FormatBytes(c.Bytes), c.Transport)
		if of[call] == nil {
			calls = append(calls, call)
		}
		of[call] = append(of[call], c)
	}
	for _, call := range calls {
		if some := of[call]; len(some) > 1 {
			all = append(all, decision{
				call: call, transport: some[0].Transport,
				chosen: slices.MinFunc(some, func(a, b cell) int { return cmp.Compare(by(a), by(b)) }),
				best:   slices.MinFunc(some, func(a, b cell) int { return cmp.Compare(a.Median, b.Median) }),
			})
		}
	}
	return all
}

func losses(all []decision) []float64 {
	x := make([]float64, len(all))
	for i, d := range all {
		x[i] = d.loss()
	}
	return x
}

// text is the report for a terminal.
func (r *report) text() string {
	var b strings.Builder
	for _, c := range r.classes() {
		errors := collect(c.cells, cell.error)
		l := losses(decisions(c.cells, bySimulation))
		fmt.Fprintf(&b, "%s: %d cells, median error %s (aim %s), nine in ten within %s (aim %s), median measured/simulated %.2f; best chosen within 10 %%: %s of %d calls; two rounds: median %s apart, nine in ten within %s, the best of the first right in the second %s\n",
			c.name(), len(c.cells), percent(quantile(errors, 0.5)), percent(aims[c.shares].median),
			percent(quantile(errors, 0.9)), percent(aims[c.shares].most), quantile(collect(c.cells, cell.ratio), 0.5),
			percent(share(l, near)), len(l),
			percent(quantile(collect(c.cells, cell.spread), 0.5)), percent(quantile(collect(c.cells, cell.spread), 0.9)),
			percent(share(losses(decisions(secondRounds(c.cells), byFirstRound)), near)))
	}
	for _, c := range r.classes() {
		fmt.Fprintf(&b, "\n%s\n", c.name())
		for _, g := range c.groups() {
			fmt.Fprintf(&b, "  %-40s", g.name)
			for _, x := range g.ratios {
				fmt.Fprintf(&b, " %6s", x)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// A group is the ratios of an algorithm, of each number of ranks and size.
type group struct {
	name   string
	ratios []string
}

// groups returns the ratios of each algorithm by size.
func (c class) groups() (all []group) {
	for _, x := range c.cells {
		name := fmt.Sprintf("%s %s %d", x.Collective, x.Algorithm, x.Ranks)
		if n := len(all); n == 0 || all[n-1].name != name {
			if i := slices.IndexFunc(all, func(g group) bool { return g.name == name }); i >= 0 {
				all[i].ratios = append(all[i].ratios, fmt.Sprintf("%.2f", x.ratio()))
				continue
			}
			all = append(all, group{name: name})
		}
		all[len(all)-1].ratios = append(all[len(all)-1].ratios, fmt.Sprintf("%.2f", x.ratio()))
	}
	return all
}

//go:embed intro.md
var intro string

// write writes the page and its picture into a directory.
func (r *report) write(dir string) error {
	for _, file := range []struct{ name, text string }{{"truth.md", r.page()}, {"truth.svg", r.chart()}} {
		if err := os.WriteFile(filepath.Join(dir, file.name), []byte(file.text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// page returns the page.
func (r *report) page() string {
	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "\n%s, by `%s`, on %s (%s, %s): %d cells, each the middle of %s.\n", r.Date, r.Command, r.profile.Node.Origin.System,
		plural(r.profile.Node.Processors, "processor"), r.quietness(), len(r.cells), plural(r.Rounds, "round"))
	b.WriteString("\n![Measured against simulated time of every cell](truth.svg)\n")
	b.WriteString("\n## The errors\n\n| ranks | cells | median error | aim | nine in ten within | aim | median of measured / simulated | rounds apart: median | nine in ten within |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, c := range r.classes() {
		errors := collect(c.cells, cell.error)
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %.2f | %s | %s |\n", c.name(), len(c.cells),
			percent(quantile(errors, 0.5)), percent(aims[c.shares].median), percent(quantile(errors, 0.9)), percent(aims[c.shares].most), quantile(collect(c.cells, cell.ratio), 0.5),
			percent(quantile(collect(c.cells, cell.spread), 0.5)), percent(quantile(collect(c.cells, cell.spread), 0.9)))
	}
	b.WriteString(r.distribution())
	b.WriteString(r.decisionTable())
	b.WriteString(r.worst())
	return b.String()
}

// bounds are those of the classes of the distribution, in measured over simulated time.
var bounds = []float64{0.5, 0.65, 0.85, 1.15, 1.5, 2}

// distribution returns the table of how many ratios are between the bounds.
func (r *report) distribution() string {
	var b strings.Builder
	b.WriteString("\nThe distribution: the share of cells whose measured time over the simulated one is\n\n| ranks |")
	for i, bound := range bounds {
		if i == 0 {
			fmt.Fprintf(&b, " to %g |", bound)
		} else {
			fmt.Fprintf(&b, " %g to %g |", bounds[i-1], bound)
		}
	}
	fmt.Fprintf(&b, " beyond %g |\n|---|%s\n", bounds[len(bounds)-1], strings.Repeat("--:|", len(bounds)+1))
	for _, c := range r.classes() {
		fmt.Fprintf(&b, "| %s |", c.name())
		x, before := collect(c.cells, cell.ratio), 0.0
		for _, bound := range append(slices.Clone(bounds), math.Inf(1)) {
			part := share(x, bound)
			fmt.Fprintf(&b, " %s |", percent(part-before))
			before = part
		}
		b.WriteString("\n")
	}
	return b.String()
}

// decisionTable returns how good the choices are.
func (r *report) decisionTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## The decisions\n\nA decision is the choice among the algorithms of a collective, for a transport, a number of ranks and a size. It is right if the algorithm that takes the least time in the simulation takes, measured, at most %s more than the best. The aim is %s of the decisions.\n\nBy measurement means: the algorithm that was the best in the first round, with the times of the last one. That is how well the machine predicts itself.\n\n| ranks | decisions | right | right by measurement | loss of nine in ten, at most | greatest loss |\n|---|--:|--:|--:|--:|---|\n", percent(near-1), percent(rightShare))
	for _, c := range r.classes() {
		all := decisions(c.cells, bySimulation)
		l := losses(all)
		if len(all) == 0 {
			continue
		}
		worst := slices.MaxFunc(all, func(a, b decision) int { return cmp.Compare(a.loss(), b.loss()) })
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s: %s takes %.1f times as long as %s |\n", c.name(), len(all), percent(share(l, near)),
			percent(share(losses(decisions(secondRounds(c.cells), byFirstRound)), near)), percent(quantile(l, 0.9)-1), worst.call, worst.chosen.Algorithm, worst.loss(), worst.best.Algorithm)
	}
	return b.String()
}

// worstCells is how many cells of a class are listed.
const worstCells = 6

// worst returns the cells whose times differ most, with the reason.
func (r *report) worst() string {
	var b strings.Builder
	b.WriteString("\n## The worst cells\n\nThe reasons are likely ones, by rules: a cell whose rounds are more than 50 % apart has that for a reason, whatever others there are. ~ marks a time that is not stable.\n\n| call | algorithm | measured µs | simulated µs | likely reason |\n|---|---|--:|--:|---|\n")
	for _, c := range r.classes() {
		farthest := slices.SortedFunc(slices.Values(c.cells), func(a, b cell) int {
			return -cmp.Compare(math.Abs(math.Log(a.ratio())), math.Abs(math.Log(b.ratio())))
		})
		for _, x := range farthest[:min(len(farthest), worstCells)] {
			fmt.Fprintf(&b, "| %s, n=%d, %s, %s | %s | %s%s | %s | %s |\n", x.Collective, x.Ranks, algo.FormatBytes(x.Bytes), x.Transport, x.Algorithm,
				unsteady(x), digits(x.Median), digits(*x.Simulated), reason(x, c.shares))
		}
	}
	return b.String()
}

func unsteady(c cell) string {
	if c.Stable {
		return ""
	}
	return "~"
}

func (r *report) quietness() string {
	text := "which was quiet"
	if !r.profile.Node.Origin.Quiet {
		text = "which was not quiet"
	}
	for _, l := range r.profile.Links {
		if !l.Origin.Quiet {
			text = "which was not quiet"
		}
	}
	return text
}
