package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/launch/internal/guard"
	"github.com/chorale-go/chorale/launch/internal/remote"
)

// forever does nothing until the process is killed. A select without cases would be a deadlock
// to the runtime of a program without cgo, as on a machine that has no C compiler.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// fakeSSH DIR OPTIONS HOST COMMAND is an ssh whose hosts are this machine, with an
// environment of their own. The name of a host says how it behaves. DIR is for what it
// has to remember.
func fakeSSH(args []string) error {
	dir, options, host, command := args[0], args[1:len(args)-2], args[len(args)-2], args[len(args)-1]
	if want := []string{"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", "-T"}; !slices.Equal(options, want) {
		return fmt.Errorf("options %q, want %q", options, want)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fail := func(words string) {
		fmt.Fprintln(os.Stderr, words)
		os.Exit(255)
	}
	switch {
	case host == "nowhere":
		fail("** welcome **\nssh: connect to host nowhere port 22: No route to host")
	case strings.HasPrefix(host, "busy"):
		counter := filepath.Join(dir, host)
		before, _ := os.ReadFile(counter)
		os.WriteFile(counter, append(before, 'x'), 0o600)
		if refusals, _ := strconv.Atoi(host[len("busy"):]); len(before) < refusals {
			fail("kex_exchange_identification: read: Connection reset by peer")
		}
	case host == "mute":
		forever()
	case strings.HasPrefix(host, "noisy"):
		fmt.Print("welcome\r\n\x1b[1mto chorale-agent ", strings.Repeat("noise\n", 1000), "no end")
	case host == "endless":
		for {
			if _, err := fmt.Println(strings.Repeat("noise", 100)); err != nil {
				return err
			}
		}
	case host == "silent":
		fmt.Println("chorale-agent " + `{"version":3,"os":"linux","arch":"amd64","processors":1}`)
		forever()
	case host == "talks":
		fmt.Println("starting the agent\n" + `chorale-agent {"version":3,"os":"linux","arch":"amd64","processors":1}`)
		io.WriteString(os.Stdout, "this is no frame")
		forever()
	case strings.HasPrefix(host, "bare"): // it has no chorale
		command = strings.ReplaceAll(command, self, "/nowhere"+self)
	case host == "stranger":
		command = strings.ReplaceAll(command, self, "/nowhere"+self)
		command = strings.ReplaceAll(command, "uname -sm", "echo Plan9 mips")
	case host == "newer":
		fmt.Println(`chorale-agent {"version":4}`)
		forever()
	}
	shell := "sh"
	if login, ok := strings.CutPrefix(strings.TrimPrefix(host, "bare-"), "login-"); ok {
		shell = login
	}
	cmd := exec.Command(shell, "-c", command)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "GORACE=atexit_sleep_ms=0", "ON=" + host}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if cmd.ProcessState != nil {
		os.Exit(cmd.ProcessState.ExitCode())
	}
	return err
}

// onHosts is the configuration of a job on hosts of fakeSSH. Dir is the hosts' own.
func onHosts(t *testing.T, list, program string, args ...string) (cfg Config, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the login shells are those of Unix")
	}
	hosts, err := ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	cfg = config(t, 0, program, args...)
	cfg.Remote = &Remote{Hosts: hosts, SSH: []string{cfg.Program, "ssh", dir}, AgentArgs: []string{"agent"}}
	return cfg, dir
}

// shellOn is the configuration of a job of shells on those hosts.
func shellOn(t *testing.T, list, script string) Config {
	cfg, _ := onHosts(t, list, "")
	cfg.Program, cfg.Args = "sh", []string{"-c", script}
	return cfg
}

// runRemotely runs a job, and checks that its hosts keep nothing.
func runRemotely(t *testing.T, cfg Config) *result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	r := new(result)
	if cfg.Stdout == nil {
		cfg.Stdout = &r.out
	}
	if cfg.Stderr == nil {
		cfg.Stderr = &r.err
	}
	r.end = Run(ctx, cfg)
	checkEmpty(t, cfg.Remote.SSH[2])
	return r
}

// checkEmpty checks that no copy of a program is left.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(dir, guard.Prefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("the hosts keep %q, %v", left, err)
	}
}

