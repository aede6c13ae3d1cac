package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A report is what was found. Its JSON form is docs/performance.json.
type report struct {
	Date    string       `json:"date"`
	Command string       `json:"command"`
	Machine machine      `json:"machine"`
	Rounds  int          `json:"rounds"`
	Figure  string       `json:"figure"` // of a round's samples: median or min
	Results []comparison `json:"results"`
}

// A comparison is all cells of one of our transports, with roots that go round
// or with one root for all calls.
type comparison struct {
	Transport string  `json:"transport"`
	Root      string  `json:"root"`    // "each", or the root
	Median    float64 `json:"median"`  // of the ratios
	Minimum   float64 `json:"minimum"` // of the ratios
	Below     int     `json:"below"`   // how many ratios are below 1
	Cells     []ratio `json:"cells"`
}

// A ratio is how many times as long the best peer takes: the median of the
// rounds. In a round, both meet the same machine; between rounds it changes.
type ratio struct {
	Collective string   `json:"collective"`
	Ranks      int      `json:"n"`
	Bytes      int      `json:"bytes"`
	Ratio      float64  `json:"ratio"`
	Ours       timing   `json:"ours"`
	Peers      []timing `json:"peers"` // the best one first
}

// A timing is what one way took, in microseconds.
type timing struct {
	How    string    `json:"how"`    // our algorithm, or a peer's name and function
	Time   float64   `json:"time"`   // the median of the rounds
	Rounds []float64 `json:"rounds"` // 0 for a round that did not get to it
}

func timingOf(f figure) timing {
	return timing{f.name, median(slices.DeleteFunc(slices.Clone(f.rounds), func(t float64) bool { return t == 0 })), f.rounds}
}

