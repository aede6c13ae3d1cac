package draw

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

func TestRanksHoldWhatTheTextbooksSay(t *testing.T) {
	for _, c := range []struct {
		claim      string
		collective sched.Collective
		algorithm  string
		p          int
		want       string // a line per state; ranks are separated by blanks, - is a rank without contents
	}{
		{"CLAIM S1: blocks for the other subcube are passed on", sched.Scatter, "binomial", 8, `
			(0–7) - - - - - - -
			(0–3) - - - (4–7) - - -
			(0,1) - (2,3) - (4,5) - (6,7) -
			(0) (1) (2) (3) (4) (5) (6) (7)`},
		{"CLAIM S2: gather is scatter reversed", sched.Gather, "binomial", 8, `
			(0) (1) (2) (3) (4) (5) (6) (7)
			(0,1) - (2,3) - (4,5) - (6,7) -
			(0–3) - - - (4–7) - - -
			(0–7) - - - - - - -`},
		{"CLAIM V1: after step 1 tasks hold 0+1 or 2+3, after step 2 the result", sched.AllReduce, "recursive-doubling", 4, `
			0 1 2 3
			0+1 0+1 2+3 2+3
			R R R R`},
		{"CLAIM V3: halves, then quarters; then the same steps reversed", sched.AllReduce, "recursive-halving", 4, `
			0/0/0/0 1/1/1/1 2/2/2/2 3/3/3/3
			0+1/0+1// //0+1/0+1 2+3/2+3// //2+3/2+3
			R/// //R/ /R// ///R
			R/R// //R/R R/R// //R/R
			R/R/R/R R/R/R/R R/R/R/R R/R/R/R`},
		{"CLAIM T1: the front half receives from the back half", sched.Reduce, "tree", 8, `
			0 1 2 3 4 5 6 7
			0+4 1+5 2+6 3+7 - - - -
			0+2+4+6 1+3+5+7 - - - - - -
			R - - - - - - -`},
		{"CLAIM T2: with an odd number the middle rank is idle", sched.Reduce, "tree", 7, `
			0 1 2 3 4 5 6
			0+4 1+5 2+6 3 - - -
			0+2+4+6 1+3+5 - - - - -
			R - - - - - -`},
		{"CLAIM B1: groups of two, four and eight", sched.AllReduce, "butterfly", 8, `
			0 1 2 3 4 5 6 7
			0+1 0+1 2+3 2+3 4+5 4+5 6+7 6+7
			0–3 0–3 0–3 0–3 4–7 4–7 4–7 4–7
			R R R R R R R R`},
		{"CLAIM B3: at one more than a power of two the first rank sends to all others", sched.AllReduce, "butterfly", 5, `
			0 1 2 3 4
			0+1 0+1 2+3 2+3 4
			0–3 0–3 0–3 0–3 4
			R - - - R
			R R R R R`},
		{"a broadcast has one message", sched.Bcast, "binomial", 5, `
			M - - - -
			M - - - M
			M - M - M
			M M M M M`},
		{"prefix sums end with the ranks so far", sched.Scan, "linear", 4, `
			0 1 2 3
			0 0+1 2 3
			0 0+1 0–2 3
			0 0+1 0–2 R`},
		{"parts of an alltoall gather by destination", sched.AllToAll, "hypercube", 4, `
			0→(0–3) 1→(0–3) 2→(0–3) 3→(0–3)
			0,1→(0,2) 0,1→(1,3) 2,3→(0,2) 2,3→(1,3)
			0–3→(0) 0–3→(1) 0–3→(2) 0–3→(3)
			0–3→(0) 0–3→(1) 0–3→(2) 0–3→(3)`},
		{"after a barrier every rank knows that all ranks have arrived", sched.Barrier, "dissemination", 3, `
			0 1 2
			0+2 0+1 1+2
			all all all`},
		{"one rank needs no step", sched.AllReduce, "ring", 1, `
			0
			0`},
	} {
		want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", "")
		if got := statesText(t, mustSchedule(t, c.collective, c.algorithm, c.p, 0)); got != want {
			t.Errorf("%s: ranks hold\n%s\nwant\n%s", c.claim, got, want)
		}
	}
}

