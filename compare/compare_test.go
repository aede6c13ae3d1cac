package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/bench"
)

// Both sides count, warm up and stop alike.
func TestTheLoopInCHasTheConstantsOfPackageBench(t *testing.T) {
	c := contents("mpi/mpi.c")
	for _, k := range []struct{ inC, file, inGo string }{
		{"ROUND", "loop.go", "round"},
		{"LEAST_SAMPLES", "stats.go", "leastSamples"},
		{"MOST_SAMPLES", "loop.go", "mostSamples"},
		{"MOST_CALLS", "loop.go", "mostCalls"},
		{"MOST_ROOTS", "work.go", "mostRoots"},
		{"PAGE", "work.go", "page"},
		{"batch_time", "loop.go", "batchTime"},
		{"precision", "stats.go", "precision"},
	} {
		theirs := constant(t, c, k.inC)
		ours := constant(t, contents(filepath.Join("..", "internal", "bench", k.file)), k.inGo)
		if strings.TrimSuffix(ours, ".0") != theirs {
			t.Errorf("%s is %s in C, and %s is %s in Go", k.inC, theirs, k.inGo, ours)
		}
	}
}

func constant(t *testing.T, source, name string) string {
	t.Helper()
	found := regexp.MustCompile(`\b` + name + ` += (\d[^,;/}\n]*)`).FindStringSubmatch(source)
	if found == nil {
		t.Fatalf("no constant %s", name)
	}
	return strings.TrimSpace(found[1])
}

// fake returns measurements of two of ours and two peers, without any program.
func fake() *measurements {
	m := &measurements{
		sides:   []side{{name: "chorale", transport: "inproc"}, {name: "Open MPI", transport: "shm"}, {name: "MPICH", transport: "shm"}, {name: "chorale", transport: "tcp"}, {name: "Open MPI", transport: "tcp"}},
		figures: map[string]map[cell][]figure{},
	}
	row := func(op string, n, bytes int, how string, median float64) []bench.Row {
		return []bench.Row{{Collective: op, Ranks: n, Bytes: bytes, Algorithm: how, Median: median, Min: median / 2}}
	}
	take := func(i int, root string, rows []bench.Row) { m.take(m.sides[i], root, rows, "median") }
	for round, slower := range []float64{2, 1, 3} {
		m.rounds = round
		take(0, eachRoot, row("allreduce", 2, 8, "direct", 1*slower))
		take(1, eachRoot, row("allreduce", 2, 8, "Open MPI <a>", 4*slower))
		take(1, eachRoot, row("allreduce", 2, 8, "Open MPI <b>", 3*slower))
		take(2, eachRoot, row("allreduce", 2, 8, "MPICH", 5*slower))
		if round == 0 {
			take(2, eachRoot, row("allreduce", 2, 8, "MPICH once", 3*slower))
		}
		take(0, eachRoot, row("barrier", 2, 0, "dissemination", 2*slower))
		take(2, eachRoot, row("barrier", 2, 0, "MPICH", 1*slower))
		take(0, eachRoot, row("bcast", 2, 8, "binomial", 1*slower)) // no peer has this one
		take(3, oneRoot, row("bcast", 4, 65536, "binomial", 10*slower))
		take(4, oneRoot, row("bcast", 4, 65536, "Open MPI", 15*slower))
	}
	m.rounds++
	return m
}

func TestACellIsTheBestPeerOverOurs(t *testing.T) {
	r := newReport(settings{args: []string{"--write"}, figure: "median"}, fake(), time.Unix(0, 0))
	if r.Date != "1970-01-01" || r.Command != "make compare" || len(r.Results) != 2 {
		t.Fatalf("the report is %+v", r)
	}
	inproc, tcp := r.Results[0], r.Results[1]
	if len(inproc.Cells) != 2 || inproc.Median != 1.75 || inproc.Minimum != 0.5 || inproc.Below != 1 || inproc.Root != "each" {
		t.Errorf("inproc: %+v", inproc)
	}
	if x := inproc.Cells[0]; x.Ratio != 3 || x.Peers[0].How != "Open MPI <b>" || len(x.Peers) != 4 || len(x.Ours.Rounds) != 3 || x.Ours.Time != 2 {
		t.Errorf("allreduce: %+v", x)
	}
	if len(tcp.Cells) != 1 || tcp.Cells[0].Ratio != 1.5 || tcp.Root != "0" {
		t.Errorf("tcp: %+v", tcp)
	}
}

func TestTheReportIsWrittenBetweenItsMarks(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(page, []byte("before\n"+generated+"\nold\n"+byHand+"\nafter\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := newReport(settings{figure: "median"}, fake(), time.Unix(0, 0))
	for range 2 { // the second time changes nothing
		if err := r.write(dir); err != nil {
			t.Fatal(err)
		}
		text := contents(page)
		for _, want := range []string{
			"before\n" + generated, byHand + "\nafter", "| allreduce | 8 | 3.00 (2.00, 6.00) |", "| barrier | 0 | **0.50** (4.00, 2.00) |",
			"| inproc against Open MPI and MPICH over shared memory | 2 | 1.75 | 0.50 | 1 |", "root 0",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q:\n%s", want, text)
			}
		}
		if strings.Contains(text, "old") {
			t.Error("the page keeps what was there")
		}
	}
	svg := contents(filepath.Join(dir, "performance.svg"))
	if !strings.Contains(svg, "Open MPI &lt;b&gt; takes 6.00 µs, ours (direct) 2.00 µs") || strings.Count(svg, "<rect") != 4 {
		t.Errorf("the chart is\n%s", svg)
	}
	if err := os.WriteFile(page, []byte("no marks"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := r.write(dir); err == nil || !strings.Contains(err.Error(), "no place for the figures") {
		t.Errorf("a page without marks: %v", err)
	}
}

func TestRowsAreReadFromEitherSide(t *testing.T) {
	rows, err := decode(strings.NewReader(`{"collective":"bcast","n":2}
{"rows":[{"collective":"reduce"},{"collective":"scan"}],"limits":{"loopback":5}}
{"collective":"gat`))
	if len(rows) != 3 || rows[0].Collective != "bcast" || rows[2].Collective != "scan" || err == nil {
		t.Errorf("the rows are %+v, %v", rows, err)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for _, args := range []string{"--n 0", "--sizes 8,x", "--rounds 0", "--transports pigeon", "--figure mean", "more"} {
		var s settings
		if err := s.parse(strings.Fields(args)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}

func TestAComparisonRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	for _, l := range []library{openMPI, mpich} {
		for _, program := range []string{l.compiler, l.launcher} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%v: apt-get install %s", err, l.packages)
			}
		}
	}
	t.Chdir("..")
	var s settings
	if err := s.parse(strings.Fields("--n 2 --ops reduce-scatter,bcast --sizes 1024 --rounds 1 --time 1ms --transports inproc,tcp")); err != nil {
		t.Fatal(err)
	}
	sides, err := build(t.Context(), s, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m, err := measure(t.Context(), s, sides)
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(s, m, time.Now())
	if len(r.Results) != 4 {
		t.Fatalf("the results are %+v", r.Results)
	}
	for _, c := range r.Results {
		cells := 2
		if c.Root == "0" {
			cells = 1
		}
		if len(c.Cells) != cells {
			t.Errorf("%s: %d cells, want %d", c.title(), len(c.Cells), cells)
		}
		for _, x := range c.Cells {
			if x.Ratio <= 0 {
				t.Errorf("%s: %+v", c.title(), x)
			}
		}
	}
}