// median returns the median of numbers, of which there is at least one.
func median(numbers []float64) float64 {
	s := slices.Sorted(slices.Values(numbers))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func newReport(s settings, m *measurements, began time.Time) *report {
	command := "make compare"
	if len(s.args) > 0 && !slices.Equal(s.args, []string{"--write"}) {
		command += fmt.Sprintf(" ARGS=%q", strings.Join(s.args, " "))
	}
	r := &report{Date: began.UTC().Format(time.DateOnly), Command: command, Machine: thisMachine(), Rounds: m.rounds, Figure: s.figure}
	for _, root := range []string{eachRoot, oneRoot} {
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
	var all []float64
	for _, c := range m.order {
		mine, peers := m.figures[ours.String()][c], m.peers(ours, c)
		if c.root != root || len(mine) == 0 || len(peers) == 0 {
			continue
		}
		ratios := m.ratios(mine[0], peers)
		if len(ratios) == 0 {
			continue
		}
		x := ratio{Collective: c.collective, Ranks: c.ranks, Bytes: c.bytes, Ratio: median(ratios), Ours: timingOf(mine[0])}
		for _, f := range peers {
			x.Peers = append(x.Peers, timingOf(f))
		}
		slices.SortStableFunc(x.Peers, func(a, b timing) int { return cmp.Compare(a.Time, b.Time) })
		if x.Ratio < 1 {
			result.Below++
		}
		all = append(all, x.Ratio)
		result.Cells = append(result.Cells, x)
	}
	if len(all) > 0 {
		result.Median, result.Minimum = median(all), slices.Min(all)
	}
	return result
}

// peers returns what the peers of one of ours took for a cell.
func (m *measurements) peers(ours side, c cell) (all []figure) {
	for _, peer := range m.sides {
		if !peer.ours() && peer.transport == peerOf(ours.transport) {
			all = append(all, m.figures[peer.String()][c]...)
		}
	}
	return all
}

// ratios returns the best peer's time over ours for each round that has both.
func (m *measurements) ratios(mine figure, peers []figure) (all []float64) {
	for round := range m.rounds {
		best := math.Inf(1)
		for _, f := range peers {
			if t := f.in(round); t > 0 {
				best = min(best, t)
			}
		}
		if t := mine.in(round); t > 0 && !math.IsInf(best, 1) {
			all = append(all, best/t)
		}
	}
	return all
}

// title says what a comparison is of.
func (c comparison) title() string {
	against := "Open MPI and MPICH over shared memory"
	if peerOf(c.Transport) == "tcp" {
		against = "Open MPI over TCP"
	}
	title := c.Transport + " against " + against
	if c.Root != rootName(eachRoot) {
		title += ", every call with root " + c.Root
	}
	return title
}

// A line is the ratios of one collective and size, by ranks.
type line struct {
	collective string
	bytes      int
	byRanks    map[int]ratio
}

// lines returns the cells as lines of a table, and the numbers of ranks that are
// its columns.
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

// text prints the report for a terminal.
func (r *report) text(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s\n%s; the %s of a row, the median of %s\n", r.Date, r.Command, r.Machine, r.Figure, plural(r.Rounds, "round"))
	fmt.Fprintln(w, "peer's best over ours; in brackets our time and the peer's, in µs; ! where we are slower")
	for _, c := range r.Results {
		fmt.Fprintf(w, "\n%s: median %s, minimum %s, %d of %d below 1\n", c.title(), digits(c.Median), digits(c.Minimum), c.Below, len(c.Cells))
		lines, ranks := c.lines()
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, l := range lines {
			fmt.Fprintf(t, "%s\t%s", l.collective, short(l.bytes))
			for _, n := range ranks {
				mark := ""
				x, ok := l.byRanks[n]
				if !ok {
					fmt.Fprint(t, "\t")
					continue
				}
				if x.Ratio < 1 {
					mark = "!"
				}
				fmt.Fprintf(t, "\tn=%d %s%s (%s, %s)", n, digits(x.Ratio), mark, digits(x.Ours.Time), digits(x.Peers[0].Time))
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// The generated part of docs/performance.md lies between these lines.
const (
	generated = "<!-- from here on, make compare writes -->"
	byHand    = "<!-- up to here -->"
)

// write writes the JSON, the chart, and the generated part of the page.
func (r *report) write(dir string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "performance.json"), append(data, '\n'), 0o666); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "performance.svg"), []byte(r.chart()), 0o666); err != nil {
		return err
	}
	page := filepath.Join(dir, "performance.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(text), generated)
	_, after, ok2 := strings.Cut(rest, byHand)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no place for the figures: want the lines %s and %s", page, generated, byHand)
	}
	return os.WriteFile(page, []byte(before+generated+"\n"+r.markdown()+byHand+after), 0o666)
}

// markdown is the generated part of the page.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, by `%s`: the %s of a row, the median of %s. %s.\n\n", r.Date, r.Command, r.Figure, plural(r.Rounds, "round"), r.Machine)
	b.WriteString("| ours | cells | median ratio | least ratio | cells below 1 |\n|---|--:|--:|--:|--:|\n")
	for _, c := range r.Results {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %d |\n", c.title(), len(c.Cells), digits(c.Median), digits(c.Minimum), c.Below)
	}
	b.WriteString("\n![The ratio of every cell, as in the tables below](performance.svg)\n")
	for _, c := range r.Results {
		lines, ranks := c.lines()
		fmt.Fprintf(&b, "\n### %s\n\n| collective | bytes |", c.title())
		for _, n := range ranks {
			fmt.Fprintf(&b, " n=%d |", n)
		}
		b.WriteString("\n|---|--:|" + strings.Repeat("--:|", len(ranks)) + "\n")
		for _, l := range lines {
			fmt.Fprintf(&b, "| %s | %s |", l.collective, short(l.bytes))
			for _, n := range ranks {
				b.WriteString(" " + l.byRanks[n].markdown() + " |")
			}
			b.WriteString("\n")
		}
	}
	return b.String() + "\n"
}

func (x ratio) markdown() string {
	if x.Ratio == 0 {
		return ""
	}
	number := digits(x.Ratio)
	if x.Ratio < 1 {
		number = "**" + number + "**"
	}
	return fmt.Sprintf("%s (%s, %s)", number, digits(x.Ours.Time), digits(x.Peers[0].Time))
}

// digits writes a number with about three digits.
func digits(x float64) string {
	decimals := 2
	switch {
	case x >= 100:
		decimals = 0
	case x >= 10:
		decimals = 1
	case x < 0.1:
		decimals = 3
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// short writes a number of bytes, as in 64 Ki.
func short(n int) string {
	unit := ""
	for _, u := range []string{" Ki", " Mi", " Gi"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return strconv.Itoa(n) + unit
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
