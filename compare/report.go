package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A report is the result of a comparison. Its JSON form is docs/performance.json or
// docs/performance-hosts.json, of which the .md and .svg of the same name are made.
type report struct {
	Date      string       `json:"date"`
	Command   string       `json:"command"`
	Machine   machine      `json:"machine"`
	Rounds    int          `json:"rounds"`           // full runs
	Statistic string       `json:"figure"`           // of a round's samples: median or min
	Hosts     bool         `json:"hosts,omitempty"`  // the ranks were on several hosts
	Page      string       `json:"page,omitempty"`   // what follows performance- in the files' names
	Limits    []limits     `json:"limits,omitempty"` // of the machine, in each round
	Setups    []setup      `json:"setups,omitempty"`
	Omitted   []string     `json:"omitted,omitempty"` // what was not measured, and why
	Results   []comparison `json:"results"`
}

// A comparison holds all cells of a part over one of our transports, with a rotating or with
// a fixed root.
type comparison struct {
	Part      string    `json:"part,omitempty"` // "" for collectives
	Transport string    `json:"transport"`
	Against   string    `json:"against,omitempty"` // "" for all of MPI that was measured
	Root      string    `json:"root"`              // "each" for a rotating root, or the fixed one
	ByRanks   []summary `json:"byRanks"`
	Cells     []ratio   `json:"cells"`
}

// A comparison with others than all of MPI is with one of these.
const (
	againstOurControl = "Open MPI, both with reno"
	againstGloo       = "Gloo"
)

// opponents returns the peers that one of ours is compared with, by what a comparison is
// against.
func opponents(ours side) map[string]func(side) bool {
	all := map[string]func(side) bool{
		"": func(s side) bool { return s.name != gloo.name },
	}
	if ours.transport == "tcp" {
		all[againstOurControl] = func(s side) bool { return s.config == ourCongestion }
		all[againstGloo] = func(s side) bool { return s.name == gloo.name }
	}
	return all
}

// A summary is the ratios of the cells with one number of ranks. Numbers of ranks are
// not summed up: with more ranks than processors, both sides do something else.
type summary struct {
	Ranks   int     `json:"n"`
	Cells   int     `json:"cells"`
	Median  float64 `json:"median"`
	Minimum float64 `json:"minimum"`
	Below   int     `json:"below"` // the number of ratios below 1

	Runs     []float64 `json:"runs"`     // the median of each round
	Unsteady int       `json:"unsteady"` // the number of cells whose rounds differ by more than unsteady

	// ToLimit and PeerToLimit are medians, over the cells with a limit, of our time and of
	// the best peer's over the limit; 0 for none.
	ToLimit     float64 `json:"toLimit,omitempty"`
	PeerToLimit float64 `json:"peerToLimit,omitempty"`
}

// unsteady is the least factor between a cell's ratios in two rounds that marks the cell.
const unsteady = 1.5

// summarize returns the summaries of cells, by the number of ranks.
func summarize(cells []ratio) (all []summary) {
	byRanks := map[int][]ratio{}
	for _, x := range cells {
		byRanks[x.Ranks] = append(byRanks[x.Ranks], x)
	}
	for _, n := range slices.Sorted(maps.Keys(byRanks)) {
		var ratios, ours, peers []float64
		runs := map[int][]float64{}
		s := summary{Ranks: n, Cells: len(byRanks[n])}
		for _, x := range byRanks[n] {
			ratios = append(ratios, x.Ratio)
			if x.Ratio < 1 {
				s.Below++
			}
			if x.unsteady() {
				s.Unsteady++
			}
			for round := range x.Ours.Rounds {
				if r := x.in(round); r > 0 {
					runs[round] = append(runs[round], r)
				}
			}
			if x.Limit != nil {
				ours = append(ours, x.Ours.Time/x.Limit.Time)
				peers = append(peers, x.Peers[0].Time/x.Limit.Time)
			}
		}
		s.Median, s.Minimum = median(ratios), slices.Min(ratios)
		for _, round := range slices.Sorted(maps.Keys(runs)) {
			s.Runs = append(s.Runs, significant(median(runs[round])))
		}
		if ours != nil {
			s.ToLimit, s.PeerToLimit = significant(median(ours)), significant(median(peers))
		}
		all = append(all, s)
	}
	return all
}

