package launch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/launchertest"
)

// runUnder runs a program of this package as a job of another launcher, and returns the
// launcher's exit status and what the ranks have printed.
func runUnder(t *testing.T, l launchertest.Launcher, args ...string) (status int, out string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.Command[0], append(append(l.Command[1:len(l.Command):len(l.Command)], self), args...)...)
	cmd.Env = append(withoutJobEnv(os.Environ()), l.Env...)
	cmd.WaitDelay = 5 * time.Second
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	cmd.Run() // the status is what the tests look at
	if ctx.Err() != nil {
		t.Errorf("%v has not ended after a minute:\n%s", l.Command, &all)
	}
	return cmd.ProcessState.ExitCode(), all.String()
}

const ranksUnder = 5

// The claims hold under every launcher.
var launcherClaims = []struct {
	name string
	test func(t *testing.T, l launchertest.Launcher)
}{
	{"TheSameProgramRuns", testSameProgram},
	{"RanksFindTheMemoryOfTheirHost", testFoundMemory},
	{"ALostRankEndsTheJob", testLostRankUnder},
	{"ARankThatFailsEndsTheJob", testFailedRankUnder},
}

func TestJobsOfOtherLaunchers(t *testing.T) {
	all := launchertest.Hydra(t, ranksUnder)
	all["mpirun"] = launchertest.Mpirun(t, ranksUnder)
	for name, l := range launchertest.Slurm(t, ranksUnder) {
		l.Env = append(l.Env, "XDG_RUNTIME_DIR="+t.TempDir()) // for the secret, where Slurm has no key store
		all[name] = l
	}
	for name, l := range all {
		for _, c := range launcherClaims {
			t.Run(name+"/"+c.name, func(t *testing.T) { c.test(t, l) })
		}
	}
}

func testSameProgram(t *testing.T, l launchertest.Launcher) {
	for _, transport := range []string{"auto", "tcp"} {
		l := l
		l.Env = append(l.Env[:len(l.Env):len(l.Env)], envTransport+"="+transport)
		if status, out := runUnder(t, l, "ring", "20"); status != 0 || strings.Count(out, "token 20\n") != ranksUnder {
			t.Errorf("over %s: status %d:\n%s", transport, status, out)
		}
	}
}

// Ranks of one network namespace share memory, whatever nodes the launcher has made up.
func testFoundMemory(t *testing.T, l launchertest.Launcher) {
	status, out := runUnder(t, l, "describe")
	if n := strings.Count(out, `"hosts":1,`); status != 0 || n != ranksUnder {
		t.Errorf("status %d, %d ranks of one host:\n%s", status, n, out)
	}
	for rank := range ranksUnder {
		var others []string
		for other := range ranksUnder {
			if other != rank {
				others = append(others, fmt.Sprint(other))
			}
		}
		if want := `"sharesMemory":[` + strings.Join(others, ",") + "]"; !strings.Contains(out, want) {
			t.Errorf("rank %d: no %s in\n%s", rank, want, out)
		}
	}
}

func testLostRankUnder(t *testing.T, l launchertest.Launcher) {
	for _, rank := range []string{"0", "3"} {
		for _, how := range []string{"killed", "7"} {
			if status, out := runUnder(t, l, "ring", "200", rank, how); status == 0 || strings.Contains(out, "token") {
				t.Errorf("rank %s %s: status %d:\n%s", rank, how, status, out)
			}
		}
	}
}

// A program's error is that of the job, and its text is printed.
func testFailedRankUnder(t *testing.T, l launchertest.Launcher) {
	if status, out := runUnder(t, l, "gaveup", t.TempDir()); status != 1 || !strings.Contains(out, "the disk is full") {
		t.Errorf("status %d, want 1 and the reason:\n%s", status, out)
	}
}
