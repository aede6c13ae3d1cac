package command

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
)

// plottable returns an error if no size can be drawn, or if the file has the name of
// another format than SVG, before anything is measured.
func plottable(file string, sizes []int) error {
	if recipe := conversion(file, strings.ToLower(filepath.Ext(file))); recipe != "" {
		return fmt.Errorf("--plot %s: want a file that ends in .svg, then %s", file, recipe)
	}
	if file != "" && slices.Max(sizes) == 0 {
		return fmt.Errorf("--plot of 0 bytes: want a size above 0, for its axis is logarithmic")
	}
	return nil
}

// plotRows writes a picture of time against size, both logarithmic: a panel for
// each collective, and in it a line for each algorithm and number of ranks.
func plotRows(file string, rows []bench.Row, limits bench.Limits) error {
	var panels []*panel
	for _, group := range groups(rows, func(r bench.Row) string { return r.Collective + ", " + r.Transport }) {
		if p, err := newPanel(group, limits); err != nil {
			return err
		} else if p != nil {
			panels = append(panels, p)
		}
	}
	if len(panels) == 0 {
		return nil // a barrier alone has no size
	}
	var out bytes.Buffer
	if _, err := tile(panels).WriteTo(&out); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o666)
}

// groups returns the rows grouped by key, in the order of each group's first row.
func groups(rows []bench.Row, key func(bench.Row) string) (all [][]bench.Row) {
	at := make(map[string]int)
	for _, r := range rows {
		i, ok := at[key(r)]
		if !ok {
			i = len(all)
			at[key(r)], all = i, append(all, nil)
		}
		all[i] = append(all[i], r)
	}
	return all
}

// A panel is the picture of one collective, with a legend beside it.
type panel struct {
	*plot.Plot
	legend plot.Legend
}

// newPanelOf returns an empty panel of times against a quantity, both logarithmic.
func newPanelOf(title, quantity string) *panel {
	p := &panel{plot.New(), plot.NewLegend()}
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = quantity, "µs"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(sizeTicks), plot.LogTicks{Prec: -1}
	p.legend.Top, p.legend.Left = true, true
	p.legend.TextStyle.Font.Size, p.legend.Padding = vg.Points(8), vg.Points(3)
	p.Add(faintGrid())
	return p
}

// newPanel draws one collective. It returns nil if no row has a size.
func newPanel(rows []bench.Row, limits bench.Limits) (*panel, error) {
	p := newPanelOf(rows[0].Collective+", "+rows[0].Transport, "bytes")

	// A line is one algorithm's, or that of the algorithms selected for each size.
	compared := slices.ContainsFunc(rows, func(r bench.Row) bool { return r.Winner })
	lines := groups(rows, func(r bench.Row) string {
		if compared {
			return fmt.Sprint(r.Algorithm, r.Ranks)
		}
		return fmt.Sprint(r.Ranks)
	})
	for i, line := range lines {
		if err := p.addLine(pointsOf(line), i, nameOf(line)); err != nil {
			return nil, err
		}
	}
	bound := pointsOf(lowerBound(rows, limits))
	if len(bound) == 0 {
		return nil, nil
	}
	return p, p.addBound(bound)
}

// pointsOf returns the points of a line in the order of sizes.
func pointsOf(rows []bench.Row) (points plotter.XYs) {
	for _, r := range rows {
		if r.Bytes > 0 && r.Median > 0 {
			points = append(points, plotter.XY{X: float64(r.Bytes), Y: r.Median})
		}
	}
	slices.SortStableFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return points
}

// lowerBound returns rows with the machine's lower bound for the same sizes: the time
// of a copy or of an exchange, whichever is longer.
func lowerBound(rows []bench.Row, limits bench.Limits) (bound []bench.Row) {
	for _, c := range limits.Copy {
		if slices.ContainsFunc(rows, func(r bench.Row) bool { return r.Bytes == c.Bytes }) {
			bound = append(bound, bench.Row{Call: bench.Call{Bytes: c.Bytes}, Times: bench.Times{Median: max(c.Time, limits.Exchange(rows[0].Transport))}})
		}
	}
	return bound
}

// nameOf names a line.
func nameOf(line []bench.Row) string {
	name := line[0].Algorithm
	if slices.ContainsFunc(line, func(r bench.Row) bool { return r.Algorithm != name }) {
		name = "as chosen"
	}
	return fmt.Sprintf("%s, n=%d", name, line[0].Ranks)
}

// hues is a palette that color-blind readers can distinguish.
var hues = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
	{0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
}

// addLine adds the line with that number. Lines that share a hue differ in their
// dashes.
func (p *panel) addLine(points plotter.XYs, number int, name string) error {
	if len(points) == 0 {
		return nil
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	hue := hues[number%len(hues)]
	line.Color, line.Width = hue, vg.Points(1.5)
	if dash := number / len(hues); dash > 0 {
		line.Dashes = []vg.Length{vg.Points(6 / float64(dash)), vg.Points(2)}
	}
	dots.Color, dots.Shape, dots.Radius = hue, draw.CircleGlyph{}, vg.Points(2)
	p.Add(line, dots)
	p.legend.Add(name, line, dots)
	return nil
}

// addBound adds the line of the machine's lower bound.
func (p *panel) addBound(points plotter.XYs) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Dashes = color.Gray{0x80}, []vg.Length{vg.Points(1), vg.Points(3)}
	p.Add(line)
	p.legend.Add("copy or exchange", line)
	return nil
}

func faintGrid() *plotter.Grid {
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe8}, color.Gray{0xe8}
	return grid
}

// sizeTicks marks powers of two, eight of them at most.
func sizeTicks(lo, hi float64) (ticks []plot.Tick) {
	first, last := math.Ceil(math.Log2(lo)), math.Floor(math.Log2(hi))
	step := math.Ceil((last - first + 1) / 8)
	for e := first; e <= last; e += step {
		n := int(math.Exp2(e))
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: algo.FormatBytes(n)})
	}
	return ticks
}

// tile puts panels side by side, up to three in a row, each with its legend at
// the right.
func tile(panels []*panel) *vgsvg.Canvas {
	const width, height, beside, pad = 14 * vg.Centimeter, 9 * vg.Centimeter, 4 * vg.Centimeter, 5 * vg.Millimeter
	columns := min(3, len(panels))
	lines := (len(panels) + columns - 1) / columns
	canvas := vgsvg.New(width*vg.Length(columns), height*vg.Length(lines))
	tiles := draw.Tiles{Cols: columns, Rows: lines, PadX: pad, PadY: pad, PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: pad}
	for i, p := range panels {
		c := tiles.At(draw.New(canvas), i%columns, i/columns)
		p.Draw(draw.Crop(c, 0, -beside, 0, 0))
		p.legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-beside+pad, 0, 0, -pad))
	}
	return canvas
}
