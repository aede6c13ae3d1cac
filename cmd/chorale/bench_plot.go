package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/chorale-go/chorale/bench"
)

// plottable reports an error if nothing could be drawn, before it is measured.
func plottable(file string, sizes []int) error {
	if file != "" && slices.Max(sizes) == 0 {
		return fmt.Errorf("--plot of 0 bytes: want a size above 0, for its axis is logarithmic")
	}
	return nil
}

// plotRows writes a picture of time against size, both logarithmic: a panel for
// each collective, and in it a line for each algorithm and number of ranks.
func plotRows(file string, rows []bench.Row, limits bench.Limits) error {
	var panels []*plot.Plot
	for _, group := range groups(rows, func(r bench.Row) string { return r.Collective }) {
		if p, err := panel(group, limits); err != nil {
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

// groups returns the rows that have the same key, in the order of the first of
// each.
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

// panel draws one collective, or returns nil if it has no sizes.
func panel(rows []bench.Row, limits bench.Limits) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = rows[0].Collective
	p.X.Label.Text, p.Y.Label.Text = "bytes", "µs"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(sizeTicks), plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Add(faintGrid())

	sizes := make(map[int]bool)
	// A line is one algorithm's, or what was chosen for each size.
	compared := slices.ContainsFunc(rows, func(r bench.Row) bool { return r.Winner })
	lines := groups(rows, func(r bench.Row) string {
		name := ""
		if compared {
			name = r.Algorithm
		}
		return fmt.Sprint(name, r.Transport, r.Ranks)
	})
	for i, line := range lines {
		var points plotter.XYs
		for _, r := range line {
			if r.Bytes > 0 && r.Median > 0 {
				points = append(points, plotter.XY{X: float64(r.Bytes), Y: r.Median})
				sizes[r.Bytes] = true
			}
		}
		if err := addLine(p, points, i, legend(line)); err != nil {
			return nil, err
		}
	}
	var copies plotter.XYs
	for _, c := range limits.Copy {
		if sizes[c.Bytes] {
			copies = append(copies, plotter.XY{X: float64(c.Bytes), Y: c.Time})
		}
	}
	if len(sizes) == 0 {
		return nil, nil
	}
	return p, addLimit(p, copies)
}

// legend names a line.
func legend(line []bench.Row) string {
	name := line[0].Algorithm
	if slices.ContainsFunc(line, func(r bench.Row) bool { return r.Algorithm != name }) {
		name = "as chosen"
	}
	return fmt.Sprintf("%s, %s, n=%d", name, line[0].Transport, line[0].Ranks)
}

// hues can be told apart by everybody.
var hues = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
	{0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
}

// addLine adds the line with that number. Those that share a hue differ in their
// dashes.
func addLine(p *plot.Plot, points plotter.XYs, number int, name string) error {
	if len(points) == 0 {
		return nil
	}
	slices.SortStableFunc(points, func(a, b plotter.XY) int { return int(a.X - b.X) })
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
	p.Legend.Add(name, line, dots)
	return nil
}

// addLimit adds the line of what no collective can beat.
func addLimit(p *plot.Plot, points plotter.XYs) error {
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Dashes = color.Gray{0x80}, []vg.Length{vg.Points(1), vg.Points(3)}
	p.Add(line)
	p.Legend.Add("a copy", line)
	return nil
}

func faintGrid() *plotter.Grid {
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe8}, color.Gray{0xe8}
	return grid
}

// sizeTicks marks powers of two, not more than eight of them.
func sizeTicks(lo, hi float64) (ticks []plot.Tick) {
	first, last := math.Ceil(math.Log2(lo)), math.Floor(math.Log2(hi))
	step := math.Ceil((last - first + 1) / 8)
	for e := first; e <= last; e += step {
		n := int(math.Exp2(e))
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: short(n)})
	}
	return ticks
}

// tile puts panels side by side, up to three in a row.
func tile(panels []*plot.Plot) *vgsvg.Canvas {
	const width, height = 12 * vg.Centimeter, 9 * vg.Centimeter
	columns := min(3, len(panels))
	lines := (len(panels) + columns - 1) / columns
	canvas := vgsvg.New(width*vg.Length(columns), height*vg.Length(lines))
	whole := draw.New(canvas)
	tiles := draw.Tiles{Cols: columns, Rows: lines, PadX: vg.Centimeter, PadY: vg.Centimeter,
		PadTop: vg.Millimeter * 4, PadBottom: vg.Millimeter * 4, PadLeft: vg.Millimeter * 4, PadRight: vg.Millimeter * 4}
	for i, p := range panels {
		p.Draw(tiles.At(whole, i%columns, i/columns))
	}
	return canvas
}
