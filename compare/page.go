package main

import (
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
	if r.Hosts {
		return "performance-hosts"
	}
	return "performance"
}

// write writes the report's .json, .svg and .md into a directory, and no other file.
func (r *report) write(dir string) error {
	for i := range r.Results {
		r.Results[i].ByRanks = summarize(r.Results[i].Cells)
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
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
	fmt.Fprintf(&b, "\n%s, by `%s`: the %s of a row, the median of %s. %s.\n\n", r.Date, r.Command, r.Statistic, plural(r.Rounds, "round"), r.Machine)
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	b.WriteString(r.summaries())
	fmt.Fprintf(&b, "\n![The ratio of every cell, as in the tables below](%s.svg)\n", r.name())
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
	b.WriteString(r.switches())
	return b.String()
}

// switches returns the tables of context switches, or nothing if none were counted.
func (r *report) switches() string {
	var b strings.Builder
	for _, c := range r.Results {
		lines, ranks := c.oversubscribed(r.Machine.Cores).lines()
		if len(lines) == 0 {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n## Context switches\n\nHow often the processors leave a process of the job for another, in a call of all ranks together: ours, and the peer's whose time counts. Where ranks outnumber the processors, that decides the time of a short call.\n")
		}
		fmt.Fprintf(&b, "\n### Context switches, %s\n\n| collective | bytes |", c.title())
		for _, n := range ranks {
			fmt.Fprintf(&b, " n=%d: ours | peer |", n)
		}
		b.WriteString("\n|---|--:|" + strings.Repeat("--:|--:|", len(ranks)) + "\n")
		for _, l := range lines {
			fmt.Fprintf(&b, "| %s | %s |", l.collective, short(l.bytes))
			for _, n := range ranks {
				if x, ok := l.byRanks[n]; ok {
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
			i := slices.IndexFunc(c.ByRanks, func(s summary) bool { return s.Ranks == n })
			if i < 0 {
				b.WriteString(" | | |")
				continue
			}
			s := c.ByRanks[i]
			fmt.Fprintf(&b, " %s | %s | %d of %d |", digits(s.Median), digits(s.Minimum), s.Below, s.Cells)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// markdown returns the content of a table's cell; "" for a ratio that is missing.
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
