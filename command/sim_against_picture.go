package command

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/sim"
)

// comparisonPictures draw a comparison, by the extension of their files.
var comparisonPictures = map[string]func(io.Writer, draw.Comparison) error{
	".svg": draw.Compare, ".html": draw.ComparePage, ".json": draw.CompareTrace,
}

// comparisonPicture returns what draws a comparison in a file.
func comparisonPicture(output string) (func(io.Writer, draw.Comparison) error, error) {
	extension := strings.ToLower(filepath.Ext(output))
	if output == "-" {
		extension = ".svg"
	}
	if p := comparisonPictures[extension]; p != nil {
		return p, nil
	}
	if recipe := conversion(output, extension); recipe != "" {
		return nil, callErrorf("-o %s: want a file that ends in .svg, then %s", output, recipe)
	}
	return nil, callErrorf("-o %s: want a file that ends in .svg, .html or .json, or - for an SVG on standard output", output)
}

// writePicture draws the comparison of a call, of which r is the simulation.
func (c *comparison) writePicture(cmd *cobra.Command, output, title string, r *sim.Result) error {
	write, err := comparisonPicture(output)
	if err != nil {
		return err
	}
	var picture bytes.Buffer
	if err := write(&picture, c.picture(title, r)); err != nil {
		return callError{err}
	}
	if output == "-" {
		_, err := cmd.OutOrStdout().Write(picture.Bytes())
		return err
	}
	return writeAtomically(output, picture.Bytes())
}

// picture returns the comparison as it is drawn: the shares of steps are means of the calls that
// are compared, and those of ranks are of the median one.
func (c *comparison) picture(title string, r *sim.Result) draw.Comparison {
	p := draw.Comparison{
		Title: title, Simulated: c.Simulated, Real: c.Real, Rest: draw.ComparedShare(c.Rest), Ranks: make([]draw.ComparedRank, c.P),
		Note: fmt.Sprintf("%s at %s. Above, the mean of the faster %d; below, the ranks in the median of these. Either whole is as wide as the axis.", plural(c.Calls, "call"), c.Line, c.Compared),
	}
	if c.Transport != "" {
		p.Unit = "µs"
	}
	if c.Parts > 0 {
		p.Note += fmt.Sprintf(" Real and simulated part in step %d.", c.Parts)
	}
	for _, l := range c.Late[:min(len(c.Late), 4)] {
		p.Notes = append(p.Notes, l.String())
	}
	p.Notes = append(p.Notes, c.Notes...)
	for _, s := range c.Steps {
		p.Steps = append(p.Steps, draw.ComparedStep{ComparedShare: draw.ComparedShare(s.comparedShare), Parts: math.Abs(s.differs()) >= partsBy})
	}
	begin, whole := float64(c.typical.begin()), float64(c.typical.time())
	share := func(x, of float64) float64 {
		if of <= 0 {
			return 0
		}
		return min(max(x/of, 0), 1)
	}
	for rank, steps := range ownSteps(r) {
		simulated, real := 0.0, 0.0
		for own, s := range steps {
			if own >= len(c.typical[rank].Steps) {
				break
			}
			span := draw.ComparedSpan{Step: s.step, SimulatedStart: simulated, RealStart: real}
			span.RealEnd = max(real, share(float64(c.typical[rank].Steps[own])-begin, whole))
			real = span.RealEnd
			if s.step < 0 {
				continue // local copies alone
			}
			span.SimulatedEnd = max(simulated, share(s.end, r.Time))
			simulated = span.SimulatedEnd
			span.Parts = math.Abs((span.RealEnd-span.RealStart)-(span.SimulatedEnd-span.SimulatedStart)) >= partsBy
			p.Ranks[rank] = append(p.Ranks[rank], span)
		}
	}
	return p
}

// An ownStep is a step of a rank's program: the last step of the timeline to which its messages
// belong, -1 if there are none, and when the last of them ends.
type ownStep struct {
	step int
	end  float64
}

// ownSteps returns the steps of each rank's program.
func ownSteps(r *sim.Result) [][]ownStep {
	ranks := make([][]ownStep, r.Ranks)
	note := func(rank, own int, m sim.Message) {
		for len(ranks[rank]) <= own {
			ranks[rank] = append(ranks[rank], ownStep{step: -1})
		}
		s := &ranks[rank][own]
		s.step, s.end = max(s.step, m.Step), max(s.end, m.End)
	}
	for _, m := range r.Log {
		note(m.From, m.SendStep, m)
		note(m.To, m.RecvStep, m)
	}
	return ranks
}
