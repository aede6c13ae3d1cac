package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/explain"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// partTexts say what the parts of a time are.
var partTexts = map[string]string{
	explain.Startups:   "the longest chain of messages, if they were empty",
	explain.Bytes:      "what their length adds",
	explain.Steps:      "what the call and its steps cost beside the messages",
	explain.Combining:  "what combining adds to that chain",
	explain.Copying:    "what copies within a rank add to it",
	explain.Ports:      "messages that wait for another one at the same rank",
	explain.Processors: "ranks that wait for another one on the same processor",
	explain.Network:    "messages that share the link of their host",
	explain.Memory:     "messages that share the memory",
	explain.Switching:  "processors that turn to another rank",
	explain.Other:      "what remains without all of these",
}

// print writes the explanation in words.
func (e *explanation) print(w io.Writer) error {
	var out strings.Builder
	say := func(format string, args ...any) {
		fmt.Fprintln(&out, hang(fmt.Sprintf(format, args...), "  "))
	}
	say("%s", e.what())
	say("%s", e.whyText())
	fmt.Fprintln(&out)
	e.sayTime(say)
	if err := e.printParts(&out); err != nil {
		return err
	}
	fmt.Fprintln(&out)
	if err := e.printCompared(&out); err != nil {
		return err
	}
	say("%s", e.pricesText())
	if err := e.printRanges(&out); err != nil {
		return err
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// what names the call.
func (e *explanation) what() string {
	text := e.Collective
	switch c, err := sched.ParseCollective(e.Collective); {
	case err != nil, c == sched.Barrier:
	case whole(c, 2, 1) == 1:
		text += " of " + bytesText(float64(e.Bytes))
	default:
		text += " of " + bytesText(float64(e.Bytes)) + " a part"
	}
	text += " by " + plural(e.Ranks, "rank")
	if e.Hosts != "" {
		text += " on hosts " + e.Hosts
	}
	text += " over " + e.Transport
	if e.Processors > 0 {
		text += ", " + plural(e.Processors, "processor")
	}
	return text
}

// whyText says what runs, and why.
func (e *explanation) whyText() string {
	if !e.Named {
		return fmt.Sprintf("runs %s: %s", e.Selected, e.Why)
	}
	if e.Selected == e.Algorithm {
		return fmt.Sprintf("by %s, which a call selects by itself: %s", e.Algorithm, e.Why)
	}
	return fmt.Sprintf("by %s, as --algorithm says; a call by itself runs %s: %s", e.Algorithm, e.Selected, e.Why)
}

// sayTime says what the call should take, and by what.
func (e *explanation) sayTime(say func(string, ...any)) {
	if e.Predicted == nil {
		say("What it takes is not predicted: %s.", e.NotPredicted)
		return
	}
	on := plural(e.Profile.Processors, "processor")
	if e.hosts() > 1 {
		on = fmt.Sprintf("%s of %s, with messages over %s between them,", plural(e.Profile.Hosts, "host"), on, e.Profile.Between)
	}
	by := fmt.Sprintf("simulated on %s by %s, the profile of host %s of %s", on, e.Profile.File, e.Profile.Host, e.Profile.Made.Format("2006-01-02"))
	if !e.Profile.Quiet {
		by += ", which was not quiet when it was measured"
	}
	say("It should take %s µs: %s.", digits(*e.Predicted), by)
}

// printParts prints where the time goes. It leaves out what nothing goes to.
func (e *explanation) printParts(out *strings.Builder) error {
	if e.Predicted == nil || *e.Predicted == 0 {
		return nil
	}
	lines := [][]string{{"PART", "µs", "%", "WHAT IT IS"}}
	for _, p := range e.Parts {
		if share := 100 * p.Time / *e.Predicted; share >= 0.05 || share <= -0.05 {
			lines = append(lines, []string{p.Name, signedDigits(p.Time), strconv.FormatFloat(share, 'f', 1, 64), partTexts[p.Name]})
		}
	}
	fmt.Fprintln(out)
	return printTable(out, lines)
}

// printCompared compares the prediction with what else is known.
func (e *explanation) printCompared(out *strings.Builder) error {
	head := []string{"COMPARED WITH", "µs", "RATIO", "WHAT IT IS"}
	if e.Prices == nil {
		head = []string{"COST", "TIME", "WHAT IT IS"}
	}
	lines := [][]string{head}
	add := func(name string, time float64, what string) {
		unit := ""
		if name == measuredName { // beside times in the textbook's unit
			unit = " µs"
		}
		line := []string{name, digits(time) + unit, what}
		if e.Prices != nil {
			ratio := "-"
			if e.Predicted != nil && time > 0 {
				ratio = digits(*e.Predicted / time)
			}
			line = []string{name, digits(time), ratio, what}
		}
		lines = append(lines, line)
	}
	of := ", of any algorithm"
	if e.hosts() > 1 {
		of += ", if messages between hosts cost as little as within one"
	}
	add("lower bound", e.LowerBound.time(), e.LowerBound.counts()+of)
	if e.Formula != nil {
		add("formula", e.Formula.time(), e.Formula.counts()+" = "+e.Formula.Text)
	}
	if len(e.Rivals) > 0 {
		next := e.Rivals[0]
		name, what := "runner-up", next.Algorithm
		if e.Predicted == nil || next.Time < *e.Predicted*(1-explain.Tolerance) {
			name = "faster"
		}
		for _, r := range e.Rivals[1:min(len(e.Rivals), otherRivals)] {
			what += fmt.Sprintf("; then %s, %s µs", r.Algorithm, digits(r.Time))
		}
		add(name, next.Time, what)
	}
	if m := e.Measured; m != nil {
		what := "the median of " + e.Algorithm + m.unsure()
		if len(e.Rivals) > 0 && e.Rivals[0].Measured != nil {
			other := e.Rivals[0]
			what += fmt.Sprintf("; of %s %s µs%s", other.Algorithm, digits(other.Measured.Median), other.Measured.unsure())
		}
		add(measuredName, m.Median, what)
	}
	return printTable(out, lines)
}

// measuredName is the name of the line that says what a call took.
const measuredName = "measured"

// otherRivals is how many other algorithms the text names.
const otherRivals = 3

// pricesText says what the letters of the costs are.
func (e *explanation) pricesText() string {
	p := e.Prices
	if p == nil {
		return fmt.Sprintf("ts is the start-up of a message, tw the time of a byte, top that of a byte combined. Times are for ts = %v, tw = %v, top = %v.", textbook.Ts, textbook.Tw, textbook.Top)
	}
	text := fmt.Sprintf("ts = %s µs, tw = %s µs a byte", threeDigits(p.Startup), threeDigits(p.PerByte))
	if p.Combine > 0 {
		text += fmt.Sprintf(", top = %s µs a byte combined", threeDigits(p.Combine))
	}
	text += ": the line on which a message of " + bytesText(float64(e.Bytes))
	if e.hosts() > 1 {
		text += " between hosts"
	}
	return text + " is."
}

// hosts returns on how many hosts the call is simulated, or 0.
func (e *explanation) hosts() int {
	if e.Profile == nil {
		return 0
	}
	return e.Profile.Hosts
}

// textbook is the model of a machine that was not measured.
var textbook = model.Default()

// counts writes a cost with the letters of its prices.
func (c *costGiven) counts() string {
	var terms []string
	for _, term := range []struct {
		count float64
		price string
	}{{c.Startups, "ts"}, {c.Bytes, "tw"}, {c.Combined, "top"}} {
		if term.count > 0 {
			terms = append(terms, formatShort(term.count)+" "+term.price)
		}
	}
	if terms == nil {
		return "0"
	}
	return strings.Join(terms, " + ")
}

// time is what a cost comes to, by the textbook's prices if there are no others.
func (c *costGiven) time() float64 {
	if c.Time != nil {
		return *c.Time
	}
	return textbook.Time(model.Cost{Startups: c.Startups, Words: c.Bytes, Combines: c.Combined})
}

// unsure says whether a median is not stable yet.
func (m *measuredTime) unsure() string {
	if m.Stable {
		return ""
	}
	return " (not stable to 1 %)"
}

// printRanges prints where the choice changes.
func (e *explanation) printRanges(out *strings.Builder) error {
	sizes := explain.Octaves(explain.MinBytes, explain.MaxBytes)
	if err := printChanges(out, "BYTES", "size", e.BySize, algo.FormatBytes, e.SimulatedSizes, sizes); err != nil {
		return err
	}
	return printChanges(out, "RANKS", "number", e.ByRanks, strconv.Itoa, e.SimulatedRanks, explain.Octaves(2, explain.MaxRanks))
}

// printChanges prints ranges of a quantity. It says how far the fastest of them were
// simulated unless that is all.
func printChanges(out *strings.Builder, quantity, point string, ranges []explain.Range, format func(int) string, simulated, all []int) error {
	if len(ranges) == 0 {
		return nil
	}
	lines := [][]string{{"FROM " + quantity, "A CALL RUNS", "WHY"}}
	if len(simulated) > 0 {
		lines[0] = slices.Insert(lines[0], 2, "FASTEST")
	}
	why := ""
	for _, r := range ranges[:min(len(ranges), maxRangeLines)] {
		line := []string{format(r.From), r.Selected, r.Why}
		if r.Why == why {
			line[2] = ""
		}
		if len(simulated) > 0 {
			line = slices.Insert(line, 2, cmp.Or(r.Fastest, "-"))
		}
		lines, why = append(lines, line), r.Why
	}
	fmt.Fprintln(out)
	if err := printTable(out, lines); err != nil {
		return err
	}
	if more := len(ranges) - maxRangeLines; more > 0 {
		fmt.Fprintf(out, "and %d more: --format json has all\n", more)
	}
	complete := !slices.ContainsFunc(all, func(x int) bool { return !slices.Contains(simulated, x) })
	if n := len(simulated); n > 0 && !complete {
		fmt.Fprintf(out, "FASTEST is simulated at %s alone, up to %s\n", plural(n, point), format(simulated[n-1]))
	}
	return nil
}

// maxRangeLines is how many lines a table of changes has.
const maxRangeLines = 10

// bytesText writes a number of bytes.
func bytesText(n float64) string {
	if n == 1 {
		return "1 byte"
	}
	return algo.FormatBytes(int(n)) + " bytes"
}

// threeDigits formats a number with three significant digits.
func threeDigits(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

// signedDigits is digits, of a number that may be below 0.
func signedDigits(x float64) string {
	if x < 0 {
		return "-" + digits(-x)
	}
	return digits(x)
}