func TestRanksOfSeveralHostsFindEachOther(t *testing.T) {
	for _, transport := range []string{"auto", "tcp"} {
		for _, rounds := range []bool{false, true} {
			cfg, _ := onHosts(t, "a,b:4,c:2", "ring", "5")
			cfg.Transport, cfg.Remote.Rounds = transport, rounds
			r := runRemotely(t, cfg)
			if r.end != nil || strings.Count(r.out.String(), "token 5\n") != 7 || !strings.Contains(r.out.String(), "[6] token") {
				t.Errorf("%s, rounds %v: %v\n%s%s", transport, rounds, r.end, &r.out, &r.err)
			}
		}
	}
}

func TestRanksOfOneHostShareItsMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks share memory on Linux only")
	}
	cfg, _ := onHosts(t, "a:3", "ring", "5")
	cfg.Transport = "shm"
	if r := runRemotely(t, cfg); r.end != nil || strings.Count(r.out.String(), "token 5\n") != 3 {
		t.Errorf("%v\n%s%s", r.end, &r.out, &r.err)
	}
	cfg, _ = onHosts(t, "a:2,b:2", "ring", "5")
	cfg.Verbose = true
	r := runRemotely(t, cfg)
	if said := r.err.String(); r.end != nil || strings.Count(said, "shared memory: ") != 2 || !strings.Contains(said, "chorale: host b: shared memory: ") {
		t.Errorf("%v\n%s", r.end, said)
	}
}

func TestRanksArePlacedByBlockOrByTurns(t *testing.T) {
	for _, test := range []struct {
		size   int
		rounds bool
		want   string
	}{
		{0, false, "0a 1b 2b 3c"}, {3, false, "0a 1b 2b"}, {0, true, "0a 1b 2c 3b"}, {2, true, "0a 1b"},
	} {
		cfg := shellOn(t, "a,b:2,c", `echo $CHORALE_RANK$ON`)
		cfg.Size, cfg.Remote.Rounds, cfg.Unlabeled = test.size, test.rounds, true
		r := runRemotely(t, cfg)
		lines := strings.Fields(r.out.String())
		slices.Sort(lines)
		if got := strings.Join(lines, " "); got != test.want || r.end != nil {
			t.Errorf("%d ranks, rounds %v: %s, %v; want %s", test.size, test.rounds, got, r.end, test.want)
		}
	}
}

func TestTheRootCauseIsNamedAcrossHosts(t *testing.T) {
	for _, test := range []struct {
		how, want string
		status    int
	}{
		{"killed", "rank 3 on host b was killed by signal 9 (killed)", 137},
		{"7", "rank 3 on host b exited with status 7", 7},
	} {
		cfg, _ := onHosts(t, "a:2,b:2,c", "ring", "100", "3", test.how)
		r := runRemotely(t, cfg)
		if r.end == nil || r.end.Error() != test.want || Status(r.end) != test.status {
			t.Errorf("%v, status %d; want %s, status %d\n%s", r.end, Status(r.end), test.want, test.status, &r.err)
		}
	}
}

func TestWhatRanksPrintElsewhereIsUnchanged(t *testing.T) {
	const bytes = 3 * remote.StreamWindow
	cfg := shellOn(t, "a,b", `printf 'out\n\nno end'; head -c `+strconv.Itoa(bytes)+` /dev/zero >&2; exit 3`)
	cfg.Size, cfg.Unlabeled = 1, true
	r := runRemotely(t, cfg)
	if r.out.String() != "out\n\nno end" || r.err.String() != strings.Repeat("\x00", bytes) || Status(r.end) != 3 {
		t.Errorf("%v, %q, %d bytes of standard error", r.end, &r.out, len(r.err.String()))
	}
}

func TestStandardInputGoesToRank0OnItsHost(t *testing.T) {
	cfg := shellOn(t, "a,b", `cat; echo end $CHORALE_RANK`)
	text := strings.Repeat("a line\n", remote.StreamWindow)
	cfg.Stdin = strings.NewReader(text)
	r := runRemotely(t, cfg)
	if got := strings.Count(r.out.String(), "[0] a line\n"); got != remote.StreamWindow || r.end != nil || !strings.Contains(r.out.String(), "[1] end 1") {
		t.Errorf("%d lines, want %d: %v\n%s", got, remote.StreamWindow, r.end, &r.err)
	}
}

// endless is an input without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestInputThatRank0DoesNotReadKeepsNothingWaiting(t *testing.T) {
	cfg := shellOn(t, "a:2", `echo done`)
	cfg.Stdin = endless{}
	if r := runRemotely(t, cfg); r.end != nil || strings.Count(r.out.String(), "done") != 2 {
		t.Errorf("%v\n%s%s", r.end, &r.out, &r.err)
	}
}

