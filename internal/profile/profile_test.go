package profile

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAPlaceHasAsMuchOfItsEndAsThereIsRoomFor(t *testing.T) {
	for algorithm, want := range map[string]string{
		"ring":                           "…g/parameters.go:1041 allreduce",
		"recursive-halving-and-doubling": "…arameters.go:1041 allreduce",
		// Without room, it is below the table.
		"hierarchical,across=ring,within=binomial": "\n[1] hierarchical,across=ring,within=binomial\n",
		strings.Repeat("long", 30):                 "longlonglong",
	} {
		r := Record{Size: 1, Rows: []Row{{
			Place: Place{"training/parameters.go", 1041, "allreduce"}, Algorithm: algorithm,
			Calls: 999, Bytes: 123e9, Time: 0.123,
		}}}
		report := Join([]Record{r})
		var out strings.Builder
		if err := report.WriteText(&out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("want %q, error %v, in\n%s", want, err, &out)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(line) - 1; n > columns {
				t.Errorf("%d characters: want %d\n%s", n, columns, line)
			}
		}
	}
}

func TestTheTextHasTheLimitOfTheMachine(t *testing.T) {
	limit := CopyBandwidth()
	if limit < 1e8 {
		t.Errorf("%v B/s: want more of any machine", limit)
	}
	limit = 12.3e9
	report := Join([]Record{{Size: 1, Rows: []Row{{Place: Place{"a/b.go", 1, "barrier"}, Calls: 1}}}})
	report.Copy = &limit
	var out strings.Builder
	if err := report.WriteText(&out); err != nil || !strings.Contains(out.String(), "this machine copies 12.3GB/s in memory") {
		t.Errorf("error %v, no limit in\n%s", err, &out)
	}
}

// Times of calls are estimates, which may come to more than there was.
func TestNoMoreThanAllOfTheTimeIsSaidToBeInCalls(t *testing.T) {
	report := Join([]Record{{Size: 1, Elapsed: 1, Rows: []Row{{Place: Place{"a/b.go", 1, "barrier"}, Calls: 1, Time: 1.03}}}})
	var out strings.Builder
	if err := report.WriteText(&out); err != nil || !strings.Contains(out.String(), " 100% of it in calls") {
		t.Errorf("error %v, not 100%% in\n%s", err, &out)
	}
}

func TestLinesThatThereIsNoRoomForAreOthers(t *testing.T) {
	var records []Record
	for rank := range 2 {
		records = append(records, Record{Rank: rank, Size: 2, Rows: []Row{
			{Place: Place{"train/main.go", 1, "bcast"}, Algorithm: "flat", Calls: 1, Time: 2},
			{Place: Place{Call: "bcast"}, Algorithm: "flat", Calls: 7, Time: 1},
		}})
	}
	report := Join(records)
	var out strings.Builder
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%-15s bcast 14 ", "others"); !strings.Contains(out.String(), want) {
		t.Errorf("want %q in\n%s", want, &out)
	}
}

// A command that is too long for a line goes on as a shell takes it; the same one is named once.
func TestTheTextNamesTheCommandsThatExplainTheLongestCalls(t *testing.T) {
	long := "chorale explain allreduce -n 8 -m 1K --transport tcp --hosts 4+4 --algorithm hierarchical,hosts=4+4,between=ring"
	report := Join([]Record{{Size: 1, Rows: []Row{
		{Place: Place{"a.go", 1, "allreduce"}, Explain: long, Calls: 1, Time: 5},
		{Place: Place{"a.go", 2, "allreduce"}, Explain: long, Calls: 1, Time: 4},
		{Place: Place{"a.go", 3, "send"}, Calls: 1, Time: 3},
		{Place: Place{"a.go", 4, "barrier"}, Explain: "chorale explain barrier -n 8 --transport tcp", Calls: 1, Time: 2},
	}}})
	var out strings.Builder
	want := `
what the longest calls should take, and why:
  chorale explain allreduce -n 8 -m 1K --transport tcp --hosts 4+4 --algorithm \
    hierarchical,hosts=4+4,between=ring
  chorale explain barrier -n 8 --transport tcp
`
	if err := report.WriteText(&out); err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("want%s in\n%s%v", want, &out, err)
	}
}
