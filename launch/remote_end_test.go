package launch

import (
	"bytes"
	"context"
	"errors"
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
)

func TestAHostThatIsNotReachedEndsTheStart(t *testing.T) {
	for _, test := range []struct{ hosts, want string }{
		{"a,nowhere,b", `host nowhere: launch.test exited with status 255: ** welcome **; ssh: connect to host nowhere port 22: No route to host`},
		{"a,busy3", "host busy3: launch.test exited with status 255: kex_exchange_identification: read: Connection reset by peer"},
		{"newer,a", "host newer: its chorale speaks version 4 of the protocol between hosts, and this one version 3: want the same chorale on all hosts"},
		{"endless", "host endless: more than 65536 bytes, and no agent has begun to speak: the host printed \"noisenoise"},
		{"talks", "the connection to host talks broke: what its agent says is wrong: a frame of "},
	} {
		cfg := shellOn(t, test.hosts, "echo started")
		r := runRemotely(t, cfg)
		if r.end == nil || !strings.Contains(strings.ReplaceAll(r.end.Error(), cfg.Remote.SSH[0], "launch.test"), test.want) || Status(r.end) != 1 || r.out.String() != "" {
			t.Errorf("%s: %v, want %s\n%s", test.hosts, r.end, test.want, &r.out)
		}
	}
}

func TestAHostThatDropsSomeConnectionsIsTriedAgain(t *testing.T) {
	if r := runRemotely(t, shellOn(t, "a,busy2", "echo started")); r.end != nil || strings.Count(r.out.String(), "started") != 2 {
		t.Errorf("%v\n%s", r.end, &r.out)
	}
}

func TestAHostThatDoesNotAnswerEndsTheStartInTime(t *testing.T) {
	cfg := shellOn(t, "mute", "echo started")
	cfg.Remote.helloTimeout = 100 * time.Millisecond
	if r := runRemotely(t, cfg); r.end == nil || r.end.Error() != "host mute: it has not answered for 100ms" {
		t.Errorf("%v", r.end)
	}
}

// Its rank has not joined, so that no connection of it tells that the host is gone.
func TestAHostThatSaysNothingMoreIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 10 s")
	}
	cfg := shellOn(t, "silent,a", `[ "$CHORALE_RANK" = 1 ] && echo goes on`)
	cfg.Continue = true
	r := runRemotely(t, cfg)
	if want := "rank 0 was lost: the connection to host silent broke: the host has been silent for 10s; no rank is left\n"; r.end != nil || strings.Count(r.err.String(), want) != 1 {
		t.Errorf("%v\n%s%s", r.end, &r.out, &r.err)
	}
}

func TestAnInterruptEndsTheStart(t *testing.T) {
	signals := make(chan os.Signal, 1)
	cfg := shellOn(t, "a,mute", "echo started")
	cfg.Signals, cfg.Verbose = signals, true
	cfg.Stderr = writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "the connection to host mute: process") {
			signals <- syscall.SIGINT
		}
		return len(p), nil
	})
	if r := runRemotely(t, cfg); Status(r.end) != 130 {
		t.Errorf("%v, want an interrupt", r.end)
	}
}

func TestARankThatDoesNotStartOnItsHostIsAnError(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/nowhere/to/be/found\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := shellOn(t, "a,b", "")
	cfg.Program = script
	if r := runRemotely(t, cfg); r.end == nil || !regexp.MustCompile(`^host [ab]: starting rank [01] of 2: .*no such file`).MatchString(r.end.Error()) || Status(r.end) != 1 {
		t.Errorf("%v", r.end)
	}
}

func TestAWrongRemoteIsAUsageError(t *testing.T) {
	t.Setenv("UNSET", "")
	os.Unsetenv("UNSET")
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Size = 4 }, "4 ranks, and the 2 hosts have 3 slots: want at most as many ranks, or more slots, as in a:2"},
		{func(c *Config) { c.Remote.Hosts = nil }, "no hosts: want at least 1"},
		{func(c *Config) { c.Remote.Hosts = []Host{{"-x", 1}} }, "want a name that does not begin with -"},
		{func(c *Config) { c.Remote.Hosts = []Host{{"x", 0}} }, "host x has 0 slots: want at least 1"},
		{func(c *Config) { c.Transport = "inproc" }, "transport inproc is one process"},
		{func(c *Config) { c.Transport = "shm" }, "transport shm is for ranks of one host, and 2 hosts run ranks"},
		{func(c *Config) { c.Remote.Launcher = []string{"docker", "exec"} }, `launcher "docker exec": want {host} in it`},
		{func(c *Config) { c.Remote.Env = []string{"A=b"} }, `variable "A=b": want a name alone`},
		{func(c *Config) { c.Remote.Env = []string{"UNSET"} }, "variable UNSET is not set"},
		{func(c *Config) { c.Remote.SSH = []string{"/nowhere/ssh"} }, `exec: "/nowhere/ssh": `},
	} {
		cfg := shellOn(t, "a,b:2", "true")
		test.change(&cfg)
		if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), test.want) || Status(err) != 2 {
			t.Errorf("%v, status %d; want %s", err, Status(err), test.want)
		}
	}
}

