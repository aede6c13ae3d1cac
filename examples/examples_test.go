// Package examples_test builds the command and the examples, and runs each as a
// user does: on processes and on goroutines, at awkward numbers of ranks.
package examples_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A run is the output of an example on a number of ranks, in any order of lines.
type run struct {
	ranks int
	args  string
	want  []string
}

var runs = map[string][]run{
	"globalsum":        sums("reduce tree", "allreduce butterfly"),
	"globalsum/byhand": append(sums("tree", "butterfly"), messages...),
	"matvec": {
		{16, "", []string{
			"rank 9 gets x[1] from rank 1, multiplies it by A[2,1], and takes part with 8, 10, 11 in the reduction that leaves y[2] on rank 8", // CLAIM G5
			"y = [130 230 330 430]",
		}},
		{9, "-tell 2", []string{
			"rank 2 gets x[2] from rank 2, multiplies it by A[0,2], and takes part with 0, 1 in the reduction that leaves y[0] on rank 0",
			"y = [74 134 194]",
		}},
		{5, "", []string{"y = [35 65]"}}, // one rank is not part of the grid
		{2, "", []string{"y = [11]"}},
	},
	"innerproduct": {
		{5, "", []string{"100000 elements: inner product 50000.5, angle 29.9998 degrees"}},
		{5, "-n 3", []string{"3 elements: inner product 2, angle 22.2077 degrees"}},
		{2, "", []string{"100000 elements: inner product 50000.5, angle 29.9998 degrees"}},
	},
	"gauss": {
		{5, "", []string{"60 equations: x[j] = j + 1, as it should be"}},
		{2, "-n 33", []string{"33 equations: x[j] = j + 1, as it should be"}},
		{7, "-n 3", []string{"3 equations: x[j] = j + 1, as it should be"}},
	},
	"floyd": {
		{9, "", []string{"90 vertices on a 3×3 grid of ranks: the longest of the shortest paths is 186"}},
		{5, "", []string{"90 vertices on a 1×5 grid of ranks: the longest of the shortest paths is 186"}},
		{6, "-n 2", []string{"2 vertices on a 2×3 grid of ranks: the longest of the shortest paths is 10"}},
		{2, "", []string{"90 vertices on a 1×2 grid of ranks: the longest of the shortest paths is 186"}},
	},
	"samplesort": {
		{5, "", []string{"50000 keys sorted: the largest part has 1.03 times the mean"}},
		{2, "", []string{"50000 keys sorted: the largest part has 1.01 times the mean"}},
		{5, "-n 3", []string{"3 keys sorted: the largest part has 1.67 times the mean"}},
	},
	"stencil": {
		{5, "", []string{"a plate of 64×64 points: 10.3 degrees on average after 200 steps"}},
		{2, "-n 7 -steps 30", []string{"a plate of 7×7 points: 23.1 degrees on average after 30 steps"}},
		{3, "-n 2 -steps 10", []string{"a plate of 2×2 points: 25.0 degrees on average after 10 steps"}},
	},
	"training": {
		{5, "", trained},
		{2, "", trained},
		{1, "", trained},
	},
	"survive": {
		{5, "", []string{"5 ranks after 400 steps: y = 1.9984x + 1.0000"}},
		{1, "", []string{"1 ranks after 400 steps: y = 1.9984x + 1.0000"}},
	},
	"balance": {
		{5, "", []string{"3056 items: the busiest rank had 1.646 times the mean, and has 1.002 times"}},
		{2, "", []string{"1596 items: the busiest rank had 1.259 times the mean, and has 1.001 times"}},
	},
}

var trained = []string{"after 1000 steps: loss 0.1274, right about 117 of 120 flowers it has learned from and 28 of 30 others"}

