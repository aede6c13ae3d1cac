package join

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/launchertest"
	"github.com/chorale-go/chorale/internal/slurmtest"
)

// A command starts ranks of this test binary by a real launcher.
type command struct {
	name string
	args []string // before the program
	env  []string
}

// A result is how a job ended.
type result struct {
	status   int
	out, err string
}

// jobLimit bounds a job. A launcher that hangs is killed, because some do not react to
// SIGTERM then.
const jobLimit = time.Minute

// run runs the ranks, with arguments for them.
func (c command) run(t *testing.T, args ...string) result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.name, slices.Concat(c.args, []string{self, "rank"}, args)...)
	cmd.Env = append(WithoutPlace(os.Environ()), c.env...)
	cmd.WaitDelay = 5 * time.Second
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	cmd.Run() // the status is what the tests look at
	if ctx.Err() != nil {
		t.Errorf("%s %q has not ended after %v", c.name, c.args, jobLimit)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// expectShared checks that the ranks have shared the values in a job of one name.
func (r result) expectShared(t *testing.T, size int, launcher string) {
	t.Helper()
	job := regexp.MustCompile(`job "[^"]+"`).FindString(r.out)
	for rank := range size {
		for _, value := range []string{sharedValue, ""} {
			line := fmt.Sprintf("rank %d of %d: %s: %s, value %s\n", rank, size, launcher, job, digest(value))
			if job == "" || !strings.Contains(r.out, line) {
				t.Errorf("no %q in\n%s%s", line, r.out, r.err)
			}
		}
	}
}

func (r result) expectStatus(t *testing.T, want ...int) {
	t.Helper()
	if !slices.Contains(want, r.status) || strings.Contains(r.err, "outlives") {
		t.Errorf("status %d, want %d\n%s%s", r.status, want, r.out, r.err)
	}
}

// hydras are the ways in which Hydra starts ranks, on two made-up hosts.
func hydras(t *testing.T) map[string]command {
	t.Helper()
	all := make(map[string]command)
	for name, l := range launchertest.Hydra(t, 3) {
		all[name] = commandOf(l)
	}
	return all
}

func TestRanksUnderHydraFindEachOther(t *testing.T) {
	for name, hydra := range hydras(t) {
		t.Run(name, func(t *testing.T) {
			r := hydra.run(t)
			r.expectStatus(t, 0)
			r.expectShared(t, 3, Hydra)
		})
	}
}

// Hydra ends a job of which a rank is killed, and does not keep the status: it is 9, or
// 255 if an assertion of Hydra's own fails while it kills the others. Whether Hydra 4.0
// notices a rank that exits without leaving depends on the order in which it sees the ends
// of the rank's connections. With several hosts it mostly does not.
func TestUnderHydraAJobEndsWithARank(t *testing.T) {
	for name, hydra := range hydras(t) {
		t.Run(name, func(t *testing.T) {
			hydra.run(t, "killed", "1").expectStatus(t, 9, 255)
			hydra.run(t, "abort", "0").expectStatus(t, 5)
			r := hydra.run(t, "status", "1")
			r.expectStatus(t, 7)
			r.expectShared(t, 3, Hydra)
		})
	}
}

func TestAJobUnderHydraMayHaveOneRank(t *testing.T) {
	hydra := hydras(t)["hydra"]
	hydra.args = []string{"-launcher", "fork", "-n", "1"}
	r := hydra.run(t)
	r.expectStatus(t, 0)
	r.expectShared(t, 1, Hydra)
}

// mpirun is Open MPI's, with two made-up hosts.
func mpirun(t *testing.T) command {
	t.Helper()
	return commandOf(launchertest.Mpirun(t, 3))
}

func commandOf(l launchertest.Launcher) command {
	return command{name: l.Command[0], args: l.Command[1:], env: l.Env}
}

// Without the first variable, the ranks take the next format that the server offers.
func TestRanksUnderMpirunFindEachOther(t *testing.T) {
	mpirun := mpirun(t)
	for _, wrapper := range [][]string{nil, {"env", "-u", "PMIX_SERVER_URI21"}} {
		c := mpirun
		c.args = slices.Concat(c.args, wrapper)
		r := c.run(t)
		r.expectStatus(t, 0)
		r.expectShared(t, 3, OpenMPI)
	}
}

func TestUnderMpirunAJobEndsWithARank(t *testing.T) {
	mpirun := mpirun(t)
	mpirun.run(t, "killed", "1").expectStatus(t, 137)
	mpirun.run(t, "quits", "2").expectStatus(t, 1)
	mpirun.run(t, "abort", "0").expectStatus(t, 5)
	mpirun.run(t, "status", "1").expectStatus(t, 7)
}

func TestRanksUnderSlurmFindTheirPlaces(t *testing.T) {
	env := slurmtest.Start(t)
	srun := func(args ...string) command { return command{name: "srun", args: args, env: env} }

	for _, test := range []struct {
		mpi, launcher string
		aborted       int // the status of srun
	}{
		{"pmi2", SlurmPMI, 137},
		{"pmix", SlurmPMIx, 5},
	} {
		mpi, launcher := test.mpi, test.launcher
		t.Run(mpi, func(t *testing.T) {
			r := srun("--mpi="+mpi, "-N3", "-n5").run(t)
			r.expectStatus(t, 0)
			r.expectShared(t, 5, launcher)
			r = srun("--mpi="+mpi, "-n1").run(t)
			r.expectStatus(t, 0)
			r.expectShared(t, 1, launcher)
			srun("--mpi="+mpi, "-N3", "-n5", "-K1").run(t, "killed", "3").expectStatus(t, 137, 143) // SIGKILL, or SIGTERM of the others
			srun("--mpi="+mpi, "-N3", "-n5").run(t, "status", "3").expectStatus(t, 7)
			srun("--mpi="+mpi, "-N3", "-n5").run(t, "abort", "1").expectStatus(t, test.aborted)
		})
	}
	t.Run("none", func(t *testing.T) {
		r := srun("--mpi=none", "-N3", "-n5").run(t)
		r.expectStatus(t, 0)
		for rank := range 5 {
			want := fmt.Sprintf(`rank %d of 5: slurm: job "[0-9]+\.0", rendezvous &\{\[%s\] \[2[0-9]{4} 2.*\] 0s\}`, rank, strings.Join(slurmtest.Nodes, " "))
			if !regexp.MustCompile(want).MatchString(r.out) {
				t.Errorf("no %q in\n%s%s", want, r.out, r.err)
			}
		}
	})
	t.Run("a batch script", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "out")
		r := command{name: "sbatch", args: []string{"--wait", "-N2", "-n3", "-o", out}, env: env}.batch(t)
		r.expectStatus(t, 0)
		said, err := os.ReadFile(out)
		if want := "rank 0 of 1: none: job \"\", rendezvous <nil>\n"; err != nil || string(said) != want {
			t.Errorf("%q, %v, want %q", said, err, want)
		}
	})
}

// batch runs one rank in a batch script.
func (c command) batch(t *testing.T) result {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.args = append(c.args, script)
	return c.run(t)
}