// statesText formats the contents of all ranks, a line per state.
func statesText(t *testing.T, s *sched.Schedule) string {
	t.Helper()
	states, err := replay(s)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, ranks := range states {
		var cells []string
		for _, held := range ranks {
			word := strings.Join(contentLines(s, held), "/")
			if word == "" {
				word = "-"
			}
			cells = append(cells, word)
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "\n")
}

func TestEveryAlgorithmStartsWithItsInputAndEndsWithItsResult(t *testing.T) {
	for _, a := range algo.Catalog() {
		for _, p := range []int{1, 2, 3, 5, 7, 8, 12, 16} {
			for _, root := range []int{0, p - 1} {
				s, err := algo.New(a.Collective, a.Name, p, root, 64)
				if err != nil {
					continue // a restriction
				}
				states, err := replay(s)
				if err != nil {
					t.Fatal(err)
				}
				if s.Collective == sched.Barrier {
					continue
				}
				last := states[len(states)-1]
				for rank := range p {
					for _, h := range states[0][rank] {
						if len(h.from) != 1 || h.from[0] != rank {
							t.Errorf("%v %s on %d: rank %d begins with %v", s.Collective, s.Algorithm, p, rank, h)
						}
					}
					extent := s.Extent(sched.Out, rank)
					for b := extent.Lo; b < extent.Hi; b++ {
						want := s.Expected(rank, b)
						if want.Lo < want.Hi && !slices.ContainsFunc(last[rank], func(h blockContents) bool {
							return h.block == want.Block && len(h.from) == want.Hi-want.Lo && h.from[0] == want.Lo && slices.IsSorted(h.from)
						}) {
							t.Errorf("%v %s on %d: rank %d ends with %v, want %+v", s.Collective, s.Algorithm, p, rank, last[rank], want)
						}
					}
				}
			}
		}
	}
}

func TestBlocksShowEveryMessageAndAllContents(t *testing.T) {
	for _, c := range networkCases {
		s := c.scene(t)
		var b bytes.Buffer
		if err := Blocks(&b, s); err != nil {
			t.Fatal(err)
		}
		picture := parseSVG(t, b.Bytes())
		var got, want []string
		for _, arrow := range picture.all("arrow") {
			got = append(got, arrow.Title)
		}
		for _, m := range s.Result.Log {
			want = append(want, fmt.Sprintf("rank %d to rank %d in step %d", m.From, m.To, m.Step+1))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: arrows are\n%q\nwant\n%q", c.name, got, want)
		}
		if n := len(picture.all("holds")); n != c.p*(s.Result.Steps+1) {
			t.Errorf("%s: %d ranks hold something at some time, want %d", c.name, n, c.p*(s.Result.Steps+1))
		}
	}
}

// CLAIM G5
func TestEachPartHasItsOwnPictureWithItsRanks(t *testing.T) {
	var b bytes.Buffer
	if err := Blocks(&b, matvec(t, 4)); err != nil {
		t.Fatal(err)
	}
	picture := parseSVG(t, b.Bytes())
	if n := len(picture.all("part")); n != 8 {
		t.Errorf("%d parts, want 4 columns and 4 rows", n)
	}
	for _, want := range []string{
		"bcast binomial, ranks 1,5,9,13. At the start: rank 1 holds M. Step 1: 1→9. After step 1: rank 1 holds M; rank 9 holds M.",
		"reduce binomial, ranks 8–11.",
	} {
		if !strings.Contains(picture.Desc, want) {
			t.Errorf("the description %q does not say %q", picture.Desc, want)
		}
	}
}

func TestUnreadableBlocksAreRefusedWithTheLimit(t *testing.T) {
	for _, c := range []struct {
		parts []sim.Part
		want  string
	}{
		{nil, "block contents without a schedule: want one or more"},
		{[]sim.Part{{Schedule: mustSchedule(t, sched.Bcast, "binomial", 65, 0)}}, "a picture of 520 cells, of what 65 ranks hold in 7 steps: want at most 64 ranks and 4096 cells"},
		{[]sim.Part{{Schedule: mustSchedule(t, sched.AllReduce, "ring", 32, 0)}}, "a picture of 64512 cells, of what 32 ranks hold in 62 steps: want at most 64 ranks and 4096 cells"},
		{slices.Repeat([]sim.Part{{Schedule: mustSchedule(t, sched.AllReduce, "ring", 12, 0)}}, 2), "a picture of 2 parts with more than 4096 cells: want fewer ranks"},
	} {
		var b bytes.Buffer
		if err := Blocks(&b, Scene{Parts: c.parts}); err == nil || err.Error() != c.want || b.Len() > 0 {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
