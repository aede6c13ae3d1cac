package draw

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// plotSeries returns the plot as SVG elements. The names of the series need
// labelWidth in addition to the width.
func plotSeries(c ChartData, width, height, labelWidth float64) (string, error) {
	p := plot.New()
	p.BackgroundColor = nil
	styleAxis(&p.X, c.X)
	styleAxis(&p.Y, "") // Chart draws this label
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = parseColor(subtle), parseColor(subtle)
	p.Add(grid)
	for i, s := range c.Series {
		if err := addSeries(p, i, s, c.Discrete); err != nil {
			return "", err
		}
	}
	fitAxes(p)
	p.Add(crossoverMarks(c.Crossovers), seriesLabels(c.Series))
	canvas := &measuringCanvas{Canvas: vgsvg.New(vg.Length(width+labelWidth), vg.Length(height))}
	p.Draw(vgdraw.Crop(vgdraw.New(canvas), 0, vg.Length(-labelWidth), 0, 0))
	return canvas.elements()
}

// A measuringCanvas records the width of each text drawn on it.
type measuringCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

func (c *measuringCanvas) FillString(face font.Face, at vg.Point, label string) {
	c.widths = append(c.widths, face.Width(label))
	c.Canvas.FillString(face, at, label)
}

// elements returns the elements of the canvas without the enclosing document. A
// viewer renders the text in the figure's font, not in the font that gonum
// measured: textLength makes it as wide as measured.
func (c *measuringCanvas) elements() (string, error) {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	all := b.String()
	first, last := strings.Index(all, "<g"), strings.LastIndex(all, "</svg>")
	if first < 0 || last < first {
		return "", fmt.Errorf("a chart without elements")
	}
	all = strings.ReplaceAll(all[first:last], "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "")
	parts := strings.Split(all, "<text ")
	for i := range min(len(c.widths), len(parts)-1) {
		parts[i+1] = fmt.Sprintf(`<text textLength="%s" lengthAdjust="spacingAndGlyphs" %s`, number(float64(c.widths[i])), parts[i+1])
	}
	return strings.Join(parts, ""), nil
}

func styleAxis(a *plot.Axis, label string) {
	a.Scale = plot.LogScale{}
	a.Padding = 0
	a.LineStyle = vgdraw.LineStyle{Color: parseColor(muted), Width: 1}
	a.Label.Text, a.Label.Padding = label, 8
	a.Label.TextStyle = textStyle(14, foreground, a.Label.TextStyle)
	a.Tick.Label = textStyle(13, foreground, a.Tick.Label)
	a.Tick.LineStyle = a.LineStyle
	a.Tick.Length = 5
}

// textStyle returns the base style with another size and color.
func textStyle(size vg.Length, color string, base text.Style) text.Style {
	base.Font.Typeface, base.Font.Variant, base.Font.Size = "Liberation", "Sans", size
	base.Color = parseColor(color)
	base.Handler = plot.DefaultTextHandler
	return base
}

// fitAxes leaves room for the labels of crossovers between the lines and the
// horizontal axis, and sets round ticks.
func fitAxes(p *plot.Plot) {
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		if a.Min == a.Max {
			a.Min, a.Max = a.Min/2, a.Max*2
		}
	}
	span := p.Y.Max / p.Y.Min
	p.Y.Min, p.Y.Max = p.Y.Min/math.Pow(span, 0.16), p.Y.Max*math.Pow(span, 0.04)
	endAtTicks(&p.X, powerTicks(p.X.Min, p.X.Max))
	endAtTicks(&p.Y, decadeTicks(p.Y.Min, p.Y.Max))
}

// endAtTicks makes an axis end at its first and last tick.
func endAtTicks(a *plot.Axis, ticks []plot.Tick) {
	a.Tick.Marker = plot.ConstantTicks(ticks)
	a.Min, a.Max = ticks[0].Value, ticks[len(ticks)-1].Value
}

// powerTicks returns ticks at powers of two that enclose low and high: at every k-th
// power, with the least k that gives at most 13 ticks.
func powerTicks(low, high float64) (ticks []plot.Tick) {
	first, last := math.Floor(math.Log2(low)+1e-9), math.Ceil(math.Log2(high)-1e-9)
	every := max(1, math.Ceil((last-first)/12))
	for e := first; e < last+every; e += every {
		ticks = append(ticks, plot.Tick{Value: math.Exp2(e), Label: shortNumber(math.Exp2(e))})
	}
	return ticks
}

