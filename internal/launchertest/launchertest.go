// Package launchertest has the commands by which launchers other than chorale run start
// ranks, for tests of jobs under them. A test is skipped where a launcher is not
// installed.
package launchertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chorale-go/chorale/internal/slurmtest"
	"github.com/chorale-go/chorale/internal/testenv"
)

// A Launcher is a command that starts ranks of the program that follows it.
type Launcher struct {
	Command []string
	Env     []string // beside the environment of the test
}

// Hydra returns the two ways in which mpiexec of MPICH starts ranks, on two made-up hosts.
func Hydra(t testing.TB, ranks int) map[string]Launcher {
	t.Helper()
	path, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		testenv.Skip(t, "there is no mpiexec.hydra")
	}
	args := []string{"-launcher", "fork", "-hosts", "hosta:2,hostb:1", "-n", strconv.Itoa(ranks)}
	return map[string]Launcher{
		"hydra":           {Command: append([]string{path}, args...)},
		"hydra -pmi-port": {Command: append([]string{path, "-pmi-port"}, args...)},
	}
}

// Mpirun returns mpirun of Open MPI, with two made-up hosts.
func Mpirun(t testing.TB, ranks int) Launcher {
	t.Helper()
	path, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		testenv.Skip(t, "there is no mpirun.openmpi")
	}
	agent := filepath.Join(t.TempDir(), "agent")
	// In the place of ssh: what comes after the options and the host is a command line.
	// Each host has a directory of its own, because daemons that make the same one at the
	// same time fail.
	const script = `#!/bin/sh
while case $1 in -*) true;; *) false;; esac; do shift; done
export TMPDIR="$TMPDIR/$1"
mkdir "$TMPDIR"
shift
exec sh -c "$*"
`
	if err := os.WriteFile(agent, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "ompi") // not t.TempDir: paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	half := strconv.Itoa((ranks + 1) / 2)
	return Launcher{
		Command: []string{path, "--mca", "plm_rsh_agent", agent, "--host", "hosta:" + half + ",hostb:" + half, "-n", strconv.Itoa(ranks)},
		Env:     []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "TMPDIR=" + dir},
	}
}

// Slurm starts a Slurm of three nodes until the test ends, and returns the ways in which
// srun starts ranks.
func Slurm(t testing.TB, ranks int) map[string]Launcher {
	t.Helper()
	env := slurmtest.Start(t)
	all := make(map[string]Launcher)
	for _, mpi := range []string{"pmi2", "pmix", "none"} {
		all["srun --mpi="+mpi] = Launcher{Command: []string{"srun", "--mpi=" + mpi, "-N3", "-n" + strconv.Itoa(ranks)}, Env: env}
	}
	return all
}
