package command

import (
	"bytes"
	"image/color"
	"os"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/chorale-go/chorale/internal/explain"
)

// drawExplained draws the simulated times into the file of --plot: a panel against the size
// and one against the number of ranks.
func (x *explainer) drawExplained(e *explanation) error {
	var panels []*panel
	for _, of := range []struct {
		title, axis string
		samples     []explain.Sample
		ranges      []explain.Range
	}{
		{e.Collective + ", " + plural(e.Ranks, "rank") + ", " + e.Transport, "bytes", x.sizes, e.BySize},
		{e.Collective + ", " + bytesText(float64(e.Bytes)) + ", " + e.Transport, "ranks", x.numbers, e.ByRanks},
	} {
		if len(of.samples) == 0 {
			continue
		}
		p := newPanelOf(of.title, of.axis)
		if err := p.addSamples(of.samples, of.ranges, e.Algorithm); err != nil {
			return err
		}
		panels = append(panels, p)
	}
	var out bytes.Buffer
	if _, err := tile(panels).WriteTo(&out); err != nil {
		return err
	}
	return os.WriteFile(x.plot, out.Bytes(), 0o666)
}

// maxLines is how many algorithms a panel shows.
const maxLines = 6

// addSamples adds a line for each algorithm that is explained, that a call runs or that is the
// fastest somewhere, and below them a band of those that a call runs.
func (p *panel) addSamples(samples []explain.Sample, ranges []explain.Range, explained string) error {
	names := []string{explained}
	var band plotter.XYs
	for _, s := range samples {
		names = append(names, s.Times[0].Algorithm)
		if y := s.Time(selectedAt(ranges, s.At)); y > 0 {
			band = append(band, plotter.XY{X: float64(s.At), Y: y})
		}
	}
	for _, r := range ranges {
		names = append(names, r.Selected)
	}
	if len(band) > 0 {
		line, err := plotter.NewLine(band)
		if err != nil {
			return err
		}
		line.Color, line.Width = color.Gray{0xd0}, vg.Points(7)
		p.Add(line)
		p.legend.Add("what a call runs", line)
	}
	drawn := 0
	for _, name := range unique(names) {
		var points plotter.XYs
		for _, s := range samples {
			if y := s.Time(name); y > 0 {
				points = append(points, plotter.XY{X: float64(s.At), Y: y})
			}
		}
		if len(points) == 0 || drawn == maxLines {
			continue
		}
		if err := p.addLine(points, drawn, name); err != nil {
			return err
		}
		drawn++
	}
	return nil
}

// selectedAt returns the algorithm that a call runs.
func selectedAt(ranges []explain.Range, at int) (algorithm string) {
	for _, r := range ranges {
		if r.From <= at {
			algorithm = r.Selected
		}
	}
	return algorithm
}
