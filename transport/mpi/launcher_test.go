//go:build mpi

package mpi

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/testenv"
)

// tags are the build tags of this test.
func tags() string {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return s.Value
		}
	}
	return "mpi"
}

// buildProgram builds a program of this module, with the tags of this test.
func buildProgram(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(dir))
	out, err := exec.Command("go", "build", "-tags", tags(), "-o", program, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// globalsum builds a program that sums up the ranks.
func globalsum(t *testing.T) string { return buildProgram(t, "../../examples/globalsum") }

// runProgram runs a program under a launcher, over MPI.
func runProgram(t *testing.T, n int, program string) (output string, err error) {
	t.Helper()
	cmd := mpiexec(n, program)
	cmd.Env = append(cmd.Env, "CHORALE_TRANSPORT=mpi")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestAProgramRunsUnderTheLauncherOfItsMPI(t *testing.T) {
	requireMPI(t)
	program := globalsum(t)
	for n, sum := range map[int]string{1: "sum 0", 3: "sum 3", 4: "sum 6"} {
		out, err := runProgram(t, n, program)
		if err != nil || strings.Count(out, "allreduce butterfly: "+sum+" on rank ") != n || !strings.Contains(out, "reduce tree: "+sum+" on rank 0") {
			t.Errorf("%d ranks: %v\n%s", n, err, out)
		}
	}
}

func TestBenchMeasuresOverMPI(t *testing.T) {
	requireMPI(t)
	cmd := exec.Command(buildProgram(t, "../../cmd/chorale"),
		"bench", "allreduce", "-n", "2,3", "--transport", "mpi", "--mpiexec", strings.Join(launcher, " "),
		"--sizes", "8", "--time", "1ms", "--format", "gobench")
	cmd.Env = mpiexec(0).Env
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "transport=mpi") != 2 {
		t.Errorf("got %v\n%s", err, out)
	}
}

func TestTheLauncherOfAnotherMPIIsNamedAsWrong(t *testing.T) {
	requireMPI(t)
	right := launcher
	defer func() { launcher = right }()
	launcher = []string{"mpiexec.hydra"}
	if right[0] == launcher[0] {
		launcher = []string{"mpirun.openmpi", "--oversubscribe"}
	}
	if _, err := exec.LookPath(launcher[0]); err != nil {
		testenv.Skip(t, "%s is not installed", launcher[0])
	}
	out, err := runProgram(t, 2, globalsum(t))
	if err == nil || !strings.Contains(out, "_SIZE=2, but the world of ") {
		t.Errorf("got %v\n%s", err, out)
	}
}

func TestAWorldOfTheLaunchersSizeIsRight(t *testing.T) {
	for _, c := range []struct {
		size int
		env  map[string]string
		want string // in the error
	}{
		{1, nil, ""},
		{3, map[string]string{"PMI_SIZE": "3"}, ""},
		{3, map[string]string{"OMPI_COMM_WORLD_SIZE": "3"}, ""},
		{1, map[string]string{"PMI_SIZE": "3"}, "PMI_SIZE=3, but the world of X has 1"},
		{1, map[string]string{"OMPI_COMM_WORLD_SIZE": "2"}, "OMPI_COMM_WORLD_SIZE=2, but the world of X has 1"},
		{1, map[string]string{"PMI_SIZE": "many"}, "PMI_SIZE=many"},
		{1, map[string]string{"SLURM_STEP_NUM_TASKS": "4"}, "SLURM_STEP_NUM_TASKS=4"},
		// A launcher inside another one: the outer one's variables are there, too.
		{4, map[string]string{"PMI_SIZE": "4", "OMPI_COMM_WORLD_SIZE": "1"}, ""},
		{4, map[string]string{"PMI_SIZE": "1", "OMPI_COMM_WORLD_SIZE": "4"}, ""},
		{1, map[string]string{"PMI_SIZE": "1", "SLURM_STEP_NUM_TASKS": "2"}, ""},
		{3, map[string]string{"SLURM_STEP_NUM_TASKS": "2"}, ""},
	} {
		err := launchedBy(c.size, "X", func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d ranks with %v: got %v, want %q", c.size, c.env, err, c.want)
		}
	}
}

func TestHostsAreNumberedInTheOrderOfTheirLowestRanks(t *testing.T) {
	if got, want := hosts([]int32{0, 1, 0, 1, 4, 1}), []int{0, 1, 0, 1, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