func TestSignalsReachTheRanksOfAllHosts(t *testing.T) {
	signals := make(chan os.Signal, 1)
	cfg := shellOn(t, "a,b:2", `trap 'echo got it; exit 0' USR1; echo ready; while :; do sleep 0.01; done`)
	cfg.Signals = signals
	var out lockedBuilder
	cfg.Stdout = writerFunc(func(p []byte) (int, error) {
		n, err := out.Write(p)
		if strings.Count(out.String(), "ready") == 3 && strings.Contains(string(p), "ready") {
			signals <- wireSignals["USR1"]
		}
		return n, err
	})
	if r := runRemotely(t, cfg); r.end != nil || strings.Count(out.String(), "got it") != 3 {
		t.Errorf("%v\n%s%s", r.end, &out, &r.err)
	}
}

func TestAnInterruptEndsTheRanksOfAllHosts(t *testing.T) {
	for _, script := range []string{"echo ready; sleep 1000", "trap '' INT; echo ready; while :; do sleep 1; done"} {
		signals := make(chan os.Signal, 1)
		cfg := shellOn(t, "a,b:2", script)
		cfg.Signals, cfg.Grace = signals, 100*time.Millisecond
		var out lockedBuilder
		cfg.Stdout = writerFunc(func(p []byte) (int, error) {
			n, err := out.Write(p)
			if strings.Count(out.String(), "ready") == 3 {
				signals <- syscall.SIGINT
			}
			return n, err
		})
		if r := runRemotely(t, cfg); Status(r.end) != 130 {
			t.Errorf("%v, want an interrupt", r.end)
		}
	}
}

func TestAnOutputThatIsBlockedKeepsNoSignalFromOtherHosts(t *testing.T) {
	signals := make(chan os.Signal) // unbuffered: a send returns when the launcher has the signal
	blocked := make(chan struct{})
	defer close(blocked)
	cfg := shellOn(t, "a", "while :; do echo y; done")
	cfg.Signals, cfg.Grace = signals, time.Hour
	cfg.Stdout = writerFunc(func(p []byte) (int, error) {
		interruptAgain(signals, blocked)
		return len(p), nil
	})
	if r := runRemotely(t, cfg); Status(r.end) != 130 {
		t.Errorf("%v, want an interrupt", r.end)
	}
}

func TestNoiseOfALoginShellIsSkippedAndShown(t *testing.T) {
	if r := runRemotely(t, shellOn(t, "noisy,a", "echo started")); r.end != nil || r.out.String() != "[0] started\n[1] started\n" && r.out.String() != "[1] started\n[0] started\n" {
		t.Errorf("%v\n%q%s", r.end, &r.out, &r.err)
	}
	cfg := shellOn(t, "noisy", "echo started")
	cfg.Remote.Agent = "/nowhere/to/be/found"
	r := runRemotely(t, cfg)
	for _, want := range []string{"exited with status 127", "not found", "want chorale on the host, and its path with --agent", `the host printed "welcome; [1mto chorale-agent noise;`} {
		if r.end == nil || !strings.Contains(r.end.Error(), want) {
			t.Errorf("%v, want %q in it", r.end, want)
		}
	}
}

func TestAHostWithoutChoraleGetsACopy(t *testing.T) {
	cfg, _ := onHosts(t, "bare:2,bare2,a", "ring", "5")
	if r := runRemotely(t, cfg); r.end != nil || strings.Count(r.out.String(), "token 5\n") != 4 {
		t.Errorf("%v\n%s%s", r.end, &r.out, &r.err)
	}
	r := runRemotely(t, shellOn(t, "a,stranger", "echo started"))
	if r.end == nil || !strings.HasPrefix(r.end.Error(), "host stranger: it is Plan9 mips, has no chorale at ") || r.out.String() != "" {
		t.Errorf("%v\n%s", r.end, &r.out)
	}
}

