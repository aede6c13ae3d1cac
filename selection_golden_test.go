package chorale_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

var update = flag.Bool("update", false, "rewrite the golden file of the selection")

// goldenRanks and goldenBytes hold both sides of every bound of a rule.
var (
	goldenRanks = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 31, 32, 33, 64, 65, 100, 128}
	goldenBytes = []int{
		0, 1, 255, 256, 1023, 1024, 2047, 2048, 4095, 4096, 8191, 8192, 16383, 16384, 65535, 65536,
		131071, 131072, 262143, 262144, 524287, 524288, 1<<20 - 1, 1 << 20, 16 << 20,
	}
)

// The choice of every call on the grid is the recorded one. A line gives, for one
// kind of call and ranges of ranks, the algorithm from each number of bytes on.
func TestSelectionIsTheRecordedOne(t *testing.T) {
	var got bytes.Buffer
	for _, c := range sched.Collectives() {
		for _, transport := range []string{"", "inproc", "shm", "tcp"} {
			for _, oversubscribed := range []bool{false, true} {
				for kind := range 4 {
					ordered, uneven := kind&1 > 0, kind&2 > 0
					if ordered && !c.Combines() || uneven && !(&sched.Schedule{Collective: c}).Parted() {
						continue
					}
					fmt.Fprintf(&got, "%v transport=%s oversubscribed=%v ordered=%v uneven=%v\n", c, transport, oversubscribed, ordered, uneven)
					q := chorale.Query{Collective: c.String(), Transport: transport, Ordered: ordered, Uneven: uneven}
					writeChoices(t, &got, q, oversubscribed)
				}
			}
		}
	}
	const golden = "testdata/selection.golden"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("line %d:\ngot  %s\nwant %s", i+1, gotLines[i], wantLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Errorf("%d lines, want %d", len(gotLines), len(wantLines))
	}
}

// writeChoices writes a line per range of ranks with equal choices.
func writeChoices(t *testing.T, got *bytes.Buffer, q chorale.Query, oversubscribed bool) {
	first, line := 0, ""
	for i, ranks := range goldenRanks {
		q.Ranks = ranks
		next := choices(t, q, oversubscribed)
		if i > 0 && next != line {
			fmt.Fprintf(got, "\t%d-%d:%s\n", first, goldenRanks[i-1], line)
		}
		if i == 0 || next != line {
			first, line = ranks, next
		}
	}
	fmt.Fprintf(got, "\t%d-%d:%s\n", first, goldenRanks[len(goldenRanks)-1], line)
}

// choices returns the algorithms of a call by its bytes.
func choices(t *testing.T, q chorale.Query, oversubscribed bool) (line string) {
	processors := []int{0, q.Ranks, q.Ranks + 1} // each rank has one
	if oversubscribed {
		if q.Ranks == 1 {
			return " none"
		}
		processors = []int{1, (q.Ranks + 1) / 2, q.Ranks - 1}
	}
	last := ""
	for _, n := range goldenBytes {
		q.Bytes = n
		var all []string
		for _, q.Processors = range processors {
			choice, err := chorale.Choose(q)
			if err != nil {
				t.Fatalf("%+v: %v", q, err)
			}
			all = append(all, choice.Algorithm)
		}
		if all = slices.Compact(all); len(all) > 1 {
			t.Fatalf("%+v: the number of processors decides by more than whether ranks are oversubscribed: %v", q, all)
		}
		if all[0] != last {
			line += fmt.Sprintf(" %d %s", n, all[0])
			last = all[0]
		}
	}
	return line
}
