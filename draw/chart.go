package draw

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Curves is what a chart shows: costs against one quantity, both on log axes.
type Curves struct {
	Title string
	Note  string // what holds for all of it: the model, the network
	X, Y  string // the axes, with their units
	Lines []Curve
	Meets []Meeting
}

// A Curve is what one algorithm costs.
type Curve struct {
	Name      string
	Formula   []Point // a line
	Simulated []Point // marks
}

// A Point is a quantity and a cost. Both are above 0, as a log axis has it.
type Point struct{ X, Y float64 }

// A Meeting is where the cheapest algorithm changes.
type Meeting struct {
	At    Point
	Label string // such as "m* = 24"
	Words string // which is the cheapest on either side
}

// Chart draws curves. Their names stand at their ends, and where the cheapest
// changes a dotted line leads down to the quantity.
//
// An error says what cannot be on the axes, or is the writer's.
func Chart(w io.Writer, c Curves) error {
	if err := c.validate(); err != nil {
		return err
	}
	width, height := 640.0, 440.0
	names := 0.0
	for _, line := range c.Lines {
		names = max(names, textWidth(line.Name, 13))
	}
	s := newSVG("chart", c.Title, c.describe(), max(width+names+104, titleWidth(c.Title)), height+104)
	s.text(24, 34, c.Title, "style", "font-size:19px;font-weight:600")
	s.text(24, 57, c.Note, "style", "font-size:13px;fill:"+faint)
	legend(s, 24, 78, c)
	middle := 92 + height*0.46
	s.text(34, middle, c.Y, "text-anchor", "middle", "transform", "rotate(-90 34 "+number(middle)+")")
	s.start("g", "transform", "translate(46 92)")
	plotted, err := plotCurves(c, width, height, names+44)
	if err != nil {
		return err
	}
	s.out.WriteString(plotted)
	s.end()
	return s.writeTo(w)
}

func (c Curves) validate() error {
	if len(c.Lines) > mostCurves {
		return fmt.Errorf("a chart of %d curves: want at most %d, or nobody can tell them apart", len(c.Lines), mostCurves)
	}
	points := 0
	for _, line := range c.Lines {
		for _, p := range slices.Concat(line.Formula, line.Simulated) {
			if !(p.X > 0 && p.Y > 0) || math.IsInf(p.X, 0) || math.IsInf(p.Y, 0) {
				return fmt.Errorf("%s costs %v at %v: a chart with log axes wants both above 0", line.Name, p.Y, p.X)
			}
			points++
		}
	}
	if points == 0 {
		return fmt.Errorf("a chart without points: want a cost or more")
	}
	return nil
}

// legend says what lines and marks are.
func legend(s *svg, x, y float64, c Curves) {
	formula, simulated := false, false
	for _, line := range c.Lines {
		formula = formula || len(line.Formula) > 0
		simulated = simulated || len(line.Simulated) > 0
	}
	if formula {
		s.empty("line", "x1", x, "y1", y-4, "x2", x+28, "y2", y-4, "stroke", ink, "stroke-width", 2)
		s.text(x+35, y, "formula", "style", "font-size:13px")
		x += 35 + textWidth("formula", 13) + 18
	}
	if simulated {
		for i := range min(len(c.Lines), 3) {
			s.start("g", "transform", fmt.Sprintf("translate(%s %s)", number(x+5+14*float64(i)), number(y-4)))
			s.empty("path", "d", glyph(i).path(), "fill", ink)
			s.end()
		}
		x += 14 * float64(min(len(c.Lines), 3))
		s.text(x+5, y, "simulated", "style", "font-size:13px")
		x += textWidth("simulated", 13) + 23
	}
	if len(c.Meets) > 0 {
		s.empty("circle", "cx", x+5, "cy", y-4, "r", 5, "fill", paper, "stroke", ink, "stroke-width", 2)
		s.text(x+16, y, "from here on another is the cheapest", "style", "font-size:13px")
	}
}

// describe puts the chart in words.
func (c Curves) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A chart of the %s, upwards, against %s, to the right, both on log scales. %s.", c.Y, c.X, strings.TrimSuffix(c.Note, "."))
	for _, line := range c.Lines {
		fmt.Fprintf(&b, " %s:", line.Name)
		for i, kind := range []struct {
			name   string
			points []Point
		}{{"by the formula", line.Formula}, {"simulated", line.Simulated}} {
			if len(kind.points) == 0 {
				continue
			}
			if i > 0 && len(line.Formula) > 0 {
				b.WriteString(";")
			}
			first, last := kind.points[0], kind.points[len(kind.points)-1]
			fmt.Fprintf(&b, " %s %s at %s to %s at %s", kind.name, shortNumber(first.Y), shortNumber(first.X), shortNumber(last.Y), shortNumber(last.X))
		}
		b.WriteString(".")
	}
	for _, m := range c.Meets {
		fmt.Fprintf(&b, " %s: %s.", m.Label, m.Words)
	}
	return b.String()
}