func TestTheAgentMayHaveAnyPathInAnyLoginShell(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"sh", "bash", "dash", "ksh", "zsh", "fish", "tcsh"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		for _, name := range []string{"plain", "two words", "it's $HOME `id` \"!\" !! \\ \\' *;&|<>(){}[]~#%"} {
			cfg := shellOn(t, "login-"+shell, "echo started")
			cfg.Remote.Agent = filepath.Join(t.TempDir(), name)
			if err := os.Symlink(self, cfg.Remote.Agent); err != nil {
				t.Fatal(err)
			}
			if r := runRemotely(t, cfg); r.end != nil || r.out.String() != "[0] started\n" {
				t.Errorf("%s, %q: %v", shell, name, r.end)
			}
		}
		if r := runRemotely(t, shellOn(t, "bare-login-"+shell, "echo started")); r.end != nil || r.out.String() != "[0] started\n" {
			t.Errorf("%s, a copy: %v", shell, r.end)
		}
	}
	cfg := shellOn(t, "a", "")
	cfg.Remote.Agent = "two\nlines"
	if err := Run(t.Context(), cfg); Status(err) != 2 {
		t.Errorf("%v, want a usage error", err)
	}
}

func TestAnotherCommandMayTakeThePlaceOfSSH(t *testing.T) {
	cfg := shellOn(t, "a,b", "echo $WHERE")
	cfg.Unlabeled = true
	cfg.Remote.Launcher = []string{"env", "WHERE=on-{host}"}
	r := runRemotely(t, cfg)
	if lines := strings.Fields(r.out.String()); r.end != nil || len(lines) != 2 || !slices.Contains(lines, "on-a") || !slices.Contains(lines, "on-b") {
		t.Errorf("%v\n%s%s", r.end, &r.out, &r.err)
	}
}

func TestRanksElsewhereGetTheEnvironmentOfTheirHost(t *testing.T) {
	t.Setenv("SECRET_OF_MINE", "1")
	t.Setenv("NAMED", "two words=")
	t.Setenv("CHORALE_OTHER", "kept")
	cfg := shellOn(t, "a", `echo "$ON|$SECRET_OF_MINE|$NAMED|$CHORALE_OTHER|$CHORALE_SIZE"`)
	cfg.Remote.Env = []string{"NAMED"}
	if r := runRemotely(t, cfg); r.out.String() != "[0] a||two words=|kept|1\n" {
		t.Errorf("%v\n%s", r.end, &r.out)
	}
}

func TestRanksRunInTheSameDirectoryIfTheHostHasIt(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if r := runRemotely(t, shellOn(t, "a", "pwd -P")); r.out.String() != "[0] "+here+"\n" {
		t.Errorf("%v\n%swant %s", r.end, &r.out, here)
	}
	cfg := shellOn(t, "a", "pwd -P")
	cfg.Dir = "/nowhere/to/be/found"
	if r := runRemotely(t, cfg); r.end == nil || r.end.Error() != "host a: no directory /nowhere/to/be/found: want one that every host has" {
		t.Errorf("%v", r.end)
	}
	gone := t.TempDir()
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	cfg = shellOn(t, "a", "pwd -P")
	home, err := filepath.EvalSymlinks(cfg.Remote.SSH[2])
	if err != nil {
		t.Fatal(err)
	}
	if r := runRemotely(t, cfg); r.out.String() != "[0] "+home+"\n" {
		t.Errorf("%v\n%swant %s", r.end, &r.out, home)
	}
}

func TestAProgramIsCopiedUnlessEveryHostHasIt(t *testing.T) {
	script := filepath.Join(t.TempDir(), "my script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$0\"\nls -ld \"${0%/*}\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := shellOn(t, "a,b", "")
	cfg.Program, cfg.Args, cfg.Unlabeled = script, nil, true
	r := runRemotely(t, cfg)
	copied := regexp.QuoteMeta(filepath.Join(cfg.Remote.SSH[2], guard.Prefix)) + `\w+/my script\n`
	if got := len(regexp.MustCompile(copied).FindAllString(r.out.String(), -1)); r.end != nil || got != 2 || strings.Count(r.out.String(), "drwx------") != 2 {
		t.Errorf("%d ranks run copies: %v\n%s%s", got, r.end, &r.out, &r.err)
	}
	cfg.Remote.NoCopy = true
	if r := runRemotely(t, cfg); r.end != nil || strings.Count(r.out.String(), script+"\n") != 2 {
		t.Errorf("%v\n%s%s", r.end, &r.out, &r.err)
	}
	cfg.Program = script + " that is not there"
	if r := runRemotely(t, cfg); r.end == nil || !strings.Contains(r.end.Error(), "no such file or directory: want an executable of this host") {
		t.Errorf("%v", r.end)
	}
	cfg.Program = "."
	if err := Run(t.Context(), cfg); Status(err) != 2 || !strings.Contains(err.Error(), ". is a Go package: to run it without a copy, want an executable that every host has") {
		t.Errorf("%v", err)
	}
}
