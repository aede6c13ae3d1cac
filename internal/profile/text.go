package profile

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// columns is how wide the text is at most.
const columns = 80

// WriteText writes the report as a table.
func (r *Report) WriteText(w io.Writer) error {
	of := ""
	if r.Records != r.Ranks {
		of = fmt.Sprintf(", %d have told", r.Records)
		if r.Records == 1 {
			of = ", 1 has told"
		}
	}
	waiting := "waiting unknown across hosts"
	if r.Waiting != nil {
		waiting = percent(*r.Waiting, r.Elapsed) + " waiting for late ranks"
	}
	ranks := fmt.Sprintf("profile: %d %s%s, %s;", r.Ranks, plural(r.Ranks), of, seconds(r.Elapsed))
	spent := fmt.Sprintf("%s of it in calls, %s", percent(min(r.Time, r.Elapsed), r.Elapsed), waiting)
	between := " "
	if utf8.RuneCountInString(ranks+between+spent) > columns {
		between = "\n  "
	}
	fmt.Fprintln(w, ranks+between+spent)
	if len(r.Lines) == 0 {
		_, err := fmt.Fprintln(w, "no calls")
		return err
	}
	table := r.table(widths[0])
	for _, width := range widths[1:] {
		if !slices.ContainsFunc(table, func(line string) bool { return utf8.RuneCountInString(line) > columns }) {
			break
		}
		table = r.table(width)
	}
	for _, line := range r.shorten(table) {
		fmt.Fprintln(w, line)
	}
	for _, line := range r.late() {
		fmt.Fprintln(w, line)
	}
	for _, line := range r.explain() {
		fmt.Fprintln(w, line)
	}
	if r.Measured < 0.995 {
		fmt.Fprintf(w, "waiting is from %s of the calls of collectives, spread evenly\n", percent(r.Measured, 1))
	}
	if r.Copy != nil {
		fmt.Fprintf(w, "this machine copies %sB/s in memory: %d MiB, one thread, the best of %d\n", amount(*r.Copy), copyBytes>>20, copies)
	}
	_, err := fmt.Fprintln(w, "CALLS and BYTES are sums over the P ranks, TIME/P and B/s are means")
	return err
}

// shorten returns the lines of a table that is too wide with numbers instead of algorithms
// that have no room, and the algorithms behind them.
func (r *Report) shorten(table []string) []string {
	var names []string
	for i, line := range table {
		if utf8.RuneCountInString(line) <= columns {
			continue
		}
		name := r.Lines[i-1].Algorithm // below the heading, which is short enough
		if name == "" {
			continue
		}
		number := slices.Index(names, name)
		if number < 0 {
			number, names = len(names), append(names, name)
		}
		table[i] = strings.TrimSuffix(line, name) + fmt.Sprintf("[%d]", number+1)
	}
	for i, name := range names {
		line := []rune(fmt.Sprintf("[%d] %s", i+1, name))
		for ; len(line) > columns; line = append([]rune("    "), line[columns:]...) {
			table = append(table, string(line[:columns]))
		}
		table = append(table, string(line))
	}
	return table
}

// lateMin is the part of the job's time that ranks have waited in a line, at least, for the
// text to name the rank that came last; lateMax is how many lines it does so for.
const lateMin, lateMax = 0.05, 4

// late says for whom the ranks have waited.
func (r *Report) late() (lines []string) {
	for i := range r.Lines {
		l := &r.Lines[i]
		if l.Late != nil && *l.Waiting >= lateMin*r.Elapsed && len(lines) < lateMax {
			lines = append(lines, fmt.Sprintf("%s %s: %s of the waiting was for rank %d", l.where(widths[1]), l.Call, percent(l.Late.Share, 1), l.Late.Rank))
		}
	}
	return lines
}

// explainMax is how many calls the text names the command of.
const explainMax = 3

// explain returns the commands that explain the calls that take the longest, and a line above
// them. A long command goes on below itself, as a shell takes it.
func (r *Report) explain() (lines []string) {
	var known []string
	for i := range r.Lines {
		text := r.Lines[i].Explain
		if text == "" || slices.Contains(known, text) || len(known) == explainMax {
			continue
		}
		known = append(known, text)
		line := " "
		for word := range strings.FieldsSeq(text) {
			if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word)+len(" \\") > columns {
				lines, line = append(lines, line+" \\"), "   "
			}
			line += " " + word
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return nil
	}
	return append([]string{"what the longest calls should take, and why:"}, lines...)
}

// table returns the lines of the table. Of a place it has so many characters at most.
func (r *Report) table(width int) []string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "WHERE\tCALL\tCALLS\tBYTES\tTIME/P\tWAIT\tMAX/MEAN\tB/s\tALGORITHM")
	for i := range r.Lines {
		l := &r.Lines[i]
		waiting := "-"
		if l.Waiting != nil {
			waiting = percent(*l.Waiting, l.Time)
		}
		algorithm := l.Algorithm
		if algorithm == "" {
			algorithm = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\n", l.where(width), l.Call, amount(float64(l.Calls)), amount(float64(l.Bytes)),
			seconds(l.Time), waiting, l.Balance, amount(l.Bandwidth), algorithm)
	}
	t.Flush()
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// widths are how many characters of a place are shown, of its end: the first with which
// the table is narrow enough, or else the last.
var widths = []int{40, 32, 24, 21, 18}

func (l *Line) where(width int) string {
	if l.File == "" {
		return "others"
	}
	where := []rune(l.File + ":" + strconv.Itoa(l.Row.Line))
	if len(where) > width {
		return "…" + string(where[len(where)-width+1:])
	}
	return string(where)
}

// amount formats a number with three digits, and k, M, G or T for powers of 1000.
func amount(x float64) string {
	unit := ""
	for _, next := range []string{"k", "M", "G", "T"} {
		if x < 999.5 {
			break
		}
		x, unit = x/1000, next
	}
	return strconv.FormatFloat(x, 'g', 3, 64) + unit
}

func seconds(s float64) string {
	switch d := time.Duration(s * 1e9); {
	case d >= 100*time.Second:
		return fmt.Sprintf("%.0fs", s)
	case d >= time.Second:
		return fmt.Sprintf("%.3gs", s)
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3gms", s*1e3)
	}
	return fmt.Sprintf("%.3gµs", s*1e6)
}

func percent(part, whole float64) string {
	if whole <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", 100*part/whole)
}

func plural(n int) string {
	if n == 1 {
		return "rank"
	}
	return "ranks"
}
