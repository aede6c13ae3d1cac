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

// plotCurves returns the chart itself as SVG elements: so high, and so wide
// without the names at the right.
func plotCurves(c Curves, width, height, names float64) (string, error) {
	p := plot.New()
	p.BackgroundColor = nil
	dressAxis(&p.X, c.X)
	dressAxis(&p.Y, "") // its label stands where it belongs on a log scale
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = shade(pale), shade(pale)
	p.Add(grid)
	for i, line := range c.Lines {
		if err := addCurve(p, i, line); err != nil {
			return "", err
		}
	}
	fitAxes(p)
	p.Add(meetings(c.Meets), endNames(c.Lines))
	canvas := &measuring{Canvas: vgsvg.New(vg.Length(width+names), vg.Length(height))}
	p.Draw(vgdraw.Crop(vgdraw.New(canvas), 0, vg.Length(-names), 0, 0))
	return canvas.elements()
}

// A measuring canvas knows how wide all words are that are written on it.
type measuring struct {
	*vgsvg.Canvas
	widths []vg.Length
}

func (c *measuring) FillString(face font.Face, at vg.Point, words string) {
	c.widths = append(c.widths, face.Width(words))
	c.Canvas.FillString(face, at, words)
}

// elements returns what a canvas holds, without the document around it. The
// family of the letters is the figure's, not that which measured them; so words
// are told to be as wide as they were measured.
func (c *measuring) elements() (string, error) {
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

func dressAxis(a *plot.Axis, label string) {
	a.Scale = plot.LogScale{}
	a.Padding = 0
	a.LineStyle = vgdraw.LineStyle{Color: shade(faint), Width: 1}
	a.Label.Text, a.Label.Padding = label, 8
	a.Label.TextStyle = letters(14, ink, a.Label.TextStyle)
	a.Tick.Label = letters(13, ink, a.Tick.Label)
	a.Tick.LineStyle = a.LineStyle
	a.Tick.Length = 5
}

// letters returns a style like another, in the figures' size and colour.
func letters(size vg.Length, colour string, like text.Style) text.Style {
	like.Font.Typeface, like.Font.Variant, like.Font.Size = "Liberation", "Sans", size
	like.Color = shade(colour)
	like.Handler = plot.DefaultTextHandler
	return like
}

// fitAxes leaves room between the curves and the axis below, where the labels
// of meetings stand, and sets round ticks.
func fitAxes(p *plot.Plot) {
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		if a.Min == a.Max {
			a.Min, a.Max = a.Min/2, a.Max*2
		}
	}
	span := p.Y.Max / p.Y.Min
	p.Y.Min, p.Y.Max = p.Y.Min/math.Pow(span, 0.16), p.Y.Max*math.Pow(span, 0.04)
	p.X.Tick.Marker = plot.ConstantTicks(powerTicks(p.X.Min, p.X.Max))
	p.Y.Tick.Marker = plot.ConstantTicks(decadeTicks(p.Y.Min, p.Y.Max))
}

// powerTicks are at powers of two, or every second one, and so on, where they
// would be too many.
func powerTicks(low, high float64) (ticks []plot.Tick) {
	first, last := math.Ceil(math.Log2(low)-1e-9), math.Floor(math.Log2(high)+1e-9)
	every := math.Ceil((last - first + 1) / 13)
	for e := first; e <= last; e += every {
		ticks = append(ticks, plot.Tick{Value: math.Exp2(e), Label: shortNumber(math.Exp2(e))})
	}
	return ticks
}

// decadeTicks are at powers of ten, and at 2 and 5 between where there are few.
func decadeTicks(low, high float64) (ticks []plot.Tick) {
	factors := []float64{1}
	if high/low < 5000 {
		factors = []float64{1, 2, 5}
	}
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
		for _, factor := range factors {
			if v := factor * math.Pow(10, e); v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: shortNumber(v)})
			}
		}
	}
	return ticks
}

// dashes tell lines apart where colours do not.
var dashes = [...][]vg.Length{nil, {10, 4}, {3, 3}, {12, 3, 3, 3}, {6, 2, 2, 2, 2, 2}, {1.5, 2.5}}

// mostCurves is how many can be told apart.
const mostCurves = len(dashes)

func addCurve(p *plot.Plot, i int, c Curve) error {
	if len(c.Formula) > 0 {
		line, err := plotter.NewLine(xys(c.Formula))
		if err != nil {
			return err
		}
		line.LineStyle = vgdraw.LineStyle{Color: shade(hue(i)), Width: 2, Dashes: dashes[i]}
		p.Add(line)
	}
	if len(c.Simulated) > 0 {
		points, err := plotter.NewScatter(xys(c.Simulated))
		if err != nil {
			return err
		}
		points.GlyphStyle = vgdraw.GlyphStyle{Color: shade(hue(i)), Radius: 5, Shape: glyph(i)}
		p.Add(points)
	}
	return nil
}

