package command

import (
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/testenv"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestMain(m *testing.M) {
	if strings.Contains(filepath.Base(os.Args[0]), ".test") { // not as a command of a script
		os.Setenv(machine.Variable, machine.Off) // whatever this machine's profile says
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every process under the race detector takes a second to end
	testscript.Main(m, map[string]func(){
		"chorale":          Main,
		"chorale-progress": progress,
		"chorale-brief":    brief,
		"printlines":       printLines,
		"checklines":       checkLines,
		"waitfull":         waitFull,
		"stall":            stall,
		"sums":             sums,
		"lateRank":         lateRank,
		"metered":          metered,
		"stalling":         stalling,
		"ending":           ending,
		"locks":            locks,
		"failing":          failing,
		"machineprofile":   machineProfile,
	})
}

// Each file in testdata shows one behavior of the command, as a user sees it.
func TestCommand(t *testing.T) {
	// A process that handles a signal hands the default on to its children: the commands
	// ignore no signals, also if these tests run under nohup.
	for _, sig := range signals {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := strings.Fields(string(caches))
	repository, err := filepath.Abs("..")
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
			env.Setenv("PORT", freePort(t))
			env.Setenv("GORACE", os.Getenv("GORACE"))
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

// freePort returns a port at which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(testenv.FreeAddress(t, "127.0.0.1")) // it has one
	return port
}

// status N COMMAND… runs a command, which must exit with status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND…")
	}
	expect(ts, args[0], ts.Exec(args[1], args[2:]...))
}

// during FILE LINES:SIGNAL,… N COMMAND… runs a command, and sends it each signal when
// FILE has that many lines or more. A line ends with a newline, or with the carriage
// return of a line of progress. A + before a signal adds a pause, after which the
// launcher does not take the signal for a repetition of the one before. The command
// must exit with status N, or be killed if N is "killed".
func during(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: during FILE LINES:SIGNAL,… N COMMAND…")
	}
	path, err := exec.LookPath(args[3])
	ts.Check(err)
	cmd := exec.Command(path, args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	for _, name := range []string{"WORK", "TMPDIR", "HOME", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	ts.Check(cmd.Start())
	for event := range strings.SplitSeq(args[1], ",") {
		lines, name, _ := strings.Cut(event, ":")
		eventually(ts, args[0]+" has "+lines+" lines", func() bool {
			text, _ := os.ReadFile(ts.MkAbs(args[0]))
			return strings.Count(string(text), "\n")+strings.Count(string(text), "\r") >= atoi(ts, lines)
		})
		name, pause := strings.CutPrefix(name, "+")
		if pause {
			time.Sleep(200 * time.Millisecond)
		}
		ts.Check(cmd.Process.Signal(signals[name]))
	}
	expect(ts, args[2], cmd.Wait())
}

// gone FILE waits until no process that FILE lists is alive.
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
