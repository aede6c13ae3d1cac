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

func TestAProfileIsReadAsItWasWritten(t *testing.T) {
	var text bytes.Buffer
	want := exampleProfile()
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

func TestWhatIsNoProfileOfThisVersionIsRefused(t *testing.T) {
	text := func(change func(*model.Profile)) string {
		var b bytes.Buffer
		p := exampleProfile()
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
		{text(func(p *model.Profile) { p.Node.Copy = append(p.Node.Copy, p.Node.Copy...) }), "copy: a piece from 0 bytes after one from 0"},
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