// decadeTicks returns ticks that enclose low and high: at powers of ten, and for spans
// below 5000 also at 2 and 5 times these.
func decadeTicks(low, high float64) (ticks []plot.Tick) {
	factors := []float64{1}
	if high/low < 5000 {
		factors = []float64{1, 2, 5}
	}
	for e := math.Floor(math.Log10(low)); ; e++ {
		for _, factor := range factors {
			v := factor * math.Pow(10, e)
			if v <= low {
				ticks = nil
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: shortNumber(v)})
			if v >= high {
				return ticks
			}
		}
	}
}

// dashPatterns distinguish lines without colors.
var dashPatterns = [...][]vg.Length{nil, {10, 4}, {3, 3}, {12, 3, 3, 3}, {6, 2, 2, 2, 2, 2}, {1.5, 2.5}}

// maxSeries is how many series can be distinguished.
const maxSeries = len(dashPatterns)

func addSeries(p *plot.Plot, i int, s Series, discrete bool) error {
	lines := [][]Point{s.Formula}
	if discrete {
		lines = steps(s.Formula)
	}
	for _, points := range lines {
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(xys(points))
		if err != nil {
			return err
		}
		line.LineStyle = vgdraw.LineStyle{Color: parseColor(stepColor(i)), Width: 2, Dashes: dashPatterns[i]}
		p.Add(line)
	}
	if len(s.Simulated) > 0 {
		points, err := plotter.NewScatter(xys(s.Simulated))
		if err != nil {
			return err
		}
		points.GlyphStyle = vgdraw.GlyphStyle{Color: parseColor(stepColor(i)), Radius: 5, Shape: glyph(i)}
		p.Add(points)
	}
	return nil
}

// steps returns lines that are level around each point. A line ends where quantities
// are left out: where the next is farther than 1, or than a 64th.
func steps(points []Point) (lines [][]Point) {
	for i, p := range points {
		start := p.X - 0.5
		if i > 0 && p.X-points[i-1].X <= max(1, p.X/64) {
			start = (points[i-1].X + p.X) / 2
		} else {
			lines = append(lines, nil)
		}
		if i == 0 {
			start = p.X // the axis may begin there
		}
		end := p.X + 0.5
		if i+1 < len(points) {
			end = min(end, (p.X+points[i+1].X)/2)
			if next := points[i+1].X; next-p.X <= max(1, next/64) {
				end = (p.X + next) / 2
			}
		} else {
			end = p.X // or end
		}
		last := &lines[len(lines)-1]
		*last = append(*last, Point{start, p.Y}, Point{end, p.Y})
	}
	return lines
}

func xys(points []Point) plotter.XYs {
	all := make(plotter.XYs, len(points))
	for i, p := range points {
		all[i] = plotter.XY{X: p.X, Y: p.Y}
	}
	return all
}

// A glyph is the shape of a series' simulated points.
type glyph int

// glyphShapes are regular polygons: the number of corners, the direction of the
// first corner in half turns, and the radius in pixels.
var glyphShapes = [maxSeries]struct {
	corners      int
	turn, radius float64
}{{24, 0, 4.4}, {4, 0.25, 5.6}, {3, 0.5, 6}, {4, 0, 5.8}, {3, -0.5, 6}, {5, 0.5, 5.6}}

// corners returns the corners of a glyph around the origin, y upwards.
func (m glyph) corners() []Point {
	shape := glyphShapes[m]
	all := make([]Point, shape.corners)
	for i := range all {
		sin, cos := math.Sincos(math.Pi * (shape.turn + 2*float64(i)/float64(shape.corners)))
		all[i] = Point{shape.radius * cos, shape.radius * sin}
	}
	return all
}

// DrawGlyph draws the glyph with an outline that separates it from its line.
func (m glyph) DrawGlyph(c *vgdraw.Canvas, style vgdraw.GlyphStyle, at vg.Point) {
	var path vg.Path
	for i, corner := range m.corners() {
		at := vg.Point{X: at.X + vg.Length(corner.X), Y: at.Y + vg.Length(corner.Y)}
		if i == 0 {
			path.Move(at)
		} else {
			path.Line(at)
		}
	}
	path.Close()
	c.SetColor(style.Color)
	c.Fill(path)
	c.SetLineStyle(vgdraw.LineStyle{Color: parseColor(background), Width: 1})
	c.Stroke(path)
}

