package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// text prints the report for a terminal.
func (r *report) text(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s\n%s; the %s of a row, the median of %s\n", r.Date, r.Command, r.Machine, r.Statistic, plural(r.Rounds, "full run"))
	for _, note := range r.notes() {
		fmt.Fprintln(w, note)
	}
	fmt.Fprintln(w)
	for _, c := range r.Results {
		fmt.Fprintln(w, c.title())
		for _, s := range c.ByRanks {
			fmt.Fprintf(w, "  n=%d: median %s, minimum %s, %d of %d below 1", s.Ranks, s.medianAndRange(), digits(s.Minimum), s.Below, s.Cells)
			if s.ToLimit > 0 {
				fmt.Fprintf(w, "; ours %s times the limit, the peer's %s", digits(s.ToLimit), digits(s.PeerToLimit))
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintln(w, "\npeer's best over ours; in parentheses our time and the peer's, in µs; in brackets our context switches of a call and the peer's; ! where we are slower; × our time over the machine's limit")
	for _, table := range r.tables() {
		fmt.Fprintf(w, "\n%s\n", table.title)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, l := range table.lines {
			fmt.Fprintf(t, "%s\t%s", l.collective, short(l.bytes))
			for i, column := range table.columns {
				mark := ""
				x, ok := l.cells[i]
				if !ok {
					fmt.Fprint(t, "\t")
					continue
				}
				if x.Ratio < 1 {
					mark = "!"
				}
				fmt.Fprintf(t, "\t%s %s%s (%s, %s)%s", column.name, digits(x.Ratio), mark, digits(x.Ours.Time), digits(x.Peers[0].Time), x.switches())
				if x.Limit != nil {
					fmt.Fprintf(t, " ×%s", digits(x.toLimit()))
				}
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// switches returns the context switches of a call on both sides, or "" if they are not
// counted.
func (x ratio) switches() string {
	if x.Ours.Switches == nil || x.Peers[0].Switches == nil {
		return ""
	}
	return fmt.Sprintf(" [%s, %s]", digits(*x.Ours.Switches), digits(*x.Peers[0].Switches))
}

// digits formats a number with about three digits.
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

// short formats a number of bytes, as in 64 Ki.
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
