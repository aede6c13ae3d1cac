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
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// maxPageMessages is how many messages a page may have. An allgather on a ring
// of 64 ranks has 4032: 63 steps of 64.
const maxPageMessages = 5000

// Page writes a page that plays the schedule on its network: one HTML file
// without external resources. Its script moves the messages along their routes,
// in virtual time or step by step. Without scripts the page still has its
// tables and a figure of every step.
//
// Page returns an error and writes nothing if the scene has no log, or is too
// large to be read: more than 64 processors (32 of a hypercube), 128 switches or
// 5000 messages.
func Page(w io.Writer, s Scene) error {
	if s.Result == nil || len(s.Result.Log) != s.Result.Messages {
		return fmt.Errorf("a page of a simulation without its log: want one made with Record")
	}
	r := s.Result
	if err := checkReadable(r.Config.Topology); err != nil {
		return err
	}
	if r.Messages > maxPageMessages {
		return fmt.Errorf("a page of %d messages: want at most %d", r.Messages, maxPageMessages)
	}
	p, err := newPage(s)
	if err != nil {
		return err
	}
	var b bytes.Buffer // if the template fails, nothing has been written to w
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// A page is the data of the template.
type page struct {
	pageHeader
	pageBody
	pageAssets
}

// A pageHeader describes the scene as a whole.
type pageHeader struct {
	Title   string
	Parts   []string // one description for each part
	Network string
	Model   string
	Totals  []pageTotal
}

// A pageTotal is a number about the whole simulation.
type pageTotal struct{ Name, Value, Unit string }

// A pageBody is the main figure and the tables.
type pageBody struct {
	HasMessages  bool
	HasRoot      bool
	Figure       pageFigure
	Steps        []pageStep
	ManySteps    bool   // the figures of the steps start folded
	ContentsNote string // how to read the contents of ranks; empty if they are not shown
	Path         []pageLeg
}

// A pageStep is a row of the table of steps, and a small figure.
type pageStep struct {
	Number          int // from 1
	Messages, Words int
	Start, End      string
	LinksInUse      int
	MaxLinkLoad     int
	Congested       string // the congested links, with their loads
	Description     string // the text alternative of the figure
	Frame           pageFrame
}

// A pageLeg is a row of the critical path.
type pageLeg struct {
	Message                 string
	Step, Words             int
	Start, End, Waited      string
	WaitedFor, ComputeAfter string
}

// pageAssets are the embedded data, style and script, and the policy that lets
// the browser use nothing else.
type pageAssets struct {
	Data   template.JS // the animation as JSON
	Style  template.CSS
	Script template.JS
	Policy string // the content security policy
}

func newPage(s Scene) (*page, error) {
	a := newAnimation(s)
	states, err := stateLines(s)
	if err != nil {
		return nil, err
	}
	p := &page{
		pageHeader: pageHeader{
			Title:   s.Title,
			Parts:   partTexts(s),
			Network: networkText(s.Result),
			Model:   modelText(s.Result),
			Totals:  pageTotals(s.Result),
		},
		pageBody: pageBody{
			HasMessages: s.Result.Messages > 0,
			HasRoot:     rootOf(s) >= 0,
			Figure:      newPageFigure(s, a, states),
			ManySteps:   s.Result.Steps > 12,
		},
		pageAssets: pageAssets{
			Style:  template.CSS(pageCSS),
			Script: template.JS(pageJS),
			Policy: "default-src 'none'; style-src " + cspHash(pageCSS) + "; script-src " + cspHash(pageJS) + "; base-uri 'none'; form-action 'none'",
		},
	}
	if p.Title == "" {
		p.Title, p.Parts = strings.Join(p.Parts, "; "), nil
	}
	if states != nil {
		a.Contents, p.ContentsNote = tableCells(s.Parts[0].Schedule, states), contentsNote(s.Parts[0].Schedule)
	}
	p.addTables(s.Result, a)
	data, err := json.Marshal(a) // escapes <, > and &: a link's name cannot end the script element
	if err != nil {
		return nil, fmt.Errorf("a page of times that are no numbers: %w", err)
	}
	p.Data = template.JS(data)
	return p, nil
}

// addTables fills the tables of steps and of the critical path.
func (p *page) addTables(r *sim.Result, a *animation) {
	for i, step := range r.PerStep {
		p.Steps = append(p.Steps, pageStep{
			Number: i + 1, Messages: step.Messages, Words: step.Words,
			Start: formatTime(a.Steps[i].Start), End: formatTime(a.Steps[i].End),
			LinksInUse: step.LinksInUse, MaxLinkLoad: step.MaxLinkLoad,
			Congested: a.congested(i), Description: a.describe(i), Frame: p.Figure.Steps[i],
		})
	}
	for _, leg := range r.Path {
		p.Path = append(p.Path, pageLeg{
			Message: messageName(leg.From, leg.To), Step: leg.Step + 1, Words: leg.Words,
			Start: formatTime(leg.Start), End: formatTime(leg.End), Waited: formatTime(leg.Waited),
			WaitedFor: leg.WaitedFor, ComputeAfter: formatTime(leg.ComputeAfter),
		})
	}
}

// cspHash returns the source expression that allows an inline style or script
// in a content security policy.
func cspHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
