package draw

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/chorale-go/chorale/sim"
)

var (
	//go:embed page/page.html
	pageText string
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string
)

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// maxPlayed is how many messages a page holds: more than the 63 steps of 64
// messages that a ring of 64 ranks makes.
const maxPlayed = 5000

// Page writes a page that plays the schedule on its network: one HTML file that
// needs nothing else; its tables, and a figure of every step, are there without
// scripts, too. Its scripts move the messages along their routes, in
// virtual time or step by step. What is too large to be looked at is refused.
func Page(w io.Writer, s Scene) error {
	if s.Result == nil || len(s.Result.Log) != s.Result.Messages {
		return fmt.Errorf("a page of a simulation without its log: want one made with Record")
	}
	r := s.Result
	if err := legible(r.Config.Topology); err != nil {
		return err
	}
	if r.Messages > maxPlayed {
		return fmt.Errorf("a page of %d messages: want at most %d", r.Messages, maxPlayed)
	}
	p, err := newPage(s)
	if err != nil {
		return err
	}
	var b bytes.Buffer // so that a page that fails is not left half written
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// A page is what the template shows.
type page struct {
	Title   string
	Plays   []string // what each part is
	Network string
	Model   string
	Totals  []pageTotal
	Moves   bool // there are messages
	Root    bool // there is one
	Stage   stage
	Steps   []pageStep
	Many    bool   // there are many of them
	Held    string // what is said of what ranks hold, if anything is
	Path    []pageLeg
	Data    template.JS // what the script reads: a film, as JSON
	Style   template.CSS
	Script  template.JS
	Policy  string // what the page may do: run its own script, use its own style
}

// A pageTotal is a figure of the whole.
type pageTotal struct{ Name, Value, Unit string }

// A pageStep is a row of the table of steps, and a small figure.
type pageStep struct {
	Number          int // from 1 on
	Messages, Words int
	Start, End      string
	LinksInUse      int
	MaxLinkLoad     int
	Congested       string // the links, with their loads
	What            string // in words, for who does not see the figure
	Frame           stageFrame
}

// A pageLeg is a row of the critical path.
type pageLeg struct {
	Message            string
	Step, Words        int
	Start, End, Waited string
	For, After         string
}

func newPage(s Scene) (*page, error) {
	f := newFilm(s)
	states, err := holds(s)
	if err != nil {
		return nil, err
	}
	p := &page{
		Title:   s.Title,
		Plays:   playsOf(s),
		Network: networkOf(s.Result),
		Model:   modelOf(s.Result),
		Totals:  totalsOf(s.Result),
		Moves:   s.Result.Messages > 0,
		Many:    s.Result.Steps > 12,
		Root:    rootOf(s) >= 0,
		Stage:   newStage(s, f, states),
		Style:   template.CSS(pageStyle),
		Script:  template.JS(pageScript),
		Policy:  "default-src 'none'; style-src " + digest(pageStyle) + "; script-src " + digest(pageScript) + "; base-uri 'none'; form-action 'none'",
	}
	if p.Title == "" {
		p.Title, p.Plays = strings.Join(p.Plays, "; "), nil
	}
	if states != nil {
		f.Holds, p.Held = inCells(s.Parts[0].Schedule, states), holdsMean(s.Parts[0].Schedule)
	}
	p.tables(s.Result, f)
	data, err := json.Marshal(f) // escapes <, > and &, so that no name ends the script
	if err != nil {
		return nil, fmt.Errorf("a page of times that are no numbers: %w", err)
	}
	p.Data = template.JS(data)
	return p, nil
}

// tables fills the tables of steps and of the critical path.
func (p *page) tables(r *sim.Result, f *film) {
	for i, step := range r.PerStep {
		p.Steps = append(p.Steps, pageStep{
			Number: i + 1, Messages: step.Messages, Words: step.Words,
			Start: figures(f.Steps[i].Start), End: figures(f.Steps[i].End),
			LinksInUse: step.LinksInUse, MaxLinkLoad: step.MaxLinkLoad,
			Congested: f.congested(i), What: f.describe(i), Frame: p.Stage.Steps[i],
		})
	}
	for _, leg := range r.Path {
		p.Path = append(p.Path, pageLeg{
			Message: messageName(leg.From, leg.To), Step: leg.Step + 1, Words: leg.Words,
			Start: figures(leg.Start), End: figures(leg.End), Waited: figures(leg.Waited),
			For: leg.WaitedFor, After: figures(leg.ComputeAfter),
		})
	}
}

// digest is how a content security policy names what it lets pass.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
