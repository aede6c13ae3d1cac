package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// intro is the text above the figures.
//
//go:embed intro.md
var intro string

// write writes performance.json, .svg and .md into a directory, and no other file.
func (r *report) write(dir string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	for _, file := range []struct{ name, text string }{
		{"performance.json", string(data) + "\n"},
		{"performance.svg", r.chart()},
		{"performance.md", r.page()},
	} {
		if err := os.WriteFile(filepath.Join(dir, file.name), []byte(file.text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// page returns docs/performance.md.
func (r *report) page() string {
	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "\n%s, by `%s`: the %s of a row, the median of %s. %s.\n\n", r.Date, r.Command, r.Statistic, plural(r.Rounds, "round"), r.Machine)
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
