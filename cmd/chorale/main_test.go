package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"chorale": main,
		"talk":    talk,
		"untorn":  untorn,
		"stall":   stall,
		"sums":    sums,
	})
}

// Each file in testdata shows one behaviour of the command, as a user meets it.
func TestCommand(t *testing.T) {
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := strings.Fields(string(caches))
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", cache[0])
			env.Setenv("GOMODCACHE", cache[1])
			env.Setenv("REPOSITORY", repository)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else every process under the race detector takes a second to end
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status,
			"during": during,
			"gone":   gone,
			"empty":  empty,
		},
	})
}

// status N COMMAND… runs a command, which must exit with status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND…")
	}
	expect(ts, args[0], ts.Exec(args[1], args[2:]...))
}

// during FILE LINES SIGNALS N COMMAND… runs a command, waits until FILE has so
// many lines, and sends it the signals, which are separated by commas. A +
// before a signal stands for a pause, so that it is not taken for the one
// before. The command must exit with status N, or be killed if N is "killed".
func during(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: during FILE LINES SIGNALS N COMMAND…")
	}
	path, err := exec.LookPath(args[4])
	ts.Check(err)
	cmd := exec.Command(path, args[5:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	for _, name := range []string{"WORK", "TMPDIR", "HOME", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	ts.Check(cmd.Start())
	eventually(ts, args[0]+" has "+args[1]+" lines", func() bool {
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		return strings.Count(string(text), "\n") == atoi(ts, args[1])
	})
	for sig := range strings.SplitSeq(args[2], ",") {
		name, pause := strings.CutPrefix(sig, "+")
		if pause {
			time.Sleep(200 * time.Millisecond)
		}
		ts.Check(cmd.Process.Signal(signals[name]))
	}
	expect(ts, args[3], cmd.Wait())
}

// gone FILE waits until none of the processes that FILE lists is alive.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone FILE")
	}
	for pid := range strings.FieldsSeq(ts.ReadFile(args[0])) {
		eventually(ts, "process "+pid+" is gone", func() bool { return !alive(atoi(ts, pid)) })
	}
}

// empty DIR waits until a directory is empty.
func empty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: empty DIR")
	}
	eventually(ts, args[0]+" is empty", func() bool {
		entries, err := os.ReadDir(ts.MkAbs(args[0]))
		ts.Check(err)
		return len(entries) == 0
	})
}

func expect(ts *testscript.TestScript, want string, err error) {
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want == "killed" {
		want = "-1"
	}
	if got != atoi(ts, want) {
		ts.Fatalf("exit status %d, want %s", got, want)
	}
}
