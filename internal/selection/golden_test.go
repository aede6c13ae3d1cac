package selection

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

var update = flag.Bool("update", false, "rewrite the golden file of the choices")

// goldenRanks and goldenBytes hold both sides of every bound of a rule.
var (
	goldenRanks = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 31, 32, 33, 64, 65, 100, 128, 129}
	goldenBytes = []int{
		0, 1, 255, 256, 1023, 1024, 2047, 2048, 4095, 4096, 8191, 8192, 16383, 16384, 65535, 65536,
		131071, 131072, 262143, 262144, 524287, 524288, 1<<20 - 1, 1 << 20, 2<<20 - 1, 2 << 20, 16 << 20, 32<<20 - 1, 32 << 20,
	}
)

// The choice of every call on the grid is the recorded one. A line gives, for one
// kind of call and ranges of ranks, the algorithm from each number of bytes on.
func TestChoicesAreTheRecordedOnes(t *testing.T) {
	var got bytes.Buffer
	for _, c := range sched.Collectives() {
		for _, transport := range []string{"", "inproc", "shm", "tcp"} {
			for _, oversubscribed := range []bool{false, true} {
				for kind := range 4 {
					ordered, uneven := kind&1 > 0, kind&2 > 0
					if ordered && !c.Combines() || uneven && !(&sched.Schedule{Collective: c}).Partitioned() {
						continue
					}
					fmt.Fprintf(&got, "%v transport=%s oversubscribed=%v ordered=%v uneven=%v\n", c, transport, oversubscribed, ordered, uneven)
					q := Query{Collective: c, Transport: transport, Ordered: ordered, Uneven: uneven}
					writeChoices(t, &got, q, oversubscribed)
				}
			}
		}
	}
	for _, c := range sched.Collectives() {
		for _, hosts := range []string{"2", "cyclic:2"} {
			for kind := range 4 {
				q := Query{Collective: c, Transport: "tcp", Hosts: hosts, Ordered: kind&1 > 0, Uneven: kind&2 > 0}
				if q.Ordered && !c.Combines() || q.Uneven && !(&sched.Schedule{Collective: c}).Partitioned() {
					continue
				}
				fmt.Fprintf(&got, "%v transport=tcp hosts=%s ordered=%v uneven=%v\n", c, hosts, q.Ordered, q.Uneven)
				writeChoices(t, &got, q, false)
			}
		}
	}
	const golden = "testdata/choices.golden"
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
func writeChoices(t *testing.T, got *bytes.Buffer, q Query, oversubscribed bool) {
	first, line := 0, ""
	for i, ranks := range goldenRanks {
		if q.Hosts != "" && ranks < 3 {
			continue // no two ranks share one of two hosts
		}
		q.Ranks = ranks
		next := choicesByBytes(t, q, oversubscribed)
		if first > 0 && next != line {
			fmt.Fprintf(got, "\t%d-%d:%s\n", first, goldenRanks[i-1], line)
		}
		if first == 0 || next != line {
			first, line = ranks, next
		}
	}
	fmt.Fprintf(got, "\t%d-%d:%s\n", first, goldenRanks[len(goldenRanks)-1], line)
}

// choicesByBytes returns the algorithms of a call by its bytes.
func choicesByBytes(t *testing.T, q Query, oversubscribed bool) (line string) {
	if oversubscribed {
		if q.Ranks == 1 {
			return " none"
		}
		q.Processors = q.Ranks - 1
	}
	last := ""
	for _, n := range goldenBytes {
		q.Bytes = n
		choice, err := Choose(q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		if choice.Algorithm != last {
			line += fmt.Sprintf(" %d %s", n, choice.Algorithm)
			last = choice.Algorithm
		}
	}
	return line
}

func TestRanksAreOversubscribedIfTheyOutnumberTheProcessors(t *testing.T) {
	for processors, want := range map[int]bool{0: false, 1: true, 3: true, 4: false, 5: false} {
		if got := (Query{Ranks: 4, Processors: processors}).oversubscribed(); got != want {
			t.Errorf("4 ranks on %d processors: got %v, want %v", processors, got, want)
		}
	}
}