// sums returns the runs of globalsum.
//
// CLAIM T1 T2 B1 B2
func sums(tree, butterfly string) (all []run) {
	for _, ranks := range []int{7, 2, 5, 8, 16, 20, 32, 35} {
		sum := ranks * (ranks - 1) / 2
		r := run{ranks: ranks, want: []string{fmt.Sprintf("%s: sum %d on rank 0", tree, sum)}}
		for rank := range ranks {
			r.want = append(r.want, fmt.Sprintf("%s: sum %d on rank %d", butterfly, sum, rank))
		}
		all = append(all, r)
	}
	return all
}

// messages are the runs of byhand that show the messages of CLAIM T2 and B2.
var messages = []run{
	{7, "-messages", append(sums("tree", "butterfly")[0].want,
		"tree, step 1: 4→0", "tree, step 1: 5→1", "tree, step 1: 6→2",
		"tree, step 2: 2→0", "tree, step 2: 3→1",
		"tree, step 3: 1→0",
		"butterfly, step 1: 0→1", "butterfly, step 1: 1→0", "butterfly, step 1: 2→3", "butterfly, step 1: 3→2", "butterfly, step 1: 4→5", "butterfly, step 1: 5→4",
		"butterfly, step 2: 0→2", "butterfly, step 2: 2→0", "butterfly, step 2: 1→3", "butterfly, step 2: 3→1", "butterfly, step 2: 4→6", "butterfly, step 2: 6→4", "butterfly, step 2: 4→5",
		"butterfly, step 3: 0→4", "butterfly, step 3: 4→0", "butterfly, step 3: 1→5", "butterfly, step 3: 5→1", "butterfly, step 3: 2→6", "butterfly, step 3: 6→2", "butterfly, step 3: 0→3",
	)},
}

func TestExamplesPrintTheSameOnProcessesAndOnGoroutines(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "../cmd/chorale", "./...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, name := range programs(t) {
		runs := runs[name]
		if testing.Short() {
			runs = runs[:1]
		}
		for _, r := range runs {
			for _, transport := range transportsOf(name) {
				t.Run(strings.Join(append([]string{name, fmt.Sprint(r.ranks), transport}, strings.Fields(r.args)...), " "), func(t *testing.T) {
					args := []string{"run", "-n", fmt.Sprint(r.ranks), "--no-labels", "--transport", transport, filepath.Join(bin, path.Base(name)+exe())}
					got := output(t, filepath.Join(bin, "chorale"+exe()), append(args, strings.Fields(r.args)...))
					slices.Sort(got)
					want := slices.Sorted(slices.Values(r.want))
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("lines, -want +got:\n%s", diff)
					}
				})
			}
		}
	}
}

// transportsOf returns the transports of an example: a window needs memory that the ranks
// share.
func transportsOf(name string) []string {
	switch {
	case name != "stencil":
		return []string{"tcp", "inproc"}
	case runtime.GOOS == "linux":
		return []string{"shm", "inproc"}
	}
	return []string{"inproc"}
}

func TestEveryExampleStatesItsCallsAndItsCommandLine(t *testing.T) {
	for _, name := range programs(t) {
		source, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		header, _, _ := strings.Cut(string(source), "\npackage main\n")
		for _, phrase := range []string{"// It uses ", "//\tchorale run -n ", "./examples/" + name} {
			if !strings.Contains(header, phrase) {
				t.Errorf("%s: the comment at the top has no %q", name, phrase)
			}
		}
	}
}

// programs returns the directories of all examples, each of which has runs.
func programs(t *testing.T) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, d fs.DirEntry, err error) error {
		name := path.Dir(file)
		if path.Base(file) == "main.go" && name != "ownalgorithm" { // no ranks: its own test runs it
			names = append(names, name)
			if len(runs[name]) == 0 {
				t.Errorf("example %s has no runs", name)
			}
		}
		return err
	})
	if err != nil || len(names) != len(runs) {
		t.Fatalf("%d examples, %v: want %d", len(names), err, len(runs))
	}
	return names
}

// output returns the lines that a command prints, without globalsum's counts of steps
// and messages.
func output(t *testing.T, command string, args []string) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CHORALE_") })
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	for line := range strings.Lines(string(out)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), ", in ")
		lines = append(lines, line)
	}
	return lines
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