// launchRemote LIST SSH PROGRAM ARG… is a launcher of ranks on hosts of that ssh.
func launchRemote(args []string) error {
	hosts, err := ParseHosts(args[0])
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	Notify(signals)
	return Run(context.Background(), Config{
		Program: args[2], Args: args[3:], Unlabeled: true, Signals: signals, Verbose: true,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Guard: []string{"guard"}, Grace: 500 * time.Millisecond,
		Remote: &Remote{Hosts: hosts, SSH: strings.Fields(args[1]), AgentArgs: []string{"agent"}},
	})
}

// Whatever dies, no process and no file of the job remains on any host.
func TestNothingRemainsOnAnyHostWhateverDies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are found in /proc")
	}
	for _, victim := range []string{"launcher", "ssh", "agent", "agent's guard", "rank", "copied agent"} {
		t.Run(victim, func(t *testing.T) {
			dir, host := t.TempDir(), "a"
			if victim == "copied agent" {
				host = "bare"
			}
			script := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(script, []byte("#!/bin/sh\ntrap '' TERM INT HUP\necho rank $$\necho $PPID >&2\nsetsid sleep 1000 &\nwhile :; do sleep 1; done\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			launcher := exec.Command(self, "remote", host+":2,b", self+" ssh "+dir, script)
			var stdout, stderr lockedBuilder
			launcher.Stdout, launcher.Stderr = &stdout, &stderr
			if err := launcher.Start(); err != nil {
				t.Fatal(err)
			}
			defer launcher.Process.Kill()
			await(t, "all ranks run", func() bool {
				return strings.Count(stdout.String(), "rank ") == 3 && strings.Count(stderr.String(), "\nchorale: host "+host+": guard: process") == 1
			})
			find := func(pattern string) int {
				m := regexp.MustCompile(pattern).FindStringSubmatch(stdout.String() + stderr.String())
				pid, err := strconv.Atoi(append(m, "", "")[1])
				if err != nil {
					t.Fatalf("no %s in\n%s", pattern, &stderr)
				}
				return pid
			}
			var pid int
			switch victim {
			case "launcher":
				pid = launcher.Process.Pid
			case "ssh":
				pid = find(`the connection to host a: process (\d+)`)
			case "agent", "copied agent":
				pid = find(`(?m)^(\d+)$`)
			case "agent's guard":
				pid = find(`host a: guard: process (\d+)`)
			case "rank":
				pid = find(`rank (\d+)`)
			}
			if p, err := os.FindProcess(pid); err != nil || p.Kill() != nil {
				t.Fatalf("process %d is gone: %v", pid, err)
			}
			if victim == "agent's guard" { // the job goes on without it
				launcher.Process.Signal(syscall.SIGTERM)
			}
			err = launcher.Wait()
			if err == nil {
				t.Error("the launcher ends with success")
			}
			await(t, "nothing is left of the job", func() bool {
				left, err := filepath.Glob(filepath.Join(dir, guard.Prefix+"*"))
				return err == nil && len(left) == 0 && len(processesWith(t, "TMPDIR="+dir)) == 0
			})
		})
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 30 s, it is not so that %s", what)
		}
	}
}

// processesWith returns the processes whose environment holds a variable.
func processesWith(t *testing.T, variable string) (pids []string) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if environ, err := os.ReadFile(file); err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == variable }) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func TestAConnectionThatBreaksEndsTheJob(t *testing.T) {
	cfg, _ := onHosts(t, "a,b", "idle")
	ended := false
	cfg.Verbose = true
	var stderr lockedBuilder
	cfg.Stderr = &stderr
	joined := 0
	cfg.Stdout = writerFunc(func(p []byte) (int, error) {
		if joined += bytes.Count(p, []byte("joined")); joined < len(cfg.Remote.Hosts) { // else the copy of the program may break
			return len(p), nil
		}
		if m := regexp.MustCompile(`the connection to host b: process (\d+)`).FindStringSubmatch(stderr.String()); m != nil && !ended {
			pid, _ := strconv.Atoi(m[1])
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
			ended = true
		}
		return len(p), nil
	})
	r := runRemotely(t, cfg)
	var end *EndError
	if r.end == nil || errors.As(r.end, &end) || !strings.HasPrefix(r.end.Error(), "the connection to host b broke: ") || !strings.Contains(r.end.Error(), "was killed by signal 9") || Status(r.end) != 1 {
		t.Errorf("%v, status %d", r.end, Status(r.end))
	}
}