// path returns the d attribute of a glyph around the origin.
func (m glyph) path() string {
	var b strings.Builder
	for i, corner := range m.corners() {
		b.WriteByte("ML"[min(i, 1)])
		b.WriteString(number(corner.X) + " " + number(-corner.Y))
	}
	return b.String() + "Z"
}

// crossoverMarks is a plotter of crossovers.
type crossoverMarks []Crossover

// Plot draws a dotted line from each crossover down to its label, on the side
// that has room. No series is below: a crossover is on the cheapest ones.
func (ms crossoverMarks) Plot(c vgdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := textStyle(13, foreground, text.Style{YAlign: text.YBottom})
	free := c.Min.X // labels occupy everything to the left
	for i, m := range ms {
		at := vg.Point{X: x(m.At.X), Y: y(m.At.Y)}
		c.StrokeLine2(vgdraw.LineStyle{Color: parseColor(foreground), Width: 1.2, Dashes: []vg.Length{2, 3}}, at.X, c.Min.Y, at.X, at.Y)
		disc := vg.Path{}
		disc.Move(vg.Point{X: at.X + 5, Y: at.Y})
		disc.Arc(at, 5, 0, 2*math.Pi)
		disc.Close()
		c.SetColor(parseColor(foreground))
		if m.Contradicted {
			c.SetColor(parseColor(background))
		}
		c.Fill(disc)
		c.SetLineStyle(vgdraw.LineStyle{Color: parseColor(foreground), Width: 2})
		c.Stroke(disc)
		next := c.Max.X
		if i+1 < len(ms) {
			next = x(ms[i+1].At.X)
		}
		width := style.Width(m.Label) + 12
		switch y0 := c.Min.Y + 5; {
		case at.X+width <= next:
			c.FillText(style, vg.Point{X: at.X + 6, Y: y0}, m.Label)
			free = at.X + width
		case free <= at.X-width:
			c.FillText(style, vg.Point{X: at.X - width + 6, Y: y0}, m.Label)
			free = at.X
		default: // no room for the label
			free = at.X
		}
	}
}

// seriesLabels is a plotter of the names of series, to the right of the plot.
type seriesLabels []Series

// A seriesLabel is the name of a series, at the height of its last point or close
// to it.
type seriesLabel struct {
	series int
	end    vg.Point
	y      vg.Length
}

// Plot separates names that would overlap, and draws a thin line to each.
func (cs seriesLabels) Plot(c vgdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var labels []seriesLabel
	for i, s := range cs {
		points := s.Formula
		if len(points) == 0 {
			points = s.Simulated
		}
		if len(points) > 0 {
			end := points[len(points)-1]
			at := vg.Point{X: x(end.X), Y: y(end.Y)}
			labels = append(labels, seriesLabel{series: i, end: at, y: at.Y})
		}
	}
	separateLabels(labels)
	for _, n := range labels {
		color := stepColor(n.series)
		c.StrokeLines(vgdraw.LineStyle{Color: parseColor(color), Width: 1},
			[]vg.Point{{X: n.end.X + 3, Y: n.end.Y}, {X: c.Max.X + 14, Y: n.y}, {X: c.Max.X + 20, Y: n.y}})
		c.FillText(textStyle(13, color, text.Style{YAlign: text.YCenter}), vg.Point{X: c.Max.X + 24, Y: n.y + 2}, cs[n.series].Name)
	}
}

// separateLabels sorts labels by height, and moves overlapping neighbors apart by
// equal amounts, in at most 100 passes.
func separateLabels(labels []seriesLabel) {
	const line = 18
	slices.SortStableFunc(labels, func(a, b seriesLabel) int { return cmp.Compare(a.y, b.y) })
	for range 100 {
		for i := 1; i < len(labels); i++ {
			if overlap := line - (labels[i].y - labels[i-1].y); overlap > 0 {
				labels[i-1].y -= overlap / 2
				labels[i].y += overlap / 2
			}
		}
	}
}

// parseColor parses a color of the form #rrggbb.
func parseColor(hex string) color.Color {
	v, _ := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 32) // all colors are constants of this package
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}
