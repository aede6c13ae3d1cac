package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chorale-go/chorale/internal/profile"
	"github.com/chorale-go/chorale/internal/trace"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A terminal has 80 columns.
func TestNoLineOfAHelpOrAListIsTooLongForATerminal(t *testing.T) {
	calls := [][]string{{"--help"}, {"list"}}
	for _, verb := range verbs(newRoot()) {
		calls = append(calls, []string{verb, "--help"})
	}
	for _, c := range sched.Collectives() {
		calls = append(calls, []string{"list", c.String()})
	}
	for _, args := range calls {
		out, err := exec.Command("chorale", args...).CombinedOutput()
		if err != nil || len(out) == 0 {
			t.Errorf("chorale %s: %v", strings.Join(args, " "), err)
		}
		for line := range strings.Lines(string(out)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > lineWidth {
				t.Errorf("chorale %s: %d columns: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}

// The widest values are long specs, many ranks and faults, and times of seconds. What stands
// behind 2> is printed on standard error.
func TestNoTableIsTooWideForATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("almost all of it computes")
	}
	dir := t.TempDir()
	wrong, recorded, timeline := filepath.Join(dir, "wrong.txt"), filepath.Join(dir, "job.0"), filepath.Join(dir, "run.json")
	profiled := filepath.Join(dir, "profile.json")
	text := "schedule allreduce an-algorithm-of-my-own-with-a-name,and=parameters\nranks 200\nrank 0\nstep\nsend in 0..1 to"
	for rank := 1; rank < 200; rank++ {
		text += " " + strconv.Itoa(rank)
	}
	place := profile.Place{File: "a_file_with_a_long_name.go", Line: 12345, Call: "reduce-scatter"}
	row := profile.Row{Place: place, Algorithm: "hierarchical,hosts=16x64", Explain: "chorale explain reduce-scatter -n 1000 -m 1023K --transport shm --hosts 16x64 --algorithm hierarchical,hosts=16x64", Calls: 123456789, Bytes: 1 << 42, Time: 123456}
	record := profile.Record{Rank: 999, Size: 1000, Elapsed: 123456.7, Rows: []profile.Row{row}}
	for file, content := range map[string][]byte{wrong: []byte(text + "\n"), recorded: record.Encode(), timeline: longTimeline(t), profiled: slowProfile(t)} {
		if err := os.WriteFile(file, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fractions := " --ts 123.456 --tw 0.0731 --top 0.0123 --th 1.7 -m 100003"
	for _, call := range []string{
		"check " + wrong,
		"show " + wrong,
		"show bcast -n 300 --algorithm linear",
		"show alltoall -n 32 --algorithm pairwise",
		"show alltoall -n 24 --algorithm direct",
		"show allreduce -n 64 --bytes 1M --processors 64 --transport tcp",
		"show allreduce -n 64 --bytes 8 --hosts 7+9+11+5+8+10+6+8",
		"explain allreduce -n 64 -m 1M --transport tcp --processors 2",
		"explain alltoall -n 16 -m 1K --transport shm --processors 2 --profile " + profiled,
		"explain allreduce -n 64 -m 8 --hosts 7+9+11+5+8+10+6+8",
		"env",
		"list",
		"list allreduce",
		"sim allreduce -n 4,64 --algorithm ring,tree --topology ring",
		"sim allreduce -n 64 --algorithm hierarchical,hosts=4x16,halving-exchange --topology torus:4x4x4,hypercube" + fractions,
		"sim allreduce allgather -n 8,64 --algorithm hierarchical,hosts=4x16,ring --topology torus:4x4x4,hypercube,torus:2x2x2" + fractions,
		"sim allreduce -n 64 --topology torus:4x4x4 --all --congestion share --sync --switching store-and-forward --memory-bandwidth 12.5" + fractions,
		"sim allreduce -n 64 --topology torus:4x4x4 --all" + fractions,
		"sim bcast -n 64 --algorithm best",
		"sim matvec -n 16",
		"bench rate exchange:columns -n 2 --transport inproc --sizes 8,1M --time 1ms",
		"bench reduce-scatter:nonblocking allgather:uneven -n 4 --algorithm recursive-doubling,hierarchical,hosts=2x2 --transport inproc --sizes 8,1M --time 1ms",
		"run --profile -n 2 lateRank 1ms 2>",
		"profile " + recorded,
		"sim --against " + timeline,
	} {
		words, onStderr := strings.CutSuffix(call, " 2>")
		var stdout, stderr strings.Builder
		cmd := exec.Command("chorale", strings.Fields(words)...)
		cmd.Env = append(os.Environ(), "WORK="+dir)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		out := stdout.String()
		if onStderr {
			out = stderr.String()
		}
		if out == "" {
			t.Errorf("chorale %s prints nothing: %v: %s", call, err, stderr.String())
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > lineWidth {
				t.Errorf("chorale %s: %d columns: %s", call, n, line)
			}
		}
	}
}

// slowProfile returns the profile of a machine on which everything takes long.
func slowProfile(t *testing.T) []byte {
	t.Helper()
	slow := model.Exactly(12345.678)
	p := model.Profile{
		Version: model.ProfileVersion,
		Node:    model.Node{Processors: 2, Memory: []model.Bandwidth{{Movers: 1, Rate: model.Exactly(0.1)}}},
		Links:   []model.Link{{Transport: "shm", OneWay: model.Line(12345.678, 1.234), Exchange: model.Line(12345.678, 1.234), Call: slow, Step: slow, Switch: slow}},
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// longTimeline returns the file of a timeline of one call with many steps, which took long.
func longTimeline(t *testing.T) []byte {
	t.Helper()
	var records []trace.Record
	for rank := range 2 {
		r := trace.Record{
			Rank: rank, Size: 2, Places: []trace.Place{{File: strings.Repeat("long", 12) + "/main.go", Line: 12345}}, Dropped: 1 << 50, Skipped: 1 << 50,
			Shapes: []trace.Shape{{Collective: "bcast", Algorithm: "chain,segment=8K", Size: 8, Count: 1 << 16, P: 2, Rank: rank}},
			Events: []trace.Event{{Kind: trace.Call, Start: int64(rank) << 50, End: 1 << 52}},
		}
		for step := range int64(64) {
			r.Events = append(r.Events, trace.Event{Kind: trace.Step, Start: 1<<51 + step, End: 1<<51 + step + 1})
		}
		records = append(records, r)
	}
	var out bytes.Buffer
	if err := trace.Join(records).Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestColumnsThatAreTheSameInAllLinesOfAWideTableStandAboveIt(t *testing.T) {
	for _, c := range []struct {
		columns int
		want    string
	}{
		{31, "OP     ALGORITHM       P   TIME\nbcast  ring            8   12.5\nbcast  a-name,param=1  16     1\n"},
		{30, "op bcast\n\nALGORITHM       P   TIME\nring            8   12.5\na-name,param=1  16     1\n"},
		{19, "op bcast\n\nALGORITHM  P   TIME\nring       8   12.5\na-name,    16     1\nparam=1\n"},
	} {
		var out strings.Builder
		lines := [][]string{{"OP", "ALGORITHM", "P", "TIME"}, {"bcast", "ring", "8", "12.5"}, {"bcast", "a-name,param=1", "16", "1"}}
		if err := printRows(&out, lines, 3, 3, c.columns); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("in %d columns: got\n%swant\n%s", c.columns, out.String(), c.want)
		}
	}
}

func TestALongLastCellGoesOnBelowItself(t *testing.T) {
	var out strings.Builder
	if err := printTable(&out, [][]string{{"A", "B"}, {"key", strings.Repeat("word ", 20)}, {"é", "x"}}); err != nil {
		t.Fatal(err)
	}
	want := "A    B\nkey  " + strings.TrimSpace(strings.Repeat("word ", 15)) + "\n     " + strings.TrimSpace(strings.Repeat("word ", 5)) + "\né    x\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
