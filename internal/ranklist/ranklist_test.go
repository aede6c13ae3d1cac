package ranklist_test

import (
	"testing"

	"github.com/chorale-go/chorale/internal/ranklist"
)

func TestRunsOfRanksAreRanges(t *testing.T) {
	var odd []int
	for r := 1; r < 60; r += 2 {
		odd = append(odd, r)
	}
	for _, test := range []struct {
		ranks []int
		want  string
	}{
		{[]int{3}, "rank 3"},
		{[]int{0, 1}, "ranks 0–1"},
		{[]int{0, 2}, "ranks 0, 2"},
		{[]int{0, 1, 2, 3, 7, 9, 10}, "ranks 0–3, 7, 9–10"},
		{odd, "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, and others"},
	} {
		if got := ranklist.Name(test.ranks); got != test.want {
			t.Errorf("%v: got %q, want %q", test.ranks, got, test.want)
		}
	}
}
