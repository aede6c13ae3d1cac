package draw_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/draw"
)

// aComparison is of two ranks and three steps, the second of which takes twice as long as
// simulated.
func aComparison() draw.Comparison {
	step := func(simulated, real float64, parts bool) draw.ComparedStep {
		return draw.ComparedStep{ComparedShare: draw.ComparedShare{Simulated: simulated, Real: real}, Parts: parts}
	}
	c := draw.Comparison{
		Title: "Simulated and real: allreduce <ring>", Note: "4 calls at main.go:12.", Notes: []string{"rank 1 came last"},
		Simulated: 300, Real: 0.00042,
		Steps: []draw.ComparedStep{step(0.4, 0.25, true), step(0.3, 0.49, true), step(0.3, 0.26, false)},
	}
	for rank := range 2 {
		at := 0.01 * float64(rank)
		c.Ranks = append(c.Ranks, draw.ComparedRank{
			{Step: 0, SimulatedEnd: 0.4, RealStart: at, RealEnd: 0.25},
			{Step: 1, SimulatedStart: 0.4, SimulatedEnd: 0.7, RealStart: 0.25, RealEnd: 0.74, Parts: true},
			{Step: 2, SimulatedStart: 0.7, SimulatedEnd: 1, RealStart: 0.74, RealEnd: 1},
		})
	}
	return c
}

func TestAComparisonOutlinesWhatParts(t *testing.T) {
	var out bytes.Buffer
	c := aComparison()
	if err := draw.Compare(&out, c); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for d := xml.NewDecoder(&out); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	steps, ranks := strings.Count(text, `stroke="#c8102e" stroke-width="2.5" stroke-linejoin`), strings.Count(text, `stroke="#c8102e" stroke-width="2.2"`)
	if steps != 2 || ranks != 2 {
		t.Errorf("%d steps of all ranks and %d of one are outlined, want 2 and 2", steps, ranks)
	}
	if got := strings.Count(text, "rank 1, step "); got != 6 {
		t.Errorf("rank 1 has %d bars, want a simulated and a real one for each of 3 steps", got)
	}
	for i := range c.Steps {
		c.Steps[i].Parts = false
	}
	out.Reset()
	if err := draw.Compare(&out, c); err != nil || !strings.Contains(out.String(), "They part in no step.") {
		t.Errorf("error %v; nothing says that they part in no step", err)
	}
}

func TestThePageOfAComparisonHasTheFigureAndTheTable(t *testing.T) {
	var out bytes.Buffer
	if err := draw.ComparePage(&out, aComparison()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "allreduce &lt;ring&gt;", `<tr class="parts"><td>2</td><td>30.0%</td><td>49.0%</td><td>&#43;19.0</td></tr>`, "<tr><td>rest</td><td>0.0%</td>", "<p>rank 1 came last</p>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(out.String(), "<script") || strings.Contains(out.String(), "src=") {
		t.Error("the page has a script, or something from elsewhere")
	}
}

func TestTheTraceOfAComparisonHasBothTimelinesOnOneAxis(t *testing.T) {
	var out bytes.Buffer
	if err := draw.CompareTrace(&out, aComparison()); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Ph, Cat, Name string
			Pid           int
			Ts, Dur       float64
		}
	}
	if err := json.Unmarshal(out.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	slices, parts, ends := map[int]int{}, map[int]int{}, map[int]float64{}
	for _, e := range trace.TraceEvents {
		if e.Ph == "X" {
			slices[e.Pid]++
			ends[e.Pid] = max(ends[e.Pid], e.Ts+e.Dur)
			if e.Cat == "parts" {
				parts[e.Pid]++
			}
		}
	}
	for pid := 1; pid <= 2; pid++ {
		if slices[pid] != 9 || parts[pid] != 4 || ends[pid] < 419.9 || ends[pid] > 420.1 {
			t.Errorf("process %d has %d slices, of which %d part, until %g µs: want 9, 4 and 420", pid, slices[pid], parts[pid], ends[pid])
		}
	}
}

func TestAComparisonOfManyRanksIsRefusedButForATrace(t *testing.T) {
	c := aComparison()
	for len(c.Ranks) <= 64 {
		c.Ranks = append(c.Ranks, c.Ranks[0])
	}
	if err := draw.Compare(io.Discard, c); err == nil || !strings.Contains(err.Error(), "65 ranks") || !strings.Contains(err.Error(), "want at most 64") {
		t.Errorf("got %v", err)
	}
	if err := draw.ComparePage(io.Discard, c); err == nil {
		t.Error("a page of 65 ranks: want an error")
	}
	if err := draw.CompareTrace(io.Discard, c); err != nil {
		t.Error(err)
	}
}
