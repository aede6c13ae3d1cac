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
	"math"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
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
	Stage   stage
	Steps   []pageStep
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
	data, err := json.Marshal(f) // escapes <, > and &, so that no title ends the script
	if err != nil {
		return nil, fmt.Errorf("a page of times that are no numbers: %w", err)
	}
	r := s.Result
	p := &page{
		Title:   s.Title,
		Plays:   playsOf(s),
		Network: networkOf(s),
		Model:   fmt.Sprintf("ts %s, tw %s, th %s, top %s", figures(r.Config.Model.Ts), figures(r.Config.Model.Tw), figures(r.Config.Model.Th), figures(r.Config.Model.Top)),
		Totals: []pageTotal{
			{"Total time", figures(r.Time), "time units"},
			{"Steps", strconv.Itoa(r.Steps), ""},
			{"Messages", strconv.Itoa(r.Messages), ""},
			{"Words in all messages", strconv.Itoa(r.Words), "words"},
			{"Max link load", strconv.Itoa(r.MaxLinkLoad), counted(r.MaxLinkLoad, "message")},
		},
		Moves:  r.Messages > 0,
		Stage:  newStage(s, f),
		Data:   template.JS(data),
		Style:  template.CSS(pageStyle),
		Script: template.JS(pageScript),
		Policy: "default-src 'none'; style-src " + digest(pageStyle) + "; script-src " + digest(pageScript) + "; base-uri 'none'; form-action 'none'",
	}
	if p.Title == "" {
		p.Title, p.Plays = strings.Join(p.Plays, "; "), nil
	}
	for i, step := range r.PerStep {
		p.Steps = append(p.Steps, pageStep{
			Number: i + 1, Messages: step.Messages, Words: step.Words,
			Start: figures(step.Start), End: figures(step.End),
			LinksInUse: step.LinksInUse, MaxLinkLoad: step.MaxLinkLoad,
			Congested: f.congested(i), What: f.describe(i), Frame: p.Stage.step(f, i),
		})
	}
	for _, leg := range r.Path {
		p.Path = append(p.Path, pageLeg{
			Message: messageName(leg.From, leg.To), Step: leg.Step + 1, Words: leg.Words,
			Start: figures(leg.Start), End: figures(leg.End), Waited: figures(leg.Waited),
			For: leg.For, After: figures(leg.After),
		})
	}
	return p, nil
}

// playsOf says what each part of the scene is.
func playsOf(s Scene) []string {
	var all []string
	for _, part := range s.Parts {
		sc := part.Schedule
		text := fmt.Sprintf("%v %s on %d ranks", sc.Collective, sc.Algorithm, sc.P)
		if sc.Collective.Rooted() {
			text += fmt.Sprintf(" with root %d", sc.Root)
		}
		if sc.Collective == sched.Shift {
			text += fmt.Sprintf(" by %d", sc.Root)
		}
		if sc.Collective != sched.Barrier {
			text += fmt.Sprintf(", m = %d %s", part.Words, counted(part.Words, "word"))
		}
		all = append(all, text)
	}
	return all
}

// networkOf says on what the scene is played, and by which rules.
func networkOf(s Scene) string {
	c := s.Result.Config
	words := []string{fmt.Sprintf("%d ranks on %v, %d processors and %d links", s.Result.Ranks, c.Topology, c.Topology.Processors(), c.Topology.LinkCount())}
	add := func(yes bool, this, that string) {
		if yes {
			words = append(words, this)
		} else if that != "" {
			words = append(words, that)
		}
	}
	add(c.AllPort, "all ports at once", "one port out and one in")
	add(c.StoreAndForward, "store and forward", "cut-through")
	add(c.Share, "messages share a link", "messages wait for a link")
	add(c.Sync, "ranks begin each step together", "")
	add(c.MemoryBandwidth > 0, "memory gives and takes "+figures(c.MemoryBandwidth)+" words per time unit", "")
	return strings.Join(words, "; ")
}

// messageName is what a page calls a message.
func messageName(from, to int) string { return fmt.Sprintf("%d→%d", from, to) }

// counted is the noun for a number of things.
func counted(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// figures writes a time to six significant figures, as the script does.
func figures(v float64) string {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return strconv.FormatFloat(v+0, 'g', -1, 64)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 5, 64), 64)
	if size := math.Abs(rounded); err != nil || size >= 1e15 || size < 1e-6 {
		return strconv.FormatFloat(v, 'e', 5, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// digest is how a content security policy names what it lets pass.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
