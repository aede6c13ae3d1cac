package draw

import (
	"testing"

	"github.com/chorale-go/chorale/sched"
)

func TestPanelsOfARingLieSideBySide(t *testing.T) {
	for _, c := range []struct {
		name    string
		options NetworkOptions
	}{{"steps", panelOptions}, {"contents", NetworkOptions{Blocks: true}}} {
		s := networkCase{c.name, sched.Bcast, "binomial", 8, 0, "ring", nil, c.options, false}.scene(t)
		f := &networkFigure{scene: s, layout: newLayout(s.Result.Config.Topology)}
		if err := f.addPanels(c.options); err != nil {
			t.Fatal(err)
		}
		f.draw()
		size := point{f.layout.width + 32, f.layout.height + 50}
		if g := newPanelGrid(len(f.panels), size); g.columns < 2 {
			t.Errorf("%s: %d panels of %v in %d column", c.name, g.n, size, g.columns)
		}
	}
}

func TestPanelsAreLargestOnASlide(t *testing.T) {
	for _, c := range []struct {
		n             int
		width, height float64
		columns       int
	}{{1, 400, 300, 1}, {3, 760, 150, 1}, {4, 390, 200, 2}, {3, 300, 300, 3}, {8, 300, 300, 4}} {
		if g := newPanelGrid(c.n, point{c.width, c.height}); g.columns != c.columns {
			t.Errorf("%d panels of %v by %v: %d columns, want %d", c.n, c.width, c.height, g.columns, c.columns)
		}
	}
}
