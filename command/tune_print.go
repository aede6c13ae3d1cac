package command

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
)

// printTuned prints a profile, and where it is.
func printTuned(w io.Writer, p *model.Profile, file string) error {
	path, err := profilePath(file)
	if err != nil {
		return err
	}
	links, note := namedLinks(p)
	for _, lines := range [][][]string{messageLines(links), nodeLines(&p.Node), costLines(links)} {
		if err := printRows(w, lines, 0, len(lines[0]), lineWidth); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	text := "memory, in GB/s copied:"
	for _, b := range p.Node.Memory {
		rate := model.Estimate{Value: b.Rate.Value / 1000, Low: b.Rate.Low / 1000, High: b.Rate.High / 1000}
		text += fmt.Sprintf(" %s by %s,", withInterval(rate), plural(b.Movers, "processor"))
	}
	text += fmt.Sprintf(" shared from %s on", algo.FormatBytes(p.Node.MemoryFrom))
	fmt.Fprintf(w, "%s\n", hang(text, "  "))
	for _, line := range note {
		fmt.Fprintf(w, "%s\n", hang(line, "  "))
	}
	const legend = "The ± is of an interval of 95 %; ~ marks a number whose interval is wider than itself, and - what was not measured, or cannot be told from the sizes. A residual is the median distance of what was measured from the line."
	_, err = fmt.Fprintf(w, "\n%s\n\nprofile: %s\n", hang(legend, ""), path)
	return err
}

// A namedLink is a link with what a table calls it.
type namedLink struct {
	name string
	model.Link
}

// namedLinks returns the links of a profile, and what else there is to say of its hosts.
func namedLinks(p *model.Profile) (links []namedLink, note []string) {
	for _, l := range p.Links {
		links = append(links, namedLink{l.Transport, l})
	}
	for i, l := range p.HostLinks {
		name := "between hosts"
		if len(p.HostLinks) > 1 {
			name += " " + strconv.Itoa(i+1)
		}
		links = append(links, namedLink{name, l.Link})
		note = append(note, name+": "+somePairs(l.Pairs))
	}
	for _, c := range p.OtherHosts {
		note = append(note, "unlike the other hosts, and not shown: "+strings.Join(c.Hosts, ", "))
	}
	return links, note
}

// somePairs lists pairs of hosts, but not many.
func somePairs(pairs []model.HostPair) string {
	const most = 8
	var names []string
	for _, p := range pairs[:min(len(pairs), most)] {
		names = append(names, p[0]+"–"+p[1])
	}
	if more := len(pairs) - most; more > 0 {
		names = append(names, "and "+plural(more, "other pair"))
	}
	return strings.Join(names, ", ")
}

// messageLines are the table of the curves of messages: a line begins with the time of its
// first bytes, because its start-up may be far from all that was measured.
func messageLines(links []namedLink) [][]string {
	lines := [][]string{{"MESSAGES", "FROM", "µs", "±", "GB/s", "±", "RESIDUAL"}}
	curve := func(name string, c model.Curve) {
		for _, piece := range c {
			time := c.Time(float64(piece.From))
			speed, apart := "-", "-"
			if p := piece.PerByte; width(p) < 1 {
				speed, apart = digits(1/(1000*p.Value)), plusMinus(p)
			}
			lines = append(lines, []string{
				name, algo.FormatBytes(piece.From), digits(time), plusMinus(piece.Time), speed, apart, tenths(piece.Residual),
			})
			name = ""
		}
	}
	for _, l := range links {
		curve(l.name, l.OneWay)
		curve(l.name+", crossing", l.Exchange)
		curve(l.name+", sending", l.Send)
		curve(l.name+", receiving", l.Receive)
	}
	return lines
}

// nodeLines are the table of copies and combinations: GB/s by size.
func nodeLines(n *model.Node) [][]string {
	sizes := []int{1 << 10, 16 << 10, 256 << 10, 4 << 20, 16 << 20}
	head := []string{"GB/s OF"}
	for _, bytes := range sizes {
		head = append(head, algo.FormatBytes(bytes))
	}
	lines := [][]string{append(head, "RESIDUAL")}
	add := func(name string, c model.Curve) {
		line, residual := []string{name}, 0.0
		for _, bytes := range sizes {
			speed := "-"
			if took := c.Time(float64(bytes)); took > 0 {
				speed = digits(float64(bytes) / 1000 / took)
			}
			line = append(line, speed)
		}
		for _, piece := range c {
			residual = max(residual, piece.Residual)
		}
		lines = append(lines, append(line, tenths(residual)))
	}
	add("copy", n.Copy)
	for _, c := range n.Combine {
		add(strings.TrimSpace(c.Op+" "+c.Type), c.Curve)
	}
	return lines
}

// printSelections prints the rules for some transports, and where they are.
func printSelections(w io.Writer, p *model.Profile, transports []string, file string) error {
	path, err := profilePath(file)
	if err != nil {
		return err
	}
	for _, s := range p.Selections {
		if !slices.Contains(transports, s.Transport) {
			continue
		}
		note := s.Transport + ": no algorithm is faster than the built-in choices"
		if len(s.Rules) > 0 {
			lines := [][]string{{"OVER " + s.Transport, "n", "BYTES", "µs", "x BUILT-IN", "ALGORITHM"}}
			ratios := make([]float64, len(s.Rules))
			for i, r := range s.Rules {
				ratios[i] = r.Time / r.BuiltInTime
				lines = append(lines, []string{
					r.Collective, strconv.Itoa(r.Ranks), algo.FormatBytes(r.From) + "–" + algo.FormatBytes(r.To),
					digits(r.Time), strconv.FormatFloat(ratios[i], 'f', 2, 64), r.Algorithm,
				})
			}
			if err := printTable(w, lines); err != nil {
				return err
			}
			slices.Sort(ratios)
			note = fmt.Sprintf("\n%s: %s: a call takes %s %% of the built-in choice's time in the median, and %s %% at best (the machine was %s)",
				s.Transport, plural(len(s.Rules), "rule"), percent(ratios[len(ratios)/2], 1), percent(ratios[0], 1), quietText(s.Origin))
		}
		if _, err := fmt.Fprintf(w, "%s\n\n", hang(note, "  ")); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "profile: %s\n", path)
	return err
}

// costLines are the table of the numbers without a curve.
func costLines(links []namedLink) [][]string {
	lines := [][]string{{"µs PER", "CALL", "STEP", "ISSUE", "SWITCH", "WAITS FROM", "SPREAD", "MACHINE"}}
	for _, l := range links {
		line := []string{l.name}
		for _, e := range []model.Estimate{l.Call, l.Step, l.Gap, l.Switch} {
			line = append(line, withInterval(e))
		}
		waits := "-"
		if len(l.Send) > 0 {
			waits = algo.FormatBytes(l.RendezvousFrom)
		}
		lines = append(lines, append(line, waits, strconv.FormatFloat(100*l.Origin.Spread, 'f', 0, 64)+"%", quietText(l.Origin)))
	}
	return lines
}

// width returns how far an interval reaches from its value, relative to that.
func width(e model.Estimate) float64 {
	if e.Value <= 0 {
		return math.Inf(1)
	}
	return max(e.Value-e.Low, e.High-e.Value) / e.Value
}

// plusMinus formats the width of an interval.
func plusMinus(e model.Estimate) string {
	switch part := width(e); {
	case part == 0 || e.Value <= 0: // it is bounded by another number, or not measured
		return "-"
	case part >= 1:
		return "±>100%"
	case part >= 0.0995:
		return "±" + strconv.FormatFloat(100*part, 'f', 0, 64) + "%"
	default:
		return "±" + tenths(part)
	}
}

// withInterval formats a number that was measured, with its interval.
func withInterval(e model.Estimate) string {
	switch {
	case e == model.Estimate{}:
		return "-"
	case width(e) >= 1:
		return "~" + digits(e.Value)
	}
	return strings.TrimSuffix(digits(e.Value)+" "+plusMinus(e), " -")
}

// tenths formats a part of one in percent.
func tenths(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + "%" }

func quietText(o model.Origin) string {
	if o.Quiet {
		return "quiet"
	}
	return "not quiet"
}
