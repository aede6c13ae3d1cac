package draw

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

var (
	//go:embed page/programs.html
	programsHTML string
	//go:embed page/programs.css
	programsCSS string
	//go:embed page/programs.js
	programsJS string
)

var programsTemplate = template.Must(template.New("programs").Parse(programsHTML))

// ProgramsPage writes a page that plays the programs of a schedule, right or wrong, until
// no rank can go on: the picture of [Programs], round by round, and the faults in a list.
// It is one HTML file without external resources. Without scripts it shows the end. It has
// the bounds and errors of Programs.
func ProgramsPage(w io.Writer, title string, s *sched.Schedule, faults sched.Faults) error {
	f, err := newProgramsFigure(title, s, faults)
	if err != nil {
		return err
	}
	var picture bytes.Buffer
	if err := f.draw().writeTo(&picture); err != nil {
		return err
	}
	end := "all programs have ended"
	if stuck := f.stuck(); len(stuck) > 0 {
		end = "nobody can go on"
	}
	data, err := json.Marshal(map[string]any{"rounds": f.rounds, "end": end})
	if err != nil {
		return fmt.Errorf("a page of programs: %w", err)
	}
	_, body, _ := strings.Cut(picture.String(), "<svg") // behind an XML declaration, if there is one
	var b bytes.Buffer                                  // if the template fails, nothing has been written to w
	err = programsTemplate.Execute(&b, map[string]any{
		"Title":    title,
		"Problems": f.problems(),
		"Picture":  template.HTML("<svg" + body),
		"Data":     template.JS(data),
		"Style":    template.CSS(programsCSS),
		"Script":   template.JS(programsJS),
		// The picture has styles of its own.
		"Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src " + cspHash(programsJS) + "; base-uri 'none'; form-action 'none'",
	})
	if err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}