func xys(points []Point) plotter.XYs {
	all := make(plotter.XYs, len(points))
	for i, p := range points {
		all[i] = plotter.XY{X: p.X, Y: p.Y}
	}
	return all
}

// A glyph is the shape of a curve's simulated points.
type glyph int

// glyphShapes are regular polygons: their corners, by how much the first is
// turned, and their radius.
var glyphShapes = [mostCurves]struct {
	corners      int
	turn, radius float64
}{{24, 0, 4.4}, {4, 0.25, 5.6}, {3, 0.5, 6}, {4, 0, 5.8}, {3, -0.5, 6}, {5, 0.5, 5.6}}

// corners are those of a glyph about the origin, y upwards.
func (m glyph) corners() []Point {
	shape := glyphShapes[m]
	all := make([]Point, shape.corners)
	for i := range all {
		sin, cos := math.Sincos(math.Pi * (shape.turn + 2*float64(i)/float64(shape.corners)))
		all[i] = Point{shape.radius * cos, shape.radius * sin}
	}
	return all
}

// DrawGlyph draws the glyph with an edge that parts it from its line.
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
	c.SetLineStyle(vgdraw.LineStyle{Color: shade(paper), Width: 1})
	c.Stroke(path)
}

// path is the glyph for SVG, about the origin.
func (m glyph) path() string {
	var b strings.Builder
	for i, corner := range m.corners() {
		b.WriteByte("ML"[min(i, 1)])
		b.WriteString(number(corner.X) + " " + number(-corner.Y))
	}
	return b.String() + "Z"
}

// meetings draws where the cheapest algorithm changes.
type meetings []Meeting

// Plot leads a dotted line from each down to its label, on whichever side there
// is room. No curve is there, since this is where the cheapest are.
func (ms meetings) Plot(c vgdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	words := letters(13, ink, text.Style{YAlign: text.YBottom})
	free := c.Min.X // to the left all is taken
	for i, m := range ms {
		at := vg.Point{X: x(m.At.X), Y: y(m.At.Y)}
		c.StrokeLine2(vgdraw.LineStyle{Color: shade(ink), Width: 1.2, Dashes: []vg.Length{2, 3}}, at.X, c.Min.Y, at.X, at.Y)
		disc := vg.Path{}
		disc.Move(vg.Point{X: at.X + 5, Y: at.Y})
		disc.Arc(at, 5, 0, 2*math.Pi)
		disc.Close()
		c.SetColor(shade(paper))
		c.Fill(disc)
		c.SetLineStyle(vgdraw.LineStyle{Color: shade(ink), Width: 2})
		c.Stroke(disc)
		next := c.Max.X
		if i+1 < len(ms) {
			next = x(ms[i+1].At.X)
		}
		wide := words.Width(m.Label) + 12
		switch foot := c.Min.Y + 5; {
		case at.X+wide <= next:
			c.FillText(words, vg.Point{X: at.X + 6, Y: foot}, m.Label)
			free = at.X + wide
		case free <= at.X-wide:
			c.FillText(words, vg.Point{X: at.X - wide + 6, Y: foot}, m.Label)
			free = at.X
		default: // what meets so often has no room for it
			free = at.X
		}
	}
}

// endNames writes the names of curves behind their ends.
type endNames []Curve

// A name stands as high as its curve ends, or nearby.
type name struct {
	curve int
	from  vg.Point
	to    vg.Length
}

// Plot moves names apart that would overlap, and leads a thin line to each.
func (cs endNames) Plot(c vgdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var names []name
	for i, curve := range cs {
		points := curve.Formula
		if len(points) == 0 {
			points = curve.Simulated
		}
		if len(points) > 0 {
			end := points[len(points)-1]
			at := vg.Point{X: x(end.X), Y: y(end.Y)}
			names = append(names, name{curve: i, from: at, to: at.Y})
		}
	}
	moveApart(names)
	for _, n := range names {
		colour := hue(n.curve)
		c.StrokeLines(vgdraw.LineStyle{Color: shade(colour), Width: 1},
			[]vg.Point{{X: n.from.X + 3, Y: n.from.Y}, {X: c.Max.X + 14, Y: n.to}, {X: c.Max.X + 20, Y: n.to}})
		c.FillText(letters(13, colour, text.Style{YAlign: text.YCenter}), vg.Point{X: c.Max.X + 24, Y: n.to + 2}, cs[n.curve].Name)
	}
}

// moveApart gives each name the height of a line. Those that are too close part
// from each other by as much, as often as need be.
func moveApart(names []name) {
	const line = 18
	slices.SortStableFunc(names, func(a, b name) int { return cmp.Compare(a.to, b.to) })
	for range 100 {
		for i := 1; i < len(names); i++ {
			if lack := line - (names[i].to - names[i-1].to); lack > 0 {
				names[i-1].to -= lack / 2
				names[i].to += lack / 2
			}
		}
	}
}

// shade reads one of our colours.
func shade(hex string) color.Color {
	v, _ := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 32) // it is one of ours
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}
