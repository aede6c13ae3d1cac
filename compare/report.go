package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// A report is the result of a comparison. Its JSON form is docs/performance.json or
// docs/performance-hosts.json, of which the .md and .svg of the same name are made.
type report struct {
	Date      string       `json:"date"`
	Command   string       `json:"command"`
	Machine   machine      `json:"machine"`
	Rounds    int          `json:"rounds"`
	Statistic string       `json:"figure"`          // of a round's samples: median or min
	Hosts     bool         `json:"hosts,omitempty"` // the ranks were on several hosts
	Results   []comparison `json:"results"`
}

// A comparison holds all cells of one of our transports, with a rotating or with a
// fixed root.
type comparison struct {
	Transport string    `json:"transport"`
	Root      string    `json:"root"` // "each" for a rotating root, or the fixed one
	ByRanks   []summary `json:"byRanks"`
	Cells     []ratio   `json:"cells"`
}

// A summary is the ratios of the cells with one number of ranks. Numbers of ranks are
// not summed up: with more ranks than processors, both sides do something else.
type summary struct {
	Ranks   int     `json:"n"`
	Cells   int     `json:"cells"`
	Median  float64 `json:"median"`
	Minimum float64 `json:"minimum"`
	Below   int     `json:"below"` // the number of ratios below 1
}

// summarize returns the summaries of cells, by the number of ranks.
func summarize(cells []ratio) (all []summary) {
	ratios := map[int][]float64{}
	for _, x := range cells {
		ratios[x.Ranks] = append(ratios[x.Ranks], x.Ratio)
	}
	for _, n := range slices.Sorted(maps.Keys(ratios)) {
		s := summary{n, len(ratios[n]), median(ratios[n]), slices.Min(ratios[n]), 0}
		for _, x := range ratios[n] {
			if x < 1 {
				s.Below++
			}
		}
		all = append(all, s)
	}
	return all
}

// A ratio is the best peer's time over ours, the median of the rounds. Within a round
// both sides meet the same state of the machine; between rounds it may change.
type ratio struct {
	Collective string   `json:"collective"`
	Ranks      int      `json:"n"`
	Bytes      int      `json:"bytes"`
	Ratio      float64  `json:"ratio"`
	Ours       timing   `json:"ours"`
	Peers      []timing `json:"peers"` // the best one first
}

// A timing is the time of one algorithm for a cell, in microseconds.
type timing struct {
	How    string    `json:"how"`    // our algorithm, or a peer's name and function
	Time   float64   `json:"time"`   // the median of the rounds
	Rounds []float64 `json:"rounds"` // 0 for a round without a time

	// Switches are the context switches of a call, of all ranks together: the median of
	// the rounds, or nil if they were not counted.
	Switches *float64 `json:"switches,omitempty"`
}

func timingOf(s series) timing {
	t := timing{How: s.name, Time: median(slices.DeleteFunc(slices.Clone(s.rounds), func(t float64) bool { return t == 0 })), Rounds: s.rounds}
	if len(s.switches) > 0 {
		n := median(s.switches)
		t.Switches = &n
	}
	return t
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
	r := &report{Date: began.UTC().Format(time.DateOnly), Command: command, Machine: thisMachine(), Rounds: m.rounds, Statistic: s.statistic, Hosts: s.hosts > 0}
	for _, root := range []string{rotatingRoot, fixedRoot} {
		for _, side := range m.sides {
			if !side.ours() {
				continue
			}
			if c := m.compare(side, root); len(c.Cells) > 0 {
				r.Results = append(r.Results, c)
			}
		}
	}
	return r
}

// compare compares one of ours with its peers.
func (m *measurements) compare(ours side, root string) comparison {
	result := comparison{Transport: ours.transport, Root: rootName(root)}
	for _, c := range m.order {
		mine, peers := m.series[ours.String()][c], m.peers(ours, c)
		if c.root != root || len(mine) == 0 || len(peers) == 0 {
			continue
		}
		ratios := m.ratios(mine[0], peers)
		if len(ratios) == 0 {
			continue
		}
		x := ratio{Collective: c.collective, Ranks: c.ranks, Bytes: c.bytes, Ratio: median(ratios), Ours: timingOf(mine[0])}
		for _, p := range peers {
			x.Peers = append(x.Peers, timingOf(p))
		}
		slices.SortStableFunc(x.Peers, func(a, b timing) int { return cmp.Compare(a.Time, b.Time) })
		result.Cells = append(result.Cells, x)
	}
	result.ByRanks = summarize(result.Cells)
	return result
}

// peers returns the times of our peers for a cell.
func (m *measurements) peers(ours side, c cell) (all []series) {
	for _, peer := range m.sides {
		if !peer.ours() && peer.transport == peerOf(ours.transport) {
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
	against := "Open MPI and MPICH over shared memory"
	if peerOf(c.Transport) == "tcp" {
		against = "Open MPI over TCP"
	}
	title := c.Transport + " against " + against
	if c.Transport == betweenHosts {
		title = "between hosts, against Open MPI"
	}
	if c.Root != rootName(rotatingRoot) {
		title += ", every call with root " + c.Root
	}
	return title
}

// A line holds the ratios of one collective and size, by the number of ranks.
type line struct {
	collective string
	bytes      int
	byRanks    map[int]ratio
}

// oversubscribed returns the comparison of the short calls of more ranks than processors
// whose context switches were counted on both sides.
func (c comparison) oversubscribed(processors int) comparison {
	c.Cells = slices.DeleteFunc(slices.Clone(c.Cells), func(x ratio) bool {
		return x.Ranks <= processors || x.Bytes > 1<<10 || x.Ours.Switches == nil || x.Peers[0].Switches == nil
	})
	return c
}

// lines returns the cells as the lines of a table, and the numbers of ranks, which
// are its columns.
func (c comparison) lines() (lines []line, ranks []int) {
	for _, x := range c.Cells {
		i := slices.IndexFunc(lines, func(l line) bool { return l.collective == x.Collective && l.bytes == x.Bytes })
		if i < 0 {
			i = len(lines)
			lines = append(lines, line{x.Collective, x.Bytes, map[int]ratio{}})
		}
		lines[i].byRanks[x.Ranks] = x
		if !slices.Contains(ranks, x.Ranks) {
			ranks = append(ranks, x.Ranks)
		}
	}
	slices.Sort(ranks)
	return lines, ranks
}
