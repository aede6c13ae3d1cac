package command

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
)

// printTuned prints a profile, and where it is.
func printTuned(w io.Writer, p *model.Profile, file string) error {
	path, err := profilePath(file)
	if err != nil {
		return err
	}
	lines := [][]string{{"CURVE", "FROM", "START-UP µs", "95 %", "GB/s", "95 %", "RESIDUAL"}}
	curve := func(name string, c model.Curve) {
		for _, piece := range c {
			lines = append(lines, []string{
				name, algo.FormatBytes(piece.From),
				signed(piece.Startup.Value), rangeText(piece.Startup, func(x float64) float64 { return x }),
				speed(piece.PerByte.Value), rangeText(piece.PerByte, gigabytes),
				strconv.FormatFloat(100*piece.Residual, 'f', 1, 64) + " %",
			})
			name = ""
		}
	}
	for _, l := range p.Links {
		curve(l.Transport, l.OneWay)
		curve(l.Transport+":exchange", l.Exchange)
		curve(l.Transport+":send", l.Send)
		curve(l.Transport+":receive", l.Receive)
	}
	curve("copy", p.Node.Copy)
	for _, c := range p.Node.Combine {
		curve("sum:"+c.Type, c.Curve)
	}
	if err := printTable(w, lines); err != nil {
		return err
	}
	fmt.Fprintln(w)
	lines = [][]string{{"µs PER", "CALL", "STEP", "ISSUED", "SWITCH", "RENDEZVOUS", "MACHINE", "SPREAD"}}
	for _, l := range p.Links {
		lines = append(lines, []string{l.Transport, digits(l.Call.Value), digits(l.Step.Value), digits(l.Gap.Value), digits(l.Switch.Value),
			algo.FormatBytes(l.RendezvousFrom), quietText(l.Origin), strconv.FormatFloat(100*l.Origin.Spread, 'f', 0, 64) + " %"})
	}
	if err := printTable(w, lines); err != nil {
		return err
	}
	text := "memory, in GB/s copied:"
	for _, b := range p.Node.Memory {
		text += fmt.Sprintf(" %s by %s,", digits(b.Rate.Value/1000), plural(b.Movers, "processor"))
	}
	text += fmt.Sprintf(" shared from %s on", algo.FormatBytes(p.Node.MemoryFrom))
	_, err = fmt.Fprintf(w, "\n%s\n\nprofile: %s\n", hang(text, ""), path)
	return err
}

// gigabytes returns the speed in GB/s of a time per byte in µs.
func gigabytes(perByte float64) float64 { return 1 / (1000 * perByte) }

// speed formats the speed of a time per byte, which may be too short to be seen.
func speed(perByte float64) string {
	if perByte == 0 {
		return "-"
	}
	return digits(gigabytes(perByte))
}

// rangeText formats the interval of an estimate, in another unit.
func rangeText(e model.Estimate, unit func(float64) float64) string {
	lo, hi := unit(e.Low), unit(e.High)
	return signed(min(lo, hi)) + "…" + signed(max(lo, hi))
}

// signed is digits, for a number that may be below 0 or without a bound.
func signed(x float64) string {
	switch {
	case math.Abs(x) > 1e9:
		return "∞"
	case x < 0:
		return "−" + digits(-x)
	}
	return digits(x)
}

func quietText(o model.Origin) string {
	if o.Quiet {
		return "quiet"
	}
	return "not quiet"
}
