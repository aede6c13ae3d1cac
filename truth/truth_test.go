package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/model"
)

// at returns a cell of an algorithm, with the time of each round.
func at(algorithm string, simulated float64, rounds ...float64) cell {
	var all []cell
	for _, t := range rounds {
		row := bench.Row{
			Call:       bench.Call{Collective: "bcast", Algorithm: algorithm, Transport: "shm", Ranks: 2, Bytes: 64},
			Times:      bench.Times{Median: t},
			Stable:     true,
			Prediction: bench.Prediction{Simulated: &simulated},
		}
		all = merge(all, []cell{{Row: row, vector: 64, rounds: []float64{t}}})
	}
	return all[0]
}

func near1(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestTheTimeOfACellIsTheMiddleOfItsRounds(t *testing.T) {
	for _, test := range []struct {
		rounds []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{2, 8}, 4}, {[]float64{100, 1, 5}, 5}} {
		if c := at("ring", 1, test.rounds...); !near1(c.Median, test.want) {
			t.Errorf("the middle of %v is %v: want %v", test.rounds, c.Median, test.want)
		}
	}
	if c := at("ring", 1, 2, 3); !near1(c.spread(), 0.5) {
		t.Errorf("rounds of 2 and 3 are %v apart: want 0.5", c.spread())
	}
}

func TestAnErrorIsRelativeToTheMeasuredTime(t *testing.T) {
	for simulated, want := range map[float64]float64{4: 0, 2: 0.5, 5: 0.25, 12: 2} {
		if got := at("ring", simulated, 4).error(); !near1(got, want) {
			t.Errorf("%v in place of 4 is an error of %v: want %v", simulated, got, want)
		}
	}
}

func TestQuantilesAreAmongTheNumbers(t *testing.T) {
	x := []float64{4, 1, 3, 2, 10}
	for part, want := range map[float64]float64{0.5: 3, 0.9: 10, 0.2: 1, 1: 10} {
		if got := quantile(x, part); got != want {
			t.Errorf("%v of the numbers are at most %v: want %v", part, got, want)
		}
	}
	if got := share(x, 3); !near1(got, 0.6) {
		t.Errorf("%v of the numbers are at most 3: want 0.6", got)
	}
}

func TestADecisionLosesWhatItsAlgorithmTakesLongerThanTheBest(t *testing.T) {
	cells := []cell{at("ring", 3, 20, 6), at("tree", 5, 10, 12), at("chain", 9, 30, 30)}
	for _, test := range []struct {
		what string
		all  []decision
		loss float64
	}{
		{"by simulation", decisions(cells, bySimulation), 1}, // both rounds of ring and of tree have the same middle
		{"by the first round", decisions(secondRounds(cells), byFirstRound), 2},
	} {
		if len(test.all) != 1 || !near1(test.all[0].loss(), test.loss) {
			t.Errorf("%s: %+v: want a loss of %v", test.what, test.all, test.loss)
		}
	}
	if all := decisions(cells[:1], bySimulation); len(all) != 0 {
		t.Errorf("one algorithm is no choice: %+v", all)
	}
}

func exampleReport() *report {
	many := at("tree", 7, 9, 10)
	many.Ranks = 4
	return &report{
		Date: "1 January 2026", Command: "go run ./truth", Rounds: 2, profile: &model.Profile{Node: model.Node{Processors: 2}},
		cells: []cell{at("ring", 3, 4, 5), at("tree", 30, 5, 5), many},
	}
}

func TestRanksWithAProcessorEachAreReportedApart(t *testing.T) {
	classes := exampleReport().classes()
	if len(classes) != 2 || classes[0].shares || len(classes[0].cells) != 2 || !classes[1].shares || len(classes[1].cells) != 1 {
		t.Errorf("the classes are %+v", classes)
	}
	page := exampleReport().page()
	for _, want := range []string{
		"| shm, a processor each | 2 |", "| shm, shared processors | 1 |", "3 cells, each the middle of 2 rounds",
		"| bcast, n=2, 64, shm | tree | 5.00 | 30.0 | ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestThePictureIsXMLWithAMarkForEachCell(t *testing.T) {
	picture := exampleReport().chart()
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if marks := strings.Count(picture, "h0"); marks != 3 {
		t.Errorf("%d marks: want 3", marks)
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--n", "1"}, {"--n", "x"}, {"--ops", "x"}, {"--rounds", "0"}} {
		if err := new(settings).parse(args); err == nil {
			t.Errorf("%v: want an error", args)
		}
	}
}
