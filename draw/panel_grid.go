package draw

const (
	headerHeight = 64.0 // for title and subtitle
	footerHeight = 40.0 // for the legend
	figureInset  = 20.0 // of the title, the legend and the borders of panels
	panelGap     = 18.0
)

// A panelGrid arranges equal panels in rows and columns.
type panelGrid struct {
	n, columns int
	size       point // of a panel
}

// newPanelGrid finds the columns that show n panels the largest on a slide of 16 by
// 9, and the fewest of those that differ by less than 3%.
func newPanelGrid(n int, size point) panelGrid {
	best, most := panelGrid{n: n, columns: 1, size: size}, 0.0
	for columns := 1; columns <= n; columns++ {
		g := panelGrid{n: n, columns: columns, size: size}
		if scale := min(16/g.width(), 9/(headerHeight+g.height()+footerHeight)); scale > 1.03*most {
			best, most = g, scale
		}
	}
	return best
}

// width returns the width of a figure of these panels, with its inset if they have
// borders.
func (g panelGrid) width() float64 {
	width := float64(g.columns)*(g.size.x+panelGap) - panelGap
	if g.n > 1 {
		width += 2 * figureInset
	}
	return width
}

func (g panelGrid) height() float64 {
	rows := (g.n + g.columns - 1) / g.columns
	return float64(rows)*(g.size.y+panelGap) - panelGap
}

// draw draws the border of a panel in a figure of the given width, and returns its
// corner. Borders begin below the title. A single panel has none, and is centered.
func (g panelGrid) draw(s *svg, i int, width float64) point {
	if g.n == 1 {
		return point{(width - g.size.x) / 2, headerHeight}
	}
	at := point{figureInset + float64(i%g.columns)*(g.size.x+panelGap), headerHeight + float64(i/g.columns)*(g.size.y+panelGap)}
	s.empty("rect", "class", "panel", "x", at.x, "y", at.y, "width", g.size.x, "height", g.size.y, "rx", 8, "fill", "none", "stroke", "#d9dee6")
	return at
}
