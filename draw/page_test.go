package draw_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// simulate returns the scene of an algorithm on a network.
func simulate(t *testing.T, c sched.Collective, spec, network string, p, words int, m model.Model) draw.Scene {
	t.Helper()
	s, err := algo.New(c, spec, p, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	on, err := topo.Parse(network, p)
	if err != nil {
		t.Fatal(err)
	}
	parts := []sim.Part{{Schedule: s, Words: words}}
	r, err := sim.Run(sim.Config{Topology: on, Model: m, Record: true}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return draw.Scene{Title: "A page of " + spec, Parts: parts, Result: r}
}

// nearestFirst congests the middle of a linear array. CLAIM G3
func nearestFirst(t *testing.T) draw.Scene {
	return simulate(t, sched.Bcast, "binomial,order=ascending", "linear", 8, 64, model.Default())
}

func renderPage(t *testing.T, s draw.Scene) string {
	t.Helper()
	var b bytes.Buffer
	if err := draw.Page(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheSameSceneMakesTheSamePage(t *testing.T) {
	first := renderPage(t, nearestFirst(t))
	for range 3 {
		if renderPage(t, nearestFirst(t)) != first {
			t.Error("two pages of one scene differ")
		}
	}
}

func TestAPageLoadsNothing(t *testing.T) {
	text := renderPage(t, nearestFirst(t))
	for _, load := range []string{`https?://`, `\bsrc=`, `<link`, `@import`, `url\(`, `\bstyle=`, `\bon[a-z]+=`} {
		if found := regexp.MustCompile(load).FindString(text); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	if !strings.Contains(text, "default-src &#39;none&#39;;") || strings.Contains(text, "unsafe") {
		t.Error("the page's policy allows more than it needs")
	}
}

func TestNoTitleBreaksOutOfAPage(t *testing.T) {
	s := nearestFirst(t)
	calm := strings.Count(renderPage(t, s), "<script")
	s.Title = "</title></script><script>alert(1)</script><!-- \u2028 \" ' `"
	s.Parts[0].Schedule.Algorithm = s.Title
	text := renderPage(t, s)
	if got := strings.Count(text, "<script"); got != calm {
		t.Errorf("%d scripts, want %d", got, calm)
	}
	pageAnimation(t, text)
}

// pageAnimation returns the data of the page's script.
func pageAnimation(t *testing.T, page string) (f struct {
	Steps []struct {
		First, Last int
		Loads       []struct{ Link, Messages int }
	}
	Messages []struct {
		From, To   int
		Start, End float64
		Route      []int
	}
	Links    []string
	Contents [][]string
}) {
	t.Helper()
	_, data, _ := strings.Cut(page, `type="application/json">`)
	data, _, _ = strings.Cut(data, "</script>")
	if err := json.Unmarshal([]byte(data), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAPageShowsTheLoadsThatTheSimulationFound(t *testing.T) {
	for _, c := range []struct {
		collective sched.Collective
		spec       string
		network    string
		p          int
	}{
		{sched.Bcast, "binomial,order=ascending", "linear", 8},
		{sched.Bcast, "binomial", "mesh:3x5", 15},
		{sched.AllReduce, "recursive-doubling", "torus:3x4", 12},
		{sched.AllToAll, "pairwise", "hypercube", 16},
		{sched.Scatter, "binomial", "tree", 8},
		{sched.AllGather, "ring", "star", 7},
		{sched.Barrier, "dissemination", "fattree:k=4", 16},
		{sched.AllReduce, "ring", "dragonfly:2,1,1", 6},
	} {
		s := simulate(t, c.collective, c.spec, c.network, c.p, 48, model.Default())
		f := pageAnimation(t, renderPage(t, s))
		r := s.Result
		if len(f.Steps) != r.Steps || len(f.Messages) != r.Messages {
			t.Fatalf("%s on %s: %d steps and %d messages, want %d and %d", c.spec, c.network, len(f.Steps), len(f.Messages), r.Steps, r.Messages)
		}
		for i, step := range r.PerStep {
			most, congested := 0, 0
			for _, l := range f.Steps[i].Loads {
				most = max(most, l.Messages)
				if l.Messages > 1 {
					congested++
				}
			}
			if len(f.Steps[i].Loads) != step.LinksInUse || most != step.MaxLinkLoad || congested != len(step.Congested) || f.Steps[i].Last-f.Steps[i].First != step.Messages {
				t.Errorf("%s on %s, step %d: the page has %+v, the simulation %+v", c.spec, c.network, i+1, f.Steps[i], step)
			}
		}
	}
}

func TestAPageNamesTheCriticalPathAndTheCongestedLinks(t *testing.T) {
	text := renderPage(t, nearestFirst(t))
	for _, want := range []string{">link 1→2<", "1→2 (2)", "3→4 (4)", "Step 2 of 3: 0→2, 1→3. Congested links"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestAPageShowsTheContentsOfRanks(t *testing.T) {
	for _, c := range []struct {
		collective sched.Collective
		spec       string
		want       [][]string // by state and rank
	}{
		{sched.Bcast, "binomial", [][]string{{"M", "", "", ""}, {"M", "", "M", ""}, {"M", "M", "M", "M"}}},
		{sched.Scatter, "binomial", [][]string{{"(0–3)", "", "", ""}, {"(0,1)", "", "(2,3)", ""}, {"(0)", "(1)", "(2)", "(3)"}}},
		{sched.AllReduce, "recursive-doubling", [][]string{{"0", "1", "2", "3"}, {"0+1", "0+1", "2+3", "2+3"}, {"R", "R", "R", "R"}}}, // CLAIM V1
	} {
		f := pageAnimation(t, renderPage(t, simulate(t, c.collective, c.spec, "hypercube", 4, 8, model.Default())))
		if !slices.EqualFunc(f.Contents, c.want, slices.Equal) {
			t.Errorf("%v %s: ranks hold %q, want %q", c.collective, c.spec, f.Contents, c.want)
		}
	}
}

func TestAPageOfSeveralSchedulesPlaysThemTogether(t *testing.T) {
	s := simulate(t, sched.Bcast, "binomial", "linear", 4, 8, model.Default())
	parts := []sim.Part{{Schedule: s.Parts[0].Schedule, Words: 8}, {Schedule: s.Parts[0].Schedule, Words: 8, Ranks: []int{4, 5, 6, 7}}}
	on, err := topo.NewLinear(8)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(sim.Config{Topology: on, Model: model.Default(), Record: true}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	f := pageAnimation(t, renderPage(t, draw.Scene{Parts: parts, Result: r}))
	if len(f.Messages) != 6 || len(f.Contents) != 0 {
		t.Errorf("%d messages and %d states, want 6 and none", len(f.Messages), len(f.Contents))
	}
}

func TestAPageOfOneRankHasNothingToPlay(t *testing.T) {
	text := renderPage(t, simulate(t, sched.Bcast, "binomial", "linear", 1, 5, model.Default()))
	if !strings.Contains(text, "nothing to send") {
		t.Error("the page does not say that there is nothing to send")
	}
}

func TestUnreadablePagesAreRefused(t *testing.T) {
	unrecorded := nearestFirst(t)
	unrecorded.Result.Log = nil
	for _, c := range []struct {
		scene draw.Scene
		want  string
	}{
		{unrecorded, "without its log: want one made with Record"},
		{draw.Scene{}, "without its log: want one made with Record"},
		{simulate(t, sched.Bcast, "binomial", "hypercube", 1024, 5, model.Default()), "want at most"},
		{simulate(t, sched.AllGather, "ring", "full", 64, 5, model.Default()), ""},
		{simulate(t, sched.AllToAll, "ecube", "hypercube", 32, 5, model.Default()), ""},
		{simulate(t, sched.AllReduce, "ring", "ring", 64, 64, model.Default()), "8064 messages: want at most"},
	} {
		if testing.Short() && c.want == "" {
			continue // a large page
		}
		var b bytes.Buffer
		err := draw.Page(&b, c.scene)
		switch {
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("error %v, want one line with %q", err, c.want)
		case c.want != "" && b.Len() > 0:
			t.Errorf("%d bytes of a page despite the error", b.Len())
		}
	}
}
