package draw

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// ChartData is the content of a chart: costs against one quantity, both on log
// axes.
type ChartData struct {
	Title      string
	Note       string // the model, the network and other conditions of all series
	X, Y       string // labels of the axes, with units
	Discrete   bool   // X counts something: formulas are steps, for there is nothing between
	Series     []Series
	Crossovers []Crossover
}

// A Series is the cost of one algorithm.
type Series struct {
	Name      string
	Formula   []Point // a line, or steps
	Simulated []Point // marks
}

// A Point is a quantity and a cost, both above 0.
type Point struct{ X, Y float64 }

// A Crossover is a point at which the algorithm that is the cheapest by the formulas
// changes.
type Crossover struct {
	At           Point
	Label        string // such as "m* = 24"
	Description  string // names the cheapest algorithm on either side
	Contradicted bool   // as simulated, it does not change there
}

// Chart draws every series as a line and marks, with its name at the end of the
// line. A dotted line leads from each crossover down to its quantity. A crossover
// is a disc, and a hollow one if the simulation contradicts it. Both axes end at a
// tick.
//
// Chart returns an error if there are no points or more than 6 series, if a
// quantity or a cost is not a finite number above 0, or if w fails.
func Chart(w io.Writer, c ChartData) error {
	if err := c.validate(); err != nil {
		return err
	}
	width, height := 640.0, 440.0
	labelWidth := 0.0
	for _, s := range c.Series {
		labelWidth = max(labelWidth, textWidth(s.Name, 13))
	}
	figure := max(width+labelWidth+104, drawChartLegend(&svg{}, 24, 0, c))
	head := newHeading(24, 34, 19, c.Title, c.Note, figure)
	s := newSVG("chart", c.Title, c.describe(), max(figure, head.width), height+104+head.more)
	head.draw(s)
	drawChartLegend(s, 24, 78, c)
	middle := 92 + height*0.46
	s.text(34, middle, c.Y, "text-anchor", "middle", "transform", "rotate(-90 34 "+number(middle)+")")
	s.start("g", "transform", "translate(46 92)")
	plotted, err := plotSeries(c, width, height, labelWidth+44)
	if err != nil {
		return err
	}
	s.out.WriteString(plotted)
	s.end()
	return s.writeTo(w)
}

func (c ChartData) validate() error {
	if len(c.Series) > maxSeries {
		return fmt.Errorf("a chart of %d series: want at most %d, to tell them apart", len(c.Series), maxSeries)
	}
	points := 0
	for _, s := range c.Series {
		for _, p := range slices.Concat(s.Formula, s.Simulated) {
			if !(p.X > 0 && p.Y > 0) || math.IsInf(p.X, 0) || math.IsInf(p.Y, 0) {
				return fmt.Errorf("%s costs %v at %v: a chart with log axes wants both above 0", s.Name, p.Y, p.X)
			}
			points++
		}
	}
	if points == 0 {
		return fmt.Errorf("a chart without points: want a cost or more")
	}
	return nil
}

// drawChartLegend explains lines and marks. It returns where it ends.
func drawChartLegend(s *svg, x, y float64, c ChartData) float64 {
	formula, simulated := false, false
	for _, series := range c.Series {
		formula = formula || len(series.Formula) > 0
		simulated = simulated || len(series.Simulated) > 0
	}
	if formula {
		s.empty("line", "x1", x, "y1", y-4, "x2", x+28, "y2", y-4, "stroke", foreground, "stroke-width", 2)
		s.text(x+35, y, "formula", "style", "font-size:13px")
		x += 35 + textWidth("formula", 13) + 18
	}
	if simulated {
		for i := range min(len(c.Series), 3) {
			s.start("g", "transform", fmt.Sprintf("translate(%s %s)", number(x+5+14*float64(i)), number(y-4)))
			s.empty("path", "d", glyph(i).path(), "fill", foreground)
			s.end()
		}
		x += 14 * float64(min(len(c.Series), 3))
		s.text(x+5, y, "simulated", "style", "font-size:13px")
		x += textWidth("simulated", 13) + 23
	}
	for _, kind := range []struct {
		contradicted bool
		fill, text   string
	}{{false, foreground, "from here on another is the cheapest by the formulas"}, {true, background, "by the formulas, but not as simulated"}} {
		if slices.ContainsFunc(c.Crossovers, func(m Crossover) bool { return m.Contradicted == kind.contradicted }) {
			s.empty("circle", "cx", x+5, "cy", y-4, "r", 5, "fill", kind.fill, "stroke", foreground, "stroke-width", 2)
			s.text(x+16, y, kind.text, "style", "font-size:13px")
			x += 16 + textWidth(kind.text, 13) + 18
		}
	}
	return x
}

// describe returns the text alternative of the chart.
func (c ChartData) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A chart of the %s, upwards, against %s, to the right, both on log scales. %s.", c.Y, c.X, strings.TrimSuffix(c.Note, "."))
	for _, s := range c.Series {
		fmt.Fprintf(&b, " %s:", s.Name)
		for i, kind := range []struct {
			name   string
			points []Point
		}{{"by the formula", s.Formula}, {"simulated", s.Simulated}} {
			if len(kind.points) == 0 {
				continue
			}
			if i > 0 && len(s.Formula) > 0 {
				b.WriteString(";")
			}
			first, last := kind.points[0], kind.points[len(kind.points)-1]
			fmt.Fprintf(&b, " %s %s at %s to %s at %s", kind.name, shortNumber(first.Y), shortNumber(first.X), shortNumber(last.Y), shortNumber(last.X))
		}
		b.WriteString(".")
	}
	for _, m := range c.Crossovers {
		against := ""
		if m.Contradicted {
			against = ", but not as simulated"
		}
		fmt.Fprintf(&b, " By the formulas, %s: %s%s.", m.Label, m.Description, against)
	}
	return b.String()
}