// in returns the best peer's time over ours in a round, or 0.
func (x ratio) in(round int) float64 {
	best := 0.0
	for _, p := range x.Peers {
		if round < len(p.Rounds) {
			best = leastOf(best, p.Rounds[round])
		}
	}
	if round >= len(x.Ours.Rounds) || x.Ours.Rounds[round] == 0 {
		return 0
	}
	return best / x.Ours.Rounds[round]
}

// unsteady reports whether the ratios of two rounds differ by more than the factor unsteady.
func (x ratio) unsteady() bool {
	var all []float64
	for round := range x.Ours.Rounds {
		if r := x.in(round); r > 0 {
			all = append(all, r)
		}
	}
	return len(all) > 1 && slices.Max(all) > unsteady*slices.Min(all)
}

// A ratio is the best peer's time over ours, the median of the rounds. Within a round
// both sides meet the same state of the machine; between rounds it may change.
type ratio struct {
	Collective string   `json:"collective"`
	Ranks      int      `json:"n"`
	Bytes      int      `json:"bytes"`
	Ratio      float64  `json:"ratio"`
	Ours       timing   `json:"ours"`
	Peers      []timing `json:"peers"`           // the best one first
	Limit      *timing  `json:"limit,omitempty"` // of the machine; nil if there is none
}

// A timing is the time of one algorithm for a cell, in microseconds.
type timing struct {
	How    string    `json:"how,omitempty"` // our algorithm, or a peer's name and function
	Time   float64   `json:"time"`          // the median of the rounds
	Rounds []float64 `json:"rounds"`        // 0 for a round without a time

	// Switches are the context switches of a call, of all ranks together: the median of
	// the rounds, or nil if they were not counted.
	Switches *float64 `json:"switches,omitempty"`
}

func timingOf(s series) timing {
	t := timing{How: s.name}
	for _, time := range s.rounds {
		t.Rounds = append(t.Rounds, significant(time))
	}
	t.Time = median(slices.DeleteFunc(slices.Clone(t.Rounds), func(t float64) bool { return t == 0 }))
	if len(s.switches) > 0 {
		n := significant(median(s.switches))
		t.Switches = &n
	}
	return t
}

