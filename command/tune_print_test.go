package command

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/internal/tune"
	"github.com/chorale-go/chorale/model"
)

func TestThePageOnTuningHasTheBoundsOfHosts(t *testing.T) {
	pagetest.CheckNumbersOf(t, "tune.md", "Hosts", map[string]int64{
		"maxProbed": maxProbed, "maxMeasured": maxMeasured, "longest": longest * int64(time.Microsecond),
	}, fmt.Sprint(probed[0], " bytes"), fmt.Sprint(tune.PieceBytes, " bytes"), fmt.Sprint(probed[1]>>10, " KiB"))
}

// wildCurve is a curve whose intervals say nothing.
func wildCurve() model.Curve {
	return model.Curve{
		{Startup: model.Estimate{Value: 123.4, Low: -1e12, High: 1e12}, PerByte: model.Estimate{Value: 0, Low: 0, High: 1}, Time: model.Estimate{Value: 123.4, Low: 0, High: 1e12}},
		{From: 4 << 20, Startup: model.Estimate{Value: -5859, Low: -1e9, High: 25380}, PerByte: model.Estimate{Value: 1.2e-4, Low: 1.1e-4, High: 2e-4}, Time: model.Estimate{Value: 999999, Low: 1, High: 1e9}, Residual: 0.999},
	}
}

// wildProfile is one of hosts, with the widest cells that there are.
func wildProfile() *model.Profile {
	wild := model.Estimate{Value: 123456, Low: 1, High: 1e12}
	link := model.Link{Transport: "inproc", OneWay: wildCurve(), Exchange: wildCurve(), Send: wildCurve(), Receive: wildCurve(), RendezvousFrom: 123 << 20, Call: wild, Step: wild, Gap: wild, Switch: wild}
	link.Origin.Spread = 12.34
	p := &model.Profile{Links: []model.Link{link}, Node: model.Node{
		Copy: wildCurve(), Combine: []model.Combining{{Op: "prod", Type: "complex128", Curve: wildCurve()}},
		Memory: []model.Bandwidth{{Movers: 1, Rate: wild}, {Movers: 128, Rate: wild}},
	}}
	for i := range 8 {
		l := model.HostLink{Link: link}
		for k := range 20 {
			l.Pairs = append(l.Pairs, model.HostPair{fmt.Sprintf("node.with.a.long.name%d", i), fmt.Sprintf("node.with.a.long.name%d", 10+k)})
		}
		p.HostLinks = append(p.HostLinks, l)
	}
	p.OtherHosts = []model.HostClass{{Hosts: []string{"node.with.a.long.name1", "node.with.a.long.name2", "node.with.a.long.name3"}}}
	return p
}

// Whatever was measured, a number in the table is one that a person can use.
func TestTheTableOfAProfileFitsATerminalAndSaysNothingAbsurd(t *testing.T) {
	var out bytes.Buffer
	if err := printTuned(&out, wildProfile(), "p.json"); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > lineWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, absurd := range []string{"−", "∞", "Inf", "NaN", "-1", "e+"} {
		if strings.Contains(out.String(), absurd) {
			t.Errorf("the table has %q:\n%s", absurd, &out)
		}
	}
	for _, want := range []string{"and 12 other pairs", "between hosts 8, crossing", "unlike the other hosts"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &out)
		}
	}
}

func TestAnIntervalIsPrintedBesideItsValue(t *testing.T) {
	for want, e := range map[string]model.Estimate{
		"±2.5%":  {Value: 100, Low: 98, High: 102.5},
		"±25%":   {Value: 100, Low: 75, High: 101},
		"±>100%": {Value: 100, Low: -5859, High: 25380},
		"-":      {Value: 3, Low: 3, High: 3},
	} {
		if got := plusMinus(e); got != want {
			t.Errorf("the interval of %+v is printed as %q: want %q", e, got, want)
		}
	}
	for want, e := range map[string]model.Estimate{
		"100 ±2.5%": {Value: 100, Low: 98, High: 102.5},
		"~100":      {Value: 100, Low: -5859, High: 25380},
		"3.00":      {Value: 3, Low: 3, High: 3},
		"-":         {},
	} {
		if got := withInterval(e); got != want {
			t.Errorf("%+v is printed as %q: want %q", e, got, want)
		}
	}
}
