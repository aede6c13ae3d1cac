package model_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/model"
)

func exampleProfile() *model.Profile {
	load := 0.5
	return &model.Profile{
		Version: model.ProfileVersion,
		Node: model.Node{
			Origin:     model.Origin{Made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Host: "a", System: "linux/amd64", Command: "chorale v1", Load: &load},
			Processors: 4, Copy: model.Line(0.01, 1e-5),
			Combine:    []model.Combining{{Type: "float64", Bytes: 8, Curve: model.Line(0.01, 3e-5)}},
			Memory:     []model.Bandwidth{{Movers: 1, Rate: model.Exactly(8000)}, {Movers: 4, Rate: model.Exactly(20000)}},
			MemoryFrom: 1 << 20,
		},
		Links: []model.Link{{Transport: "shm", OneWay: model.Line(0.3, 1e-4), Exchange: model.Line(0.4, 2e-4), Step: model.Exactly(0.1)}},
	}
}

// exampleHosts are the hosts a, b and c: c has other processors, and is far from the others.
func exampleHosts() *model.Profile {
	p := exampleProfile()
	far := p.Node
	far.Processors = 64
	p.HostsProfile = model.HostsProfile{
		Hosts:      []string{"a", "b", "c"},
		OtherHosts: []model.HostClass{{Hosts: []string{"c"}, Node: far, Links: p.Links}},
		HostLinks: []model.HostLink{
			{Pairs: []model.HostPair{{"a", "c"}, {"b", "c"}}, Measured: []model.HostPair{{"b", "c"}}, Link: model.Link{Transport: "tcp", OneWay: model.Line(50, 1e-2), Exchange: model.Line(50, 1e-2)}},
			{Pairs: []model.HostPair{{"a", "b"}}, Measured: []model.HostPair{{"a", "b"}}, Link: model.Link{Transport: "tcp", OneWay: model.Line(20, 1e-3), Exchange: model.Line(20, 1e-3)}},
		},
	}
	return p
}

func TestAProfileIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []*model.Profile{exampleProfile(), exampleHosts()} {
		var text bytes.Buffer
		if err := want.Write(&text); err != nil {
			t.Fatal(err)
		}
		got, err := model.ParseProfile(text.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// Profiles of one machine are as they were before hosts were measured.
func TestAProfileOfOneMachineSaysNothingOfHosts(t *testing.T) {
	var text bytes.Buffer
	if err := exampleProfile().Write(&text); err != nil || strings.Contains(text.String(), "osts") {
		t.Errorf("%v: %s", err, &text)
	}
}

func TestTheLinkBetweenHostsIsThatOfMostPairs(t *testing.T) {
	if l, err := exampleHosts().Between(); err != nil || l.OneWay.Time(0) != 50 {
		t.Errorf("got %+v, %v: want the link of two pairs", l, err)
	}
	const want = "the profile has no link between hosts: want chorale tune --hosts A,B"
	if _, err := exampleProfile().Between(); err == nil || err.Error() != want {
		t.Errorf("the error is %v: want %q", err, want)
	}
}

func TestWhatIsNoProfileOfThisVersionIsRefused(t *testing.T) {
	text := func(change func(*model.Profile)) string {
		var b bytes.Buffer
		p := exampleHosts()
		change(p)
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, c := range []struct{ text, want string }{
		{text(func(p *model.Profile) { p.Version = 2 }), "a profile of version 2: want version 1: chorale tune makes one"},
		{"{}", "not a profile: it has no version"},
		{"[]", "not a profile: "},
		{"", "not a profile: "},
		{`{"version":1,"nodes":{}}`, `not a profile: json: unknown field "nodes"`},
		{`{"version":1}`, "0 processors: want 1 or more"},
		{text(func(p *model.Profile) { p.Links[0].OneWay[0].PerByte.Value = -1 }), "shm: one way: the piece from 0 bytes takes less than no time"},
		{text(func(p *model.Profile) { p.Links[0].Exchange[0].From = 8 }), "shm: exchange: the first piece is from 8 bytes: want 0"},
		{text(func(p *model.Profile) { p.Links[0].Step.Value = -1 }), "shm: -1: want a number, 0 or more"},
		{text(func(p *model.Profile) { p.Links[0].Send = model.Line(1, 0) }), "shm: one of send and receive: want both, or none"},
		{text(func(p *model.Profile) { p.Links[0].RendezvousFrom = -1 }), "shm: a rendezvous from -1 bytes: want 0 or more"},
		{text(func(p *model.Profile) { p.Links[0].Capacity = -1 }), "shm: a capacity of -1 messages: want 0 or more"},
		{text(func(p *model.Profile) { p.Node.Copy = append(p.Node.Copy, p.Node.Copy...) }), "copy: a piece from 0 bytes after one from 0"},
		{text(func(p *model.Profile) { p.HostLinks[0].Pairs[0][1] = "d" }), `between hosts: host "d": want one of the profile's hosts a, b, c`},
		{text(func(p *model.Profile) { p.HostLinks[1].Gap.Value = -1 }), "between hosts: tcp: -1: want a number, 0 or more"},
		{text(func(p *model.Profile) { p.OtherHosts[0].Hosts[0] = "d" }), `other hosts: host "d": want one of the profile's hosts a, b, c`},
		{text(func(p *model.Profile) { p.OtherHosts[0].Node.Processors = 0 }), "other hosts: 0 processors: want 1 or more"},
		{strings.Replace(text(func(*model.Profile) {}), `"a b"`, `"ab"`, 1), `hosts "ab": want two names with a space between them`},
	} {
		if _, err := model.ParseProfile([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v: want %q", err, c.want)
		}
	}
}

func TestACurveTakesTheLineOfItsPiece(t *testing.T) {
	c := model.Curve{
		{Startup: model.Exactly(1), PerByte: model.Exactly(0.5)},
		{From: 100, Startup: model.Exactly(-20), PerByte: model.Exactly(1)},
	}
	for bytes, want := range map[float64]float64{0: 1, 10: 6, 99: 50.5, 100: 80, 1000: 980} {
		if got := c.Time(bytes); got != want {
			t.Errorf("%g bytes take %g: want %g", bytes, got, want)
		}
	}
	if got := model.Curve(nil).Time(8); got != 0 {
		t.Errorf("the zero curve takes %g", got)
	}
	if got := (model.Curve{{Startup: model.Exactly(-3)}}).Time(1); got != 0 || math.Signbit(got) {
		t.Errorf("a time is %g: want 0 at least", got)
	}
}

func TestALinkIsFoundByItsTransport(t *testing.T) {
	p := exampleProfile()
	if _, err := p.Link("tcp"); err == nil || err.Error() != "the profile has no transport tcp: want shm, or chorale tune --transport tcp" {
		t.Errorf("the error is %v", err)
	}
	p.SetLink(model.Link{Transport: "tcp"})
	p.SetLink(model.Link{Transport: "shm", Gap: model.Exactly(7)})
	if l, err := p.Link("shm"); err != nil || l.Gap.Value != 7 || len(p.Links) != 2 {
		t.Errorf("got %+v, %v: want the new link in place of the old one", l, err)
	}
}

// A transport combines where it would copy, so only the difference is charged.
func TestCombiningCostsWhatItTakesBeyondACopy(t *testing.T) {
	n := exampleProfile().Node
	if got := n.Combining(8, 1000); math.Abs(got-0.02) > 1e-12 {
		t.Errorf("1000 bytes of float64 take %g: want 0.02", got)
	}
	if got := n.Combining(3, 1000); got != 0 {
		t.Errorf("elements of 3 bytes take %g: want 0, for they were not measured", got)
	}
	if got := n.Bandwidth(); got != 20000 {
		t.Errorf("the bandwidth is %g: want the highest", got)
	}
}

func exampleSelection() model.Selection {
	return model.Selection{
		Version: model.SelectionVersion, Transport: "shm", Processors: 4,
		Rules: []model.Rule{
			{Collective: "allreduce", Ranks: 4, From: 0, To: 63, Algorithm: "tree", Bytes: 8, Time: 1, BuiltIn: "ring", BuiltInTime: 2},
			{Collective: "allreduce", Ranks: 4, From: 64, To: 127, Algorithm: "linear", Bytes: 64, Time: 1, BuiltIn: "ring", BuiltInTime: 2},
		},
	}
}

func TestSelectionsAreReadAsTheyWereWritten(t *testing.T) {
	want := exampleProfile()
	want.SetSelection(exampleSelection())
	want.SetSelection(model.Selection{Version: model.SelectionVersion, Transport: "tcp", Processors: 4, Rules: []model.Rule{}})
	var text bytes.Buffer
	if err := want.Write(&text); err != nil {
		t.Fatal(err)
	}
	got, err := model.ParseProfile(text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got.Selections, want.Selections)
	}
}

func TestASelectionTakesThePlaceOfThatOfTheSameTransport(t *testing.T) {
	p := exampleProfile()
	p.SetSelection(exampleSelection())
	p.SetSelection(model.Selection{Transport: "shm", Processors: 7})
	if len(p.Selections) != 1 || p.Selections[0].Processors != 7 {
		t.Errorf("got %+v", p.Selections)
	}
}

func TestSelectionsThatSayNothingOrTwoThingsAreRefused(t *testing.T) {
	for want, change := range map[string]func(*model.Selection){
		"a selection of version 2 for shm: want version 1: chorale tune --select makes one":        func(s *model.Selection) { s.Version = 2 },
		"the selection for shm has 0 processors: want 1 or more":                                   func(s *model.Selection) { s.Processors = 0 },
		"rule 2 of the selection for shm names no collective or no algorithm":                      func(s *model.Selection) { s.Rules[1].Algorithm = "" },
		"rule 1 of the selection for shm is for 0 ranks, and 0 to 63 bytes":                        func(s *model.Selection) { s.Rules[0].Ranks = 0 },
		"rule 1 of the selection for shm is for 4 ranks, and 64 to 63 bytes":                       func(s *model.Selection) { s.Rules[0].From = 64 },
		"rule 1 of the selection for shm has times of 0 and 2 µs: want more than 0":                func(s *model.Selection) { s.Rules[0].Time = 0 },
		"rules 1 and 2 of the selection for shm are for the same calls: allreduce on 4 ranks":      func(s *model.Selection) { s.Rules[0].To = 64 },
		"rule 2 of the selection for shm is for 4 ranks, and 64 to 63 bytes: want 1 rank or more,": func(s *model.Selection) { s.Rules[1].To = 63 },
	} {
		p := exampleProfile()
		s := exampleSelection()
		change(&s)
		p.SetSelection(s)
		var text bytes.Buffer
		if err := p.Write(&text); err != nil {
			t.Fatal(err)
		}
		if _, err := model.ParseProfile(text.Bytes()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v: want %q", err, want)
		}
	}
	p := exampleProfile()
	p.Selections = []model.Selection{exampleSelection(), exampleSelection()}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		t.Fatal(err)
	}
	if _, err := model.ParseProfile(text.Bytes()); err == nil || err.Error() != "two selections for shm: want one" {
		t.Errorf("the error is %v", err)
	}
}
