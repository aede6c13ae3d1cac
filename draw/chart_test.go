package draw

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func someCurves() ChartData {
	c := ChartData{Title: "bcast among 8 ranks", Note: "ts 10, tw 1", X: "m, in words", Y: "time, in the unit of ts",
		Crossovers: []Crossover{{At: Point{24, 102}, Label: "m* = 24", Description: "binomial is the cheapest before, scatter-allgather after"}},
		Series:     []Series{{Name: "binomial"}, {Name: "scatter-allgather"}}}
	for m := 1.0; m <= 256; m *= 2 {
		c.Series[0].Formula = append(c.Series[0].Formula, Point{m, 30 + 3*m})
		c.Series[1].Formula = append(c.Series[1].Formula, Point{m, 60 + 1.75*m})
		if m >= 8 {
			c.Series[1].Simulated = append(c.Series[1].Simulated, Point{m, 60 + 1.75*m})
		}
	}
	return c
}

func TestAChartMatchesTheGoldenFile(t *testing.T) {
	var b, again bytes.Buffer
	if err := Chart(&b, someCurves()); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	if err := Chart(&again, someCurves()); err != nil || again.String() != b.String() {
		t.Errorf("the second chart differs from the first (%v)", err)
	}
	golden(t, "chart.svg", b.Bytes())
}

func TestAChartSaysInWordsWhatItShows(t *testing.T) {
	var b bytes.Buffer
	if err := Chart(&b, someCurves()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"binomial: by the formula 33 at 1 to 798 at 256.",
		"scatter-allgather: by the formula 61.75 at 1 to 508 at 256; simulated 74 at 8 to 508 at 256.",
		"m* = 24: binomial is the cheapest before, scatter-allgather after.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the description does not contain %q", want)
		}
	}
	if strings.Contains(b.String(), "Liberation") {
		t.Error("its font differs from the other figures")
	}
}

func TestAChartRefusesWhatLogAxesCannotShow(t *testing.T) {
	for name, lines := range map[string][]Series{
		"without points":  {{Name: "linear"}},
		"both above 0":    {{Name: "linear", Formula: []Point{{1, 0}}}},
		"costs NaN":       {{Name: "linear", Simulated: []Point{{1, math.NaN()}}}},
		"costs +Inf":      {{Name: "linear", Simulated: []Point{{1, math.Inf(1)}}}},
		"want at most 6,": make([]Series, 7),
	} {
		var b bytes.Buffer
		if err := Chart(&b, ChartData{Series: lines}); err == nil || !strings.Contains(err.Error(), name) || b.Len() > 0 {
			t.Errorf("%d bytes and error %v: want one with %q", b.Len(), err, name)
		}
	}
}

func TestAChartOfOnePointHasAxes(t *testing.T) {
	var b bytes.Buffer
	if err := Chart(&b, ChartData{Series: []Series{{Name: "linear", Formula: []Point{{2, 18}}}}}); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
}

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, span := range []float64{1e-9, 0.3, 1, 7, 33, 126, 1024, 99999, 3e12} {
		ticks := roundTicks(span, 10)
		if n := len(ticks); n < 4 || n > 12 || ticks[0] != 0 || ticks[n-1] > span*(1+1e-9) {
			t.Errorf("span %v: ticks %v", span, ticks)
		}
	}
	for _, high := range []float64{2, 64, 4096, 1 << 20, 1 << 40} {
		if n := len(powerTicks(1, high)); n < 2 || n > 13 {
			t.Errorf("up to %v: %d ticks", high, n)
		}
	}
}

func TestCostsOfCountsAreLevelAroundThem(t *testing.T) {
	got := steps([]Point{{2, 10}, {3, 20}, {8, 30}})
	want := [][]Point{{{2, 10}, {2.5, 10}, {2.5, 20}, {3.5, 20}}, {{7.5, 30}, {8, 30}}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("steps %v: want %v", got, want)
	}
}

func TestAxesEndAtRoundNumbers(t *testing.T) {
	for _, c := range [][2]float64{{2, 400}, {1, 10000}, {3, 3.5}, {1, 1 << 25}, {74, 798}, {0.3, 4e6}} {
		for name, ticks := range map[string][]plot.Tick{"powers": powerTicks(c[0], c[1]), "decades": decadeTicks(c[0], c[1])} {
			if low, high := ticks[0].Value, ticks[len(ticks)-1].Value; low > c[0] || high < c[1] || len(ticks) > 16 {
				t.Errorf("%s: %d ticks from %v to %v for %v", name, len(ticks), low, high, c)
			}
		}
	}
}
