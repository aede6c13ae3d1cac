package draw

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
)

//go:embed page/comparison.html
var comparisonHTML string

var comparisonTemplate = template.Must(template.New("comparison").Parse(comparisonHTML))

// ComparePage writes a comparison as a page: one HTML file without external resources or
// scripts, with the figure and the table of the steps. It fails as Compare does.
func ComparePage(w io.Writer, c Comparison) error {
	var figure, page bytes.Buffer
	if err := Compare(&figure, c); err != nil {
		return err
	}
	type row struct {
		Step                        int
		Simulated, Real, Difference string
		Parts                       bool
	}
	p := struct {
		Comparison
		Figure template.HTML
		Rows   []row
	}{Comparison: c, Figure: template.HTML(figure.String())}
	add := func(step int, s ComparedShare, parts bool) {
		p.Rows = append(p.Rows, row{step, percent(s.Simulated), percent(s.Real), signed(100 * (s.Real - s.Simulated)), parts})
	}
	for i, s := range c.Steps {
		add(i+1, s.ComparedShare, s.Parts)
	}
	add(0, c.Rest, false)
	if err := comparisonTemplate.Execute(&page, p); err != nil {
		return err
	}
	_, err := w.Write(page.Bytes())
	return err
}
