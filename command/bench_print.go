package command

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
)

// print prints the rows.
func (m *measurement) print(w io.Writer, format string) error {
	switch format {
	case "json":
		return printJSON(w, m)
	case "csv":
		return printCSV(w, m.Rows)
	case "gobench":
		return m.printGobench(w)
	}
	return m.printTable(w)
}

// printTable prints what most readers want, so that it fits a terminal, or with wide all
// that was measured.
func (m *measurement) printTable(w io.Writer) error {
	if len(m.Rows) == 0 {
		return nil
	}
	lines := [][]string{{"COLLECTIVE", "ALGORITHM", "TRANSPORT", "N", "BYTES", "MEDIAN µs", "MB/s", ""}}
	columns := lineWidth
	if m.wide {
		columns = math.MaxInt
		lines[0] = []string{"COLLECTIVE", "ALGORITHM", "TRANSPORT", "N", "BYTES", "CALLS", "MIN µs", "MEDIAN µs", "P99 µs", "MEAN µs", "SWITCHES", "MB/s", "x COPY", "x EXCHANGE", ""}
	}
	predicted := m.predictionNote()
	if predicted != "" {
		lines[0] = slices.Insert(lines[0], len(lines[0])-1, "SIM µs", "x SIM")
	}
	notes := m.config.rootNotes()
	unstable, unsure := false, false
	for _, r := range m.Rows {
		line := []string{r.Collective, r.Algorithm, r.Transport, strconv.Itoa(r.Ranks), algo.FormatBytes(r.Bytes)}
		if m.wide {
			line = append(line, strconv.Itoa(r.Iterations), digits(r.Min), medianText(r), digits(r.P99), digits(r.Mean), switchesText(r.Switches),
				digitsOrDash(r.Bandwidth), digitsOrDash(r.ToCopy), digitsOrDash(r.ToExchange))
		} else {
			line = append(line, medianText(r), digitsOrDash(r.Bandwidth))
		}
		if predicted != "" {
			line = append(line, digitsOrNothing(r.Simulated), digitsOrNothing(r.ToSimulated))
		}
		lines = append(lines, append(line, remark(r)))
		unstable = unstable || !r.Stable
		unsure = unsure || r.Winner && !r.Stable
		if r.Winner && r.Selected != r.Algorithm {
			notes = append(notes, fmt.Sprintf("%s of %s, n=%d, %s: a call selects %s, not %s", r.Collective, algo.FormatBytes(r.Bytes), r.Ranks, r.Transport, r.Selected, r.Algorithm))
		}
	}
	if err := printRows(w, lines, 5, 3, columns); err != nil {
		return err
	}
	if unstable {
		notes = append(notes, "~ is not stable to 1 % yet: a longer --time may help")
	}
	if predicted != "" {
		notes = append(notes, predicted)
	}
	if unsure {
		notes = append(notes, "*? is the fastest by a median that is not stable")
	}
	fmt.Fprintln(w)
	for _, text := range append(notes, limitsText(m.Limits)) {
		if _, err := fmt.Fprintln(w, hang(text, "")); err != nil {
			return err
		}
	}
	return nil
}

// medianText formats the median, and marks one that is not stable.
func medianText(r bench.Row) string {
	if r.Stable {
		return digits(r.Median)
	}
	return "~" + digits(r.Median)
}

// remark is what there is to say about a row: that it wins, or what overlaps.
func remark(r bench.Row) string {
	switch {
	case r.Overlap != nil:
		return fmt.Sprintf("%.0f%% hidden", 100**r.Overlap)
	case r.Winner && !r.Stable:
		return "*?"
	case r.Winner:
		return "*"
	}
	return ""
}

// switchesText formats a number of context switches, which may be unknown.
func switchesText(n *float64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatFloat(*n, 'f', 2, 64)
}

// limitsText returns the machine's limits as a sentence.
func limitsText(l bench.Limits) string {
	var copies []string
	for _, c := range l.Copy {
		copies = append(copies, fmt.Sprintf("%s %s", algo.FormatBytes(c.Bytes), digits(c.Time)))
	}
	text := "This machine, in µs: "
	if len(copies) > 0 {
		text += "copy of " + strings.Join(copies, ", ") + "; "
	}
	return text + fmt.Sprintf("exchange of a cache line %s, pinned %s, of 8 bytes over TCP %s",
		digitsOrDash(l.CacheLine), digitsOrDash(l.Pinned), digitsOrDash(l.Loopback))
}

// digits formats a number with three digits; from a thousand on, as an integer.
func digits(x float64) string {
	switch {
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// digitsOrDash is digits, and - for a number that is 0 because it is unknown.
func digitsOrDash(x float64) string {
	if x == 0 {
		return "-"
	}
	return digits(x)
}

// digitsOrNothing is digits, and - for a number that is unknown.
func digitsOrNothing(x *float64) string {
	if x == nil {
		return "-"
	}
	return digits(*x)
}

// printGobench prints the format of Go's benchmarks. benchstat can group by each key
// of a name.
func (m *measurement) printGobench(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "goos: %s\ngoarch: %s\n", runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	for _, r := range m.Rows {
		bandwidth := ""
		if r.Bytes > 0 {
			bandwidth = fmt.Sprintf("\t%.2f MB/s", r.Bandwidth)
		}
		_, err := fmt.Fprintf(w, "Benchmark%s/algorithm=%s/transport=%s/n=%d/bytes=%d-%d\t%d\t%.1f ns/op\t%.1f p99-ns/op%s\n",
			upper(r.Collective), r.Algorithm, r.Transport, r.Ranks, r.Bytes, runtime.GOMAXPROCS(0),
			r.Iterations, 1000*r.Median, 1000*r.P99, bandwidth)
		if err != nil {
			return err
		}
	}
	return nil
}

// upper returns the name of a collective in Go, as in ReduceScatter.
func upper(collective string) string {
	name := ""
	for word := range strings.SplitSeq(collective, "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}
