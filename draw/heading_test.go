package draw_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// cutOff lists the texts of an SVG document that leave its picture by more than a
// pixel.
const cutOff = `(() => {
	const view = document.documentElement.getBoundingClientRect();
	return Array.from(document.querySelectorAll("text")).filter((text) => {
		const box = text.getBoundingClientRect();
		return box.left < view.left - 1 || box.right > view.right + 1 || box.top < view.top - 1 || box.bottom > view.bottom + 1;
	}).map((text) => text.textContent).join("; ");
})()`

// besideTitle lists the distances from the title of the leftmost border of panels, if
// it does not begin below the title.
const besideTitle = `(() => {
	const title = document.querySelector("text").getBoundingClientRect().left;
	const borders = Array.from(document.querySelectorAll(".panel"), (panel) => panel.getBoundingClientRect().left);
	return borders.length > 0 && Math.abs(Math.min(...borders) - title) > 2 ? String(borders) + " for " + title : "";
})()`

// wholeTexts fails if a text of the picture at an address is cut off, or if its panels
// are beside its title. The tab shows it.
func wholeTexts(t *testing.T, tab context.Context, name, address string) {
	t.Helper()
	if err := chromedp.Do(tab, chromedp.Navigate(address)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	crooked, err := chromedp.Run(tab, chromedp.Evaluate[string](besideTitle))
	if err != nil || crooked != "" {
		t.Errorf("%s: borders beside the title: %s (%v)", name, crooked, err)
	}
	cut, err := chromedp.Run(tab, chromedp.Evaluate[string](cutOff))
	if err != nil || cut != "" {
		t.Errorf("%s: cut off: %s (%v)", name, cut, err)
	}
}

func TestNoTextOfAFigureIsCutOff(t *testing.T) {
	tab, cancel := chromedp.NewContext(newBrowser(t).ctx)
	defer cancel()
	for _, pattern := range []string{"../docs/gallery/*.svg", "../docs/guide/*.svg", "testdata/*.svg", "testdata/*/*.svg"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			wholeTexts(t, tab, file, "file://"+filepath.ToSlash(path))
		}
	}
	long := []string{
		"bcast binomial,order=ascending: 16 ranks, root 0, m = 1024 words, on mesh:4x4, placed column-major:2x8",
		"allreduce hierarchical,node=4: 16 ranks, on mesh:4x4, placed " + strings.Trim(strings.Repeat("15,", 64), ","),
		strings.Repeat("MW%@", 100), strings.Repeat("w ", 200), "和声" + strings.Repeat("声", 80), "",
	}
	for kind, draws := range map[string]func(w io.Writer, s draw.Scene) error{
		"network":   func(w io.Writer, s draw.Scene) error { return draw.Network(w, s, draw.NetworkOptions{}) },
		"steps":     func(w io.Writer, s draw.Scene) error { return draw.Network(w, s, draw.NetworkOptions{Panels: true}) },
		"blocks":    draw.Blocks,
		"spacetime": draw.SpaceTime,
		"chart": func(w io.Writer, s draw.Scene) error {
			c := draw.ChartData{Title: s.Title, Note: "simulated on " + s.Title, X: "m", Y: "time", Series: []draw.Series{{Name: s.Title, Formula: []draw.Point{{X: 1, Y: 1}, {X: 8, Y: 9}}}}}
			return draw.Chart(w, c)
		},
	} {
		for i, title := range long {
			s := simulate(t, sched.Bcast, "binomial", "mesh:4x4", 16, 64, model.Default())
			s.Title = title
			var picture bytes.Buffer
			if err := draws(&picture, s); err != nil {
				t.Fatal(err)
			}
			wholeTexts(t, tab, fmt.Sprintf("%s with title %d", kind, i), "data:image/svg+xml,"+url.PathEscape(picture.String()))
		}
	}
}
