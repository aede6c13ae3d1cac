package command

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
)

// maxCompared is how many steps the table has at most: those that differ most.
const maxCompared = 32

func (c *comparison) print(w io.Writer, title string) error {
	say := func(format string, args ...any) {
		for _, line := range wrap(fmt.Sprintf(format, args...), lineWidth) {
			fmt.Fprintln(w, line)
		}
	}
	say("%s", title)
	say("%s at %s, of which the faster %d are compared", plural(c.Calls, "call"), c.Line, c.Compared)
	say("real %s from when the last rank came, on average", secondsText(c.Real))
	say("%s", c.simulatedText())
	fmt.Fprintln(w)
	shown := slices.Clone(c.Steps)
	if len(shown) > maxCompared {
		slices.SortStableFunc(shown, func(a, b comparedStep) int {
			return cmp.Compare(math.Abs(b.differs()), math.Abs(a.differs()))
		})
		shown = shown[:maxCompared]
		slices.SortFunc(shown, func(a, b comparedStep) int { return a.Step - b.Step })
	}
	lines := [][]string{{"STEP", "MESSAGES", "WORDS", "SIM", "REAL", "DIFFERENCE", "LAST"}}
	shares := func(s comparedShare) []string {
		return []string{sharePercent(s.Simulated), sharePercent(s.Real), fmt.Sprintf("%+.1f", 100*s.differs())}
	}
	for _, s := range shown {
		last := "-"
		if s.Last >= 0 {
			last = fmt.Sprintf("rank %d", s.Last)
		}
		line := append([]string{fmt.Sprint(s.Step), fmt.Sprint(s.Messages), fmt.Sprint(s.Words)}, shares(s.comparedShare)...)
		lines = append(lines, append(line, last))
	}
	lines = append(lines, append(append([]string{"rest", "", ""}, shares(c.Rest)...), ""))
	if err := printRows(w, lines, 0, 0, lineWidth); err != nil {
		return err
	}
	if n := len(c.Steps) - len(shown); n > 0 {
		say("%s that differ less are not shown", plural(n, "step"))
	}
	fmt.Fprintln(w)
	switch {
	case c.Parts > 0:
		first, widest := c.Steps[c.Parts-1], c.Steps[c.Widest-1]
		say("they part in step %d: %s of the real time, %s of the simulated", first.Step, sharePercent(first.Real), sharePercent(first.Simulated))
		if first.Step != widest.Step {
			say("they differ most in step %d: %s and %s", widest.Step, sharePercent(widest.Real), sharePercent(widest.Simulated))
		}
	case c.Widest > 0:
		say("no step's share differs by %.0f points", 100*partsBy)
	}
	for _, l := range c.Late[:min(len(c.Late), 4)] {
		say("%v", l)
	}
	for _, note := range c.Notes {
		say("note: %s", note)
	}
	return nil
}

// simulatedText says what the simulation takes: on a machine that was measured, in seconds.
func (c *comparison) simulatedText() string {
	if c.Transport != "" {
		text := fmt.Sprintf("simulated %s on this machine over %s", secondsText(c.Simulated*1e-6), c.Transport)
		if c.Simulated > 0 {
			text += fmt.Sprintf(", and the real time is %.3g times as long", c.Real/(c.Simulated*1e-6))
		}
		return text
	}
	text := fmt.Sprintf("simulated %.4g in the unit of ts", c.Simulated)
	if c.Simulated > 0 {
		text += ", of which 1 would be " + secondsText(c.Real/c.Simulated)
	}
	return text
}

func sharePercent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// secondsText formats a time with three digits.
func secondsText(seconds float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if seconds >= unit.size {
			return fmt.Sprintf("%.3g %s", seconds/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g ns", seconds*1e9)
}
