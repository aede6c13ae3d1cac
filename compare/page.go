package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The texts above the figures.
var (
	//go:embed intro.md
	intro string
	//go:embed intro_hosts.md
	introHosts string
)

// name returns the name of the report's files, without what comes after the dot.
func (r *report) name() string {
	if r.Page == "" {
		return "performance"
	}
	return "performance-" + r.Page
}

// write writes the report's .json, .svg and .md into a directory, and no other file.
func (r *report) write(dir string) error {
	for i := range r.Results {
		r.Results[i].ByRanks = summarize(r.Results[i].Cells)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	for _, first := range []string{"results", "collective", "part", "transport", "limits", "setups", "side"} { // a cell has a line
		data = bytes.ReplaceAll(data, []byte(`{"`+first+`":`), []byte("\n{\""+first+`":`))
	}
	for _, file := range []struct{ suffix, text string }{
		{".json", string(data) + "\n"},
		{".svg", r.chart()},
		{".md", r.page()},
	} {
		if err := os.WriteFile(filepath.Join(dir, r.name()+file.suffix), []byte(file.text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// page returns the .md.
func (r *report) page() string {
	var b strings.Builder
	if r.Hosts {
		b.WriteString(introHosts)
	} else {
		b.WriteString(intro)
	}
	fmt.Fprintf(&b, "\n%s, by `%s`: the %s of a row, the median of %s. %s.\n\n", r.Date, r.Command, r.Statistic, plural(r.Rounds, "full run"), r.Machine)
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	b.WriteString(r.summaries())
	fmt.Fprintf(&b, "\n![The ratio of every cell of the collectives](%s.svg)\n", r.name())
	b.WriteString(r.limitsSection())
	b.WriteString(r.setupsSection())
	b.WriteString("\n## Every cell\n")
	for _, t := range r.tables() {
		b.WriteString(t.markdown())
	}
	b.WriteString(r.switches())
	return b.String()
}

// markdown returns a table with its heading.
func (t table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n| call | bytes |", t.title)
	rule := "\n|---|--:|"
	for _, c := range t.columns {
		fmt.Fprintf(&b, " %s |", c.name)
		rule += "--:|"
		if c.limits {
			b.WriteString(" × limit |")
			rule += "--:|"
		}
	}
	b.WriteString(rule + "\n")
	for _, l := range t.lines {
		fmt.Fprintf(&b, "| %s | %s |", l.collective, short(l.bytes))
		for i, c := range t.columns {
			x, ok := l.cells[i]
			if ok {
				b.WriteString(" " + x.markdown())
			}
			b.WriteString(" |")
			if c.limits && x.Limit != nil {
				b.WriteString(" " + digits(x.toLimit()))
			}
			if c.limits {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// switches returns the tables of context switches, or nothing if none were counted.
func (r *report) switches() string {
	var b strings.Builder
	for _, c := range r.Results {
		t := newTable(c.title(), []comparison{c.oversubscribed(r.Machine.Cores)})
		if len(t.lines) == 0 || c.Against == againstOurControl {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n## Context switches\n\nHow often the processors leave a process of the job for another, in a call of all ranks together: ours, and the peer's whose time counts. Where ranks outnumber the processors, that decides the time of a short call.\n")
		}
		fmt.Fprintf(&b, "\n### Context switches, %s\n\n| collective | bytes |", t.title)
		for _, column := range t.columns {
			fmt.Fprintf(&b, " %s: ours | peer |", column.name)
		}
		b.WriteString("\n|---|--:|" + strings.Repeat("--:|--:|", len(t.columns)) + "\n")
		for _, l := range t.lines {
			fmt.Fprintf(&b, "| %s | %s |", l.collective, short(l.bytes))
			for i := range t.columns {
				if x, ok := l.cells[i]; ok {
					fmt.Fprintf(&b, " %s | %s |", digits(*x.Ours.Switches), digits(*x.Peers[0].Switches))
				} else {
					b.WriteString(" | |")
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// summaries returns the table of medians, with a column for each number of ranks.
func (r *report) summaries() string {
	var b strings.Builder
	ranks := r.ranks()
	b.WriteString("\n| ours |")
	for _, n := range ranks {
		fmt.Fprintf(&b, " n=%d: median | least | below 1 |", n)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|--:|--:|", len(ranks)) + "\n")
	for _, c := range r.Results {
		fmt.Fprintf(&b, "| %s |", c.title())
		for _, n := range ranks {
			s, ok := c.summary(n)
			if !ok {
				b.WriteString(" | | |")
				continue
			}
			fmt.Fprintf(&b, " %s | %s | %d of %d |", s.medianAndRange(), digits(s.Minimum), s.Below, s.Cells)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// summary returns the summary for a number of ranks.
func (c comparison) summary(n int) (summary, bool) {
	i := slices.IndexFunc(c.ByRanks, func(s summary) bool { return s.Ranks == n })
	if i < 0 {
		return summary{}, false
	}
	return c.ByRanks[i], true
}

// medianAndRange returns the median, with the least and the greatest of the rounds'.
func (s summary) medianAndRange() string {
	if len(s.Runs) < 2 {
		return digits(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", digits(s.Median), digits(slices.Min(s.Runs)), digits(slices.Max(s.Runs)))
}

// limitsSection returns what the machine allowed, and how far both sides are from it; "" if
// that was not measured.
func (r *report) limitsSection() string {
	if len(r.Limits) == 0 || r.Limits[0].CacheLine == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## Distance to the machine's limits\n\nThe least time of each run, in µs. Of a copy's two figures, the first is that on pages of 4 KiB, and the second that on huge pages.\n\n| run | crossing of a cache line | exchange over TCP |")
	for _, c := range r.Limits[0].Copy {
		fmt.Fprintf(&b, " copy of %s |", short(c.Bytes))
	}
	b.WriteString("\n|---|--:|--:|" + strings.Repeat("--:|", len(r.Limits[0].Copy)) + "\n")
	for i, l := range r.Limits {
		fmt.Fprintf(&b, "| %d | %s | %s |", i+1, digits(l.CacheLine), digits(l.Loopback))
		for _, c := range l.Copy {
			b.WriteString(" " + digits(c.Time))
			if c.Huge > 0 {
				b.WriteString(", " + digits(c.Huge))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nThe limit of a cell is the least time that any algorithm takes on such a machine, by [a simple model](performance-method.md#limits) and these times, which are measured right before the cell. The medians of both sides' times over it, ours first:\n\n| ours |")
	ranks := r.ranks()
	for _, n := range ranks {
		fmt.Fprintf(&b, " n=%d: ours | peer's |", n)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|--:|", len(ranks)) + "\n")
	for _, c := range r.Results {
		if c.Against == againstOurControl || !slices.ContainsFunc(c.ByRanks, func(s summary) bool { return s.ToLimit > 0 }) {
			continue
		}
		fmt.Fprintf(&b, "| %s |", c.title())
		for _, n := range ranks {
			if s, ok := c.summary(n); ok && s.ToLimit > 0 {
				fmt.Fprintf(&b, " %s | %s |", digits(s.ToLimit), digits(s.PeerToLimit))
			} else {
				b.WriteString(" | |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// setupsSection returns how the peers ran; "" if that was not recorded.
func (r *report) setupsSection() string {
	if len(r.Setups) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## How the peers ran\n\nOf several configurations of a library, the best one counts, cell by cell.\n\n| library | ranks | command | why |\n|---|---|---|---|\n")
	for i, s := range r.Setups {
		why := s.Why
		if i > 0 && r.Setups[i-1].Side == s.Side {
			why = ""
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", s.Side, list(s.Ranks), s.Command, why)
	}
	return b.String()
}

// otherPages is the least factor between the peer's times on the two kinds of pages that a
// cell shows.
const otherPages = 1.3

// markdown returns the content of a table's cell.
func (x ratio) markdown() string {
	number := digits(x.Ratio)
	if x.Ratio < 1 {
		number = "**" + number + "**"
	}
	if x.unsteady() {
		number += "†"
	}
	peer := digits(x.Peers[0].Time)
	if small, huge := x.bestPeer(false), x.bestPeer(true); small > 0 && huge > 0 && max(small, huge) > otherPages*min(small, huge) {
		peer += "/" + digits(max(small, huge))
	}
	return fmt.Sprintf("%s (%s, %s)", number, digits(x.Ours.Time), peer)
}