// significant returns a number with five significant digits, which is more than any
// measurement has.
func significant(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 5, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

// median returns the median of one number or more.
func median(numbers []float64) float64 {
	s := slices.Sorted(slices.Values(numbers))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func newReport(s settings, m *measurements, began time.Time) *report {
	command := "make compare"
	if len(s.args) > 0 && !slices.Equal(s.args, []string{"--write"}) {
		command += fmt.Sprintf(" ARGS=%q", strings.Join(s.args, " "))
	}
	r := &report{Date: began.UTC().Format(time.DateOnly), Command: command, Machine: thisMachine(), Rounds: m.rounds, Statistic: s.statistic,
		Hosts: s.hosts > 0, Page: s.page, Limits: m.machine}
	if !r.Hosts {
		r.Setups = setups(s, m.sides)
	}
	for _, part := range []string{collectives, messages, forms} {
		for _, against := range []string{"", againstOurControl, againstGloo} {
			for _, root := range []string{rotatingRoot, fixedRoot} {
				for _, side := range m.sides {
					if !side.ours() {
						continue
					}
					if c := m.compare(side, part, root, against); len(c.Cells) > 0 {
						r.Results = append(r.Results, c)
					}
				}
			}
		}
	}
	return r
}

// compare compares the cells of a part with a root over one of our transports.
func (m *measurements) compare(ours side, part, root, against string) comparison {
	result := comparison{Transport: ours.transport, Root: rootName(root), Against: against}
	if part != collectives {
		result.Part = part
	}
	among := opponents(ours)[against]
	if among == nil {
		return result
	}
	for _, c := range m.order {
		if c.root != root || partOf(c.collective) != part {
			continue
		}
		mine, peers := m.series[ours.String()][c], m.peers(ours, c, among)
		if len(mine) == 0 || len(peers) == 0 {
			continue
		}
		ratios := m.ratios(mine[0], peers)
		if len(ratios) == 0 {
			continue
		}
		x := ratio{Collective: c.collective, Ranks: c.ranks, Bytes: c.bytes, Ratio: significant(median(ratios)), Ours: timingOf(mine[0])}
		for _, p := range peers {
			x.Peers = append(x.Peers, timingOf(p))
		}
		slices.SortStableFunc(x.Peers, func(a, b timing) int { return cmp.Compare(a.Time, b.Time) })
		if l := m.limits[ours.String()][c]; l != nil {
			t := timingOf(*l)
			x.Limit = &t
		}
		result.Cells = append(result.Cells, x)
	}
	result.ByRanks = summarize(result.Cells)
	return result
}

// peers returns the times of our peers for a cell, of those that are chosen.
func (m *measurements) peers(ours side, c cell, chosen func(side) bool) (all []series) {
	for _, peer := range m.sides {
		if !peer.ours() && peer.transport == peerOf(ours.transport) && chosen(peer) {
			all = append(all, m.series[peer.String()][c]...)
		}
	}
	return all
}

// ratios returns the best peer's time over ours for each round that has both.
func (m *measurements) ratios(mine series, peers []series) (all []float64) {
	for round := range m.rounds {
		best := math.Inf(1)
		for _, p := range peers {
			if t := p.in(round); t > 0 {
				best = min(best, t)
			}
		}
		if t := mine.in(round); t > 0 && !math.IsInf(best, 1) {
			all = append(all, best/t)
		}
	}
	return all
}

// title names a comparison.
func (c comparison) title() string {
	title := c.Transport + " against " + c.opponent()
	if c.Transport == betweenHosts {
		title = "between hosts, against Open MPI"
	}
	if c.Part != "" {
		title = c.Part + ", " + title
	}
	if c.Root != rootName(rotatingRoot) {
		title += ", every call with root " + c.Root
	}
	return title
}

// opponent names what a comparison is against.
func (c comparison) opponent() string {
	switch {
	case c.Against != "":
		return c.Against
	case peerOf(c.Transport) == "tcp":
		return "Open MPI over TCP"
	}
	return "Open MPI and MPICH over shared memory"
}

// A table has a line for each call and size, and a column for each comparison and number of
// ranks.
type table struct {
	title   string
	columns []column
	lines   []line
}

// A column is a comparison with a number of ranks.
type column struct {
	name   string
	limits bool // some of its cells have a limit
}

// A line holds the ratios of one collective and size, by the column.
type line struct {
	collective string
	bytes      int
	cells      map[int]ratio
}

// oversubscribed returns the comparison of the short calls of more ranks than processors
// whose context switches were counted on both sides.
func (c comparison) oversubscribed(processors int) comparison {
	c.Cells = slices.DeleteFunc(slices.Clone(c.Cells), func(x ratio) bool {
		return x.Ranks <= processors || x.Bytes > 1<<10 || x.Ours.Switches == nil || x.Peers[0].Switches == nil
	})
	c.ByRanks = summarize(c.Cells)
	return c
}

// tables returns the tables of all cells: one for each comparison of collectives, and one for
// each other part, with our transports as columns.
func (r *report) tables() (all []table) {
	for _, c := range r.Results {
		switch {
		case c.Against == againstOurControl: // its cells are in the tables against all of MPI
		case c.Part == "":
			all = append(all, newTable(c.title(), []comparison{c}))
		case !slices.ContainsFunc(all, func(t table) bool { return t.title == c.Part+partAgainst }):
			var those []comparison
			for _, other := range r.Results {
				if other.Part == c.Part && other.Against == "" {
					those = append(those, other)
				}
			}
			all = append(all, newTable(c.Part+partAgainst, those))
		}
	}
	return all
}

// partAgainst ends the title of a table of several transports.
const partAgainst = " against Open MPI and MPICH"

func newTable(title string, those []comparison) table {
	t := table{title: title}
	for _, c := range those {
		first := len(t.columns)
		for _, s := range c.ByRanks {
			name := fmt.Sprintf("n=%d", s.Ranks)
			if len(those) > 1 || c.Part != "" {
				name = c.Transport + ", " + name
			}
			t.columns = append(t.columns, column{name: name})
		}
		for _, x := range c.Cells {
			i := slices.IndexFunc(t.lines, func(l line) bool { return l.collective == x.Collective && l.bytes == x.Bytes })
			if i < 0 {
				i = len(t.lines)
				t.lines = append(t.lines, line{x.Collective, x.Bytes, map[int]ratio{}})
			}
			at := first + slices.IndexFunc(c.ByRanks, func(s summary) bool { return s.Ranks == x.Ranks })
			t.lines[i].cells[at] = x
			if x.Limit != nil {
				t.columns[at].limits = true
			}
		}
	}
	return t
}

// toLimit returns our time over the machine's limit, or 0 if there is none.
func (x ratio) toLimit() float64 {
	if x.Limit == nil {
		return 0
	}
	return x.Ours.Time / x.Limit.Time
}
