package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/testenv"
)

var update = flag.Bool("update", false, "rewrite the pages and charts in docs from their .json")

// Both sides use the same batches, warm-up and number of samples.
func TestTheLoopInCHasTheConstantsOfPackageBench(t *testing.T) {
	c := contents("mpi/loop.h") + contents("mpi/mpi.c") + contents("mpi/forms.h")
	for _, k := range []struct{ inC, file, inGo string }{
		{"CHECK_INTERVAL", "loop.go", "checkInterval"},
		{"MIN_SAMPLES", "stats.go", "minSamples"},
		{"MAX_SAMPLES", "loop.go", "maxSamples"},
		{"MAX_CALLS", "loop.go", "maxCalls"},
		{"MAX_ROOTS", "work.go", "maxRoots"},
		{"PAGE", "work.go", "page"},
		{"WINDOW", "pattern.go", "Window"},
		{"COLUMNS", "columns.go", "columnStride"},
		{"overlapTime", "forms.go", "overlapTime"},
		{"overlapBytes", "forms.go", "overlapBytes"},
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

// testMeasurements returns measurements of two of ours and two peers that no program
// has made.
func testMeasurements() *measurements {
	m := newMeasurements([]side{{name: "chorale", transport: "inproc"}, {name: "Open MPI", transport: "shm"}, {name: "MPICH", transport: "shm"}, {name: "chorale", transport: "tcp"}, {name: "Open MPI", transport: "tcp"}})
	row := func(op string, n, bytes int, how string, median float64) []bench.Row {
		return []bench.Row{{Call: bench.Call{Collective: op, Ranks: n, Bytes: bytes, Algorithm: how}, Times: bench.Times{Median: median, Min: median / 2}}}
	}
	add := func(i int, root string, rows []bench.Row) { m.add(m.sides[i], root, rows, "median") }
	for round, slower := range []float64{2, 1, 3} {
		m.rounds = round
		add(0, rotatingRoot, row("allreduce", 2, 8, "direct", 1*slower))
		add(1, rotatingRoot, row("allreduce", 2, 8, "Open MPI <a>", 4*slower))
		add(1, rotatingRoot, row("allreduce", 2, 8, "Open MPI <b>", 3*slower))
		add(2, rotatingRoot, row("allreduce", 2, 8, "MPICH", 5*slower))
		if round == 0 {
			add(2, rotatingRoot, row("allreduce", 2, 8, "MPICH once", 3*slower))
		}
		add(0, rotatingRoot, row("barrier", 2, 0, "dissemination", 2*slower))
		add(2, rotatingRoot, row("barrier", 2, 0, "MPICH", 1*slower))
		add(0, rotatingRoot, row("bcast", 2, 8, "binomial", 1*slower)) // which no peer has
		add(3, fixedRoot, row("bcast", 4, 65536, "binomial", 10*slower))
		add(4, fixedRoot, row("bcast", 4, 65536, "Open MPI", 15*slower))
	}
	m.rounds++
	return m
}

func TestACellIsTheBestPeerOverOurs(t *testing.T) {
	r := newReport(settings{args: []string{"--write"}, statistic: "median"}, testMeasurements(), time.Unix(0, 0))
	if r.Date != "1970-01-01" || r.Command != "make compare" || len(r.Results) != 2 {
		t.Fatalf("the report is %+v", r)
	}
	inproc, tcp := r.Results[0], r.Results[1]
	if len(inproc.Cells) != 2 || !reflect.DeepEqual(inproc.ByRanks, []summary{{Ranks: 2, Cells: 2, Median: 1.75, Minimum: 0.5, Below: 1, Runs: []float64{1.75, 1.75, 1.75}}}) || inproc.Root != "each" {
		t.Errorf("inproc: %+v", inproc)
	}
	if x := inproc.Cells[0]; x.Ratio != 3 || x.Peers[0].How != "Open MPI <b>" || len(x.Peers) != 4 || len(x.Ours.Rounds) != 3 || x.Ours.Time != 2 {
		t.Errorf("allreduce: %+v", x)
	}
	if len(tcp.Cells) != 1 || tcp.Cells[0].Ratio != 1.5 || tcp.Root != "0" {
		t.Errorf("tcp: %+v", tcp)
	}
}

func TestTheWriterWritesItsFilesAndNoOther(t *testing.T) {
	dir := t.TempDir()
	others := []string{"performance-method.md", "performance-log.md"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("by hand"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := newReport(settings{statistic: "median"}, testMeasurements(), time.Unix(0, 0))
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	var files []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	if want := append([]string{"performance.json", "performance.md", "performance.svg"}, others...); !slices.Equal(files, slices.Sorted(slices.Values(want))) {
		t.Errorf("the files are %v, want %v", files, want)
	}
	for _, name := range others {
		if text := contents(filepath.Join(dir, name)); text != "by hand" {
			t.Errorf("%s is overwritten by %q", name, text)
		}
	}
	text := contents(filepath.Join(dir, "performance.md"))
	for _, want := range []string{
		"| allreduce | 8 | 3.00 (2.00, 6.00) |", "| barrier | 0 | **0.50** (4.00, 2.00) |",
		"| inproc against Open MPI and MPICH over shared memory | 1.75 (1.75 to 1.75) | 0.50 | 1 of 2 | | | |", "root 0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	svg := contents(filepath.Join(dir, "performance.svg"))
	if !strings.Contains(svg, "Open MPI &lt;b&gt; takes 6.00 µs, ours (direct) 2.00 µs") || strings.Count(svg, "<rect") != 4 {
		t.Errorf("the chart is\n%s", svg)
	}
}

func TestThePageCountsTheContextSwitchesOfShortCallsByMoreRanksThanProcessors(t *testing.T) {
	m := &measurements{
		sides:  []side{{name: "chorale", transport: "shm"}, {name: "Open MPI", transport: "shm"}},
		series: map[string]map[cell][]series{},
	}
	for round, ours := range []float64{1, 5, 2} {
		m.rounds = round
		for _, n := range []int{2, 4, 8} {
			for _, bytes := range []int{8, 1 << 10, 64 << 10} {
				theirs := 10 * float64(n)
				call := bench.Call{Collective: "bcast", Ranks: n, Bytes: bytes}
				m.add(m.sides[0], rotatingRoot, []bench.Row{{Call: call, Times: bench.Times{Median: 1}, Switches: &ours}}, "median")
				m.add(m.sides[1], rotatingRoot, []bench.Row{{Call: call, Times: bench.Times{Median: 2}, Switches: &theirs}}, "median")
			}
		}
	}
	m.rounds++
	r := newReport(settings{statistic: "median"}, m, time.Unix(0, 0))
	r.Machine.Cores = 2
	const want = `| collective | bytes | n=4: ours | peer | n=8: ours | peer |
|---|--:|--:|--:|--:|--:|
| bcast | 8 | 2.00 | 40.0 | 2.00 | 80.0 |
| bcast | 1 Ki | 2.00 | 40.0 | 2.00 | 80.0 |
`
	if page := r.page(); !strings.HasSuffix(page, want) || strings.Count(page, "\n### Context switches, shm against") != 1 {
		t.Errorf("the page is\n%s\nwhich does not end in\n%s", page, want)
	}
	r.Machine.Cores = 8
	if page := r.page(); strings.Contains(page, "Context switches") {
		t.Errorf("every rank has a processor, and the page is\n%s", page)
	}
	var text strings.Builder
	if err := r.text(&text); err != nil || !strings.Contains(text.String(), "n=4 2.00 (1.00, 2.00) [2.00, 40.0]") {
		t.Errorf("the text is\n%s", text.String())
	}
}

func TestTheNotesFollowFromTheMeasurements(t *testing.T) {
	cell := func(n int, small, huge float64) ratio {
		x := ratio{Ranks: n, Ratio: 1, Peers: []timing{{How: "MPICH MPI_Bcast", Time: 2 * small}, {How: "Open MPI MPI_Bcast", Time: small}}}
		if huge > 0 {
			x.Peers = append(x.Peers, timing{How: "Open MPI MPI_Bcast" + hugePages, Time: huge})
		}
		return x
	}
	notes := func(m machine, cells ...ratio) string {
		return strings.Join((&report{Machine: m, Results: []comparison{{ByRanks: summarize(cells), Cells: cells}}}).notes(), "\n")
	}
	for _, test := range []struct{ text, want string }{
		{notes(machine{Cores: 2}, cell(2, 10, 5), cell(4, 10, 20), cell(2, 10, 0)), "Read n=2 first"},
		{notes(machine{Cores: 2}, cell(2, 10, 5), cell(4, 10, 20), cell(2, 10, 0)), "huge pages in 1 of 2 cells. Its time on small pages over that on huge ones has a median of 2.00 with n=2, 0.50 with n=4."},
		{notes(machine{Cores: 2}, cell(2, 10, 0)), "Every rank has a processor of its own."},
		{notes(machine{Cores: 2}, cell(2, 10, 0)), "did not measure MPI with huge pages"},
		{notes(machine{Cores: 1}, cell(2, 10, 0)), "No cell has a processor for each rank."},
		{notes(machine{Congestion: "bbr"}), "the system's default, bbr."},
		{notes(machine{Congestion: "reno"}), "which is the system's default, too."},
		{notes(machine{}), "did not record"},
	} {
		if !strings.Contains(test.text, test.want) {
			t.Errorf("the notes lack %q:\n%s", test.want, test.text)
		}
	}
	if c := contents("mpi/mpi.c"); !strings.Contains(c, `"`+hugePages+`"`) {
		t.Errorf("mpi.c names no rows %q", hugePages)
	}
}

// The files in docs are those that the writer makes of performance.json and of the reports
// on hosts and other machines.
func TestThePagesAreFresh(t *testing.T) {
	const docs = "../docs"
	files, err := filepath.Glob(filepath.Join(docs, "performance*.json"))
	if err != nil || len(files) < 2 {
		t.Fatalf("docs has the reports %v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r report
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.name() != name {
			t.Errorf("%s.json is a report for %s", name, r.name())
		}
		dir := t.TempDir()
		if *update {
			dir = docs
		}
		if err := r.write(dir); err != nil {
			t.Fatal(err)
		}
		for _, suffix := range []string{".json", ".svg", ".md"} {
			if contents(filepath.Join(dir, name+suffix)) != contents(filepath.Join(docs, name+suffix)) {
				t.Errorf("docs/%s%s is stale: go test ./compare -update rewrites it", name, suffix)
			}
		}
	}
}

func TestAComparisonOfFormsHasEveryFormOfBothSides(t *testing.T) {
	var s settings
	if err := s.parse([]string{"--ops", "forms"}); err != nil {
		t.Fatal(err)
	}
	if len(s.parts) != 1 || s.parts[0].name != forms || !slices.Equal(s.parts[0].ranks, []int{2}) {
		t.Fatalf("the parts are %+v", s.parts)
	}
	theirs, missing := contents("mpi/forms.h")+contents("mpi/mpi.c"), bench.Forms()
	for _, op := range s.parts[0].ops {
		if !strings.Contains(theirs, `{"`+op+`"`) {
			t.Errorf("the program for MPI has no %s", op)
		}
		_, form, _ := strings.Cut(op, ":")
		missing = slices.DeleteFunc(missing, func(f string) bool { return f == form })
	}
	if len(missing) > 0 {
		t.Errorf("no call is compared in the forms %v", missing)
	}
}

func TestAComparisonBetweenHostsHasTwoRanksOnEach(t *testing.T) {
	var s settings
	if err := s.parse([]string{"--hosts", "2,4", "--write"}); err != nil {
		t.Fatal(err)
	}
	if len(s.parts) != 1 || !slices.Equal(s.parts[0].ranks, []int{4, 8}) || s.hosts != 4 || s.limit > 8*time.Minute {
		t.Errorf("%+v on up to %d hosts, in %v", s.parts, s.hosts, s.limit)
	}
	h := &hosts{names: []string{"a", "b", "c", "d"}}
	if got := h.list(4); got != "a:2,b:2" {
		t.Errorf("4 ranks are on %s", got)
	}
}

func TestAPageOnHostsSaysWhatTheyAre(t *testing.T) {
	m := newMeasurements([]side{{name: "chorale", transport: betweenHosts}, {name: "Open MPI", transport: betweenHosts}})
	for i, time := range []float64{10, 15} {
		row := bench.Row{Call: bench.Call{Collective: "bcast", Ranks: 4, Bytes: 8}, Times: bench.Times{Median: time}}
		m.add(m.sides[i], fixedRoot, []bench.Row{row}, "median")
	}
	m.rounds++
	r := newReport(settings{statistic: "median", hosts: 2, page: "hosts"}, m, time.Unix(0, 0))
	dir := t.TempDir()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	page := contents(filepath.Join(dir, "performance-hosts.md"))
	for _, want := range []string{
		"n=4 on 2 hosts", "(performance-hosts.svg)", "| bcast | 8 | 1.50 (10.0, 15.0) |",
		"| between hosts, against Open MPI, every call with root 0 | 1.50 | 1.50 | 0 of 1 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// The pages on performance link to files and headings that exist.
func TestTheLinksOfThePagesOnPerformanceLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	for _, name := range []string{"performance.md", "performance-hosts.md", "performance-method.md", "performance-log.md"} {
		page := filepath.Join("../docs", name)
		links := link.FindAllStringSubmatch(contents(page), -1)
		if len(links) < 2 {
			t.Errorf("%s has %d links, want some", name, len(links))
		}
		for _, m := range links {
			target := page
			if m[1] != "" {
				target = filepath.Join("../docs", m[1])
			}
			text := contents(target)
			if info, err := os.Stat(target); err != nil || m[2] != "" && (info.IsDir() || !slices.Contains(anchors(text), m[2])) {
				t.Errorf("%s: %s leads nowhere", name, m[0])
			}
		}
	}
}

// anchors returns the anchors of a page's headings.
func anchors(page string) (all []string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			heading := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			all = append(all, strings.ReplaceAll(regexp.MustCompile(`[^\w -]`).ReplaceAllString(heading, ""), " ", "-"))
		}
	}
	return all
}

func TestRowsAreReadFromEitherSide(t *testing.T) {
	rows, limits, err := decode(strings.NewReader(`{"collective":"bcast","n":2}
{"rows":[{"collective":"reduce"},{"collective":"scan"}],"limits":{"loopback":5}}
{"collective":"gat`))
	if len(rows) != 3 || rows[0].Collective != "bcast" || rows[2].Collective != "scan" || limits == nil || limits.Loopback != 5 || err == nil {
		t.Errorf("the rows are %+v, the limits %+v, %v", rows, limits, err)
	}
}

func TestPartsAreChosenByTheirCalls(t *testing.T) {
	var s settings
	if err := s.parse(strings.Fields("--ops scan,messages,bcast:nonblocking,bcast --n 3 --transports tcp")); err != nil {
		t.Fatal(err)
	}
	want := []part{
		{collectives, []string{"scan", "bcast"}, []int{3}, []int{8, 1024, 65536, 1 << 20, 4 << 20}, []string{"tcp"}},
		{messages, []string{"pingpong", "exchange", "rate", "halo"}, []int{3}, []int{8, 1024, 65536, 1 << 20}, []string{"tcp"}},
		{forms, []string{"bcast:nonblocking"}, []int{3}, []int{8, 65536, 1 << 20}, []string{"tcp"}},
	}
	if !reflect.DeepEqual(s.parts, want) {
		t.Errorf("the parts are %+v, want %+v", s.parts, want)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for _, args := range []string{"--page a/b", "--n 0", "--sizes 8,x", "--rounds 0", "--transports pigeon", "--figure mean", "--hosts 1", "--hosts 65", "--hosts x", "--hosts 2 --n 4", "--hosts 2 --transports shm", "more"} {
		var s settings
		if err := s.parse(strings.Fields(args)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}

func TestAProgramThatFailsEndsTheComparisonUnlessItIsOptional(t *testing.T) {
	var s settings
	if err := s.parse(strings.Fields("--ops barrier --n 2 --transports tcp --rounds 2")); err != nil {
		t.Fatal(err)
	}
	fails := side{name: "Gloo", transport: "tcp", command: func(ctx context.Context, _ settings, _ group) *exec.Cmd {
		return exec.CommandContext(ctx, "go", "no-such-command")
	}}
	if _, err := measure(t.Context(), s, []side{fails}); err == nil {
		t.Error("no error")
	}
	fails.optional = true
	m, err := measure(t.Context(), s, []side{fails})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.failed) != 1 || !strings.HasPrefix(m.failed[0], "Gloo over tcp was not measured to the end with 2 ranks and barrier: ") || m.rounds != 2 {
		t.Errorf("%d runs, without %q", m.rounds, m.failed)
	}
}

func TestTheLimitFollowsFromTheModel(t *testing.T) {
	l := bench.Limits{CacheLine: 0.3, Pinned: 0.2, Loopback: 5, Copy: []bench.CopyLimit{{Bytes: 8, Time: 0.002}, {Bytes: 1 << 20, Time: 50, Huge: 40}}}
	for _, test := range []struct {
		op, root     string
		ranks, bytes int
		transport    string
		want         float64
	}{
		{"bcast", rotatingRoot, 2, 8, "shm", 0.2}, // one crossing
		{"bcast", rotatingRoot, 4, 8, "shm", 0.1}, // two crossings in four calls
		{"bcast", fixedRoot, 2, 8, "shm", 0},      // the root runs ahead
		{"bcast", fixedRoot, 2, 1 << 20, "shm", 20},
		{"bcast", rotatingRoot, 2, 1 << 20, "shm", 20},      // half a copy on each processor
		{"allreduce", rotatingRoot, 4, 1 << 20, "shm", 120}, // 3 combinations and 3 copies
		{"alltoall", rotatingRoot, 2, 1 << 20, "inproc", 80},
		{"allreduce", rotatingRoot, 2, 1 << 20, "tcp", 100}, // 2 vectors into the kernel and out, 1 sum
		{"barrier", rotatingRoot, 2, 0, "tcp", 5},
		{"barrier", rotatingRoot, 8, 0, "tcp", 35}, // 14 messages by two processors
		{"pingpong", rotatingRoot, 2, 8, "shm", 0.4},
		{"bcast:nonblocking", rotatingRoot, 2, 8, "shm", 0.2},
		{"bcast:overlap", rotatingRoot, 2, 8, "shm", 0}, // computes as well
		{"scan", rotatingRoot, 2, 8, "shm", 0},          // the model does not have it
	} {
		c := cell{test.op, test.root, test.ranks, test.bytes}
		if got := limit(c, test.transport, l, 2); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%+v over %s: the limit is %v µs, want %v", c, test.transport, got, test.want)
		}
	}
	var run limits
	run.add(l)
	run.add(bench.Limits{CacheLine: 0.1, Copy: []bench.CopyLimit{{Bytes: 1 << 20, Time: 60, Huge: 30}}})
	if want := (limits{0.1, 5, []bench.CopyLimit{{Bytes: 8, Time: 0.002}, {Bytes: 1 << 20, Time: 50, Huge: 30}}}); !reflect.DeepEqual(run, want) {
		t.Errorf("a run's limits are %+v, want %+v", run, want)
	}
}

func TestAPageShowsHowFarRunsAndTheLimitAre(t *testing.T) {
	m := newMeasurements([]side{{name: "chorale", transport: "tcp"}, {name: "Open MPI", transport: "tcp"}, {name: "Open MPI", transport: "tcp", config: ourCongestion}, {name: "Gloo", transport: "tcp"}})
	for round, theirs := range []float64{10, 12, 30} {
		m.rounds = round
		m.machine = append(m.machine, limits{})
		for i, time := range []float64{5, theirs, 20, 100} {
			row := bench.Row{Call: bench.Call{Collective: "allreduce", Algorithm: m.sides[i].label() + " MPI_Allreduce", Ranks: 2, Bytes: 8}, Times: bench.Times{Median: time}}
			m.add(m.sides[i], rotatingRoot, []bench.Row{row}, "median")
			m.addLimits(m.sides[i], rotatingRoot, []bench.Row{row}, &bench.Limits{CacheLine: 0.5, Loopback: 2.5, Copy: []bench.CopyLimit{{Bytes: 8, Time: 0.01}}})
		}
	}
	m.rounds++
	r := newReport(settings{statistic: "median"}, m, time.Unix(0, 0))
	r.Machine.Cores, r.Machine.Congestion = 2, "bbr"
	page := r.page()
	want := []string{
		"In 1 of 3 cells the runs' ratios differ by more than a factor of 1.50",
		"with bbr over that with reno has a median of 0.60 with n=2",
		"| tcp against Open MPI over TCP | 2.40 (2.00 to 4.00) | 2.40 | 0 of 1 |",
		"| tcp against Open MPI, both with reno | 4.00 (4.00 to 4.00) |",
		"| tcp against Gloo | 20.0 (20.0 to 20.0) |",
		"| allreduce | 8 | 2.40† (5.00, 12.0) |",
		"| 1 | 0.50 | 2.50 | 0.010 |",
	}
	if runtime.NumCPU() > 1 { // one processor has no crossing
		want = append(want, "| allreduce | 8 | 2.40† (5.00, 12.0) | 2.00 |", "| tcp against Open MPI over TCP | 2.00 | 4.80 |")
	}
	for _, want := range want {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestACellShowsTheOtherPagesWhereTheyDiffer(t *testing.T) {
	x := ratio{Ratio: 2, Ours: timing{Time: 10}, Peers: []timing{{How: "Open MPI MPI_Bcast" + hugePages, Time: 20}, {How: "Open MPI MPI_Bcast", Time: 25}}}
	if got := x.markdown(); got != "2.00 (10.0, 20.0)" {
		t.Errorf("the cell is %q", got)
	}
	x.Peers[1].Time = 30
	if got := x.markdown(); got != "2.00 (10.0, 20.0/30.0)" {
		t.Errorf("the cell is %q", got)
	}
}

// The defaults are what make compare runs, on a machine of two processors.
func TestTheEstimateOfAllRunsFitsIntoTheLimit(t *testing.T) {
	var s settings
	if err := s.parse([]string{"--write"}); err != nil {
		t.Fatal(err)
	}
	run, rows, _ := s.runTime(allSides(s, t.TempDir()))
	if all := time.Duration(s.rounds) * run; s.rounds != 3 || s.limit > 28*time.Minute || all > s.limit {
		t.Errorf("%d runs of %v: %v, limit %v", s.rounds, run, all, s.limit)
	}
	if rows < 1000 {
		t.Errorf("a run has %d rows", rows)
	}
}

// allSides returns all sides, without their programs.
func allSides(s settings, dir string) (sides []side) {
	for _, transport := range s.allTransports() {
		sides = append(sides, ours(dir+"/chorale", transport, s))
	}
	sides = append(sides, openMPISides(dir+"/mpi", "shm", "bbr")...)
	sides = append(sides, openMPISides(dir+"/mpi", "tcp", "bbr")...)
	return append(sides, mpichSide(dir+"/mpich"), glooSide(dir+"/gloo", dir, "bbr"))
}

func TestEverySetupIsOnThePage(t *testing.T) {
	var s settings
	if err := s.parse(nil); err != nil {
		t.Fatal(err)
	}
	all := setups(s, allSides(s, t.TempDir()))
	r := report{Setups: all}
	page := r.setupsSection()
	for _, want := range []string{"--mca btl vader,self", "--bind-to none", "coll_sm_priority 100", "`CONGESTION=reno mpirun.openmpi", "| Gloo over tcp |", "CONGESTION=reno gloo N`", "| MPICH over shm |", "mpirun.mpich -bind-to core"} {
		if runtime.NumCPU() >= 8 && want == "--bind-to none" { // ranks never outnumber the processors
			continue
		}
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, u := range all {
		if u.Why == "" || strings.Contains(u.Command, "8,1024") {
			t.Errorf("%+v", u)
		}
	}
}

func TestAComparisonRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures programs of both MPI libraries: not with -short")
	}
	for _, l := range []library{openMPI, mpich} {
		for _, program := range []string{l.compiler, l.launcher} {
			if _, err := exec.LookPath(program); err != nil {
				testenv.Skip(t, "%v: apt-get install %s", err, l.packages)
			}
		}
	}
	t.Chdir("..")
	var s settings
	if err := s.parse(strings.Fields("--n 2 --ops reduce-scatter,bcast --sizes 1024 --rounds 1 --time 1ms --transports inproc,tcp")); err != nil {
		t.Fatal(err)
	}
	sides, omitted, err := build(t.Context(), s, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(omitted) > 0 {
		testenv.Skip(t, "%v", omitted)
	}
	m, err := measure(t.Context(), s, sides)
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(s, m, time.Now())
	want := 5 // inproc and tcp with either root, and tcp against Gloo
	if systemCongestion() != ourCongestion {
		want += 2
	}
	if len(r.Results) != want {
		t.Fatalf("the results are %+v, want %d", r.Results, want)
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
			counted := x.Ours.Switches != nil && (x.Peers[0].Switches != nil || c.Against == againstGloo)
			if x.Ratio <= 0 || !counted || c.Root == "each" && x.Limit == nil && runtime.NumCPU() > 1 {
				t.Errorf("%s: %+v", c.title(), x)
			}
		}
	}
}
