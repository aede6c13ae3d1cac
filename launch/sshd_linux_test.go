package launch

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/launch/internal/guard"
)

// A lab is a few hosts, each a network namespace with an sshd of its own, on a bridge in
// the namespace of the launcher.
type lab struct {
	t    *testing.T
	dir  string // of keys and configurations, and the temporary directory of all hosts
	name string // begins the names of the namespaces
}

// newLab returns a lab with hosts of these names. A host down has no sshd, and a host
// nowhere is an address without a host.
func newLab(t *testing.T, hosts ...string) *lab {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Skip(t, "network namespaces take root")
	}
	for _, command := range []string{"ssh", "/usr/sbin/sshd", "ssh-keygen", "ip"} {
		if _, err := exec.LookPath(command); err != nil {
			testenv.Skip(t, "%v", err)
		}
	}
	l := &lab{t, t.TempDir(), "chorale-" + strings.ToLower(rand.Text()[:4])}
	if out, err := exec.Command("ip", "netns", "add", l.ns("")).CombinedOutput(); err != nil {
		testenv.Skip(t, "no network namespaces: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("ip", "netns", "del", l.ns("")).Run() })
	l.ip("", "link", "set", "lo", "up")
	l.ip("", "link", "add", "bridge", "type", "bridge")
	l.ip("", "addr", "add", "10.99.0.1/24", "dev", "bridge")
	l.ip("", "link", "set", "bridge", "up")
	for _, key := range []string{"host", "user"} {
		l.do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", l.path(key))
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where sshd drops its privileges
		t.Fatal(err)
	}
	l.write("sshd", "PidFile none", "HostKey "+l.path("host"), "AuthorizedKeysFile "+l.path("user.pub"), "StrictModes no",
		"UsePAM no", "PermitRootLogin prohibit-password", "PasswordAuthentication no", "SetEnv TMPDIR="+l.dir+" GORACE=atexit_sleep_ms=0")
	config := []string{"IdentityFile " + l.path("user"), "IdentitiesOnly yes", "UserKnownHostsFile " + l.path("known")}
	hostKey, err := os.ReadFile(l.path("host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	l.write("known", "* "+string(hostKey))
	for i, host := range hosts {
		address := fmt.Sprintf("10.99.0.%d", i+2)
		config = append(config, "Host "+host, "HostName "+address)
		if host != "nowhere" {
			l.addHost(host, i, address)
		}
	}
	l.write("ssh", config...)
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }
func (l *lab) ns(host string) string   { return strings.TrimSuffix(l.name+"-"+host, "-") }

func (l *lab) write(name string, lines ...string) {
	l.t.Helper()
	if err := os.WriteFile(l.path(name), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) do(command string, args ...string) {
	l.t.Helper()
	if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
		l.t.Fatalf("%s %q: %v\n%s", command, args, err, out)
	}
}

// ip runs the command ip in the namespace of a host, or of the launcher.
func (l *lab) ip(host string, args ...string) {
	l.t.Helper()
	l.do("ip", append([]string{"-n", l.ns(host)}, args...)...)
}

// addHost adds a host, and unless it is called down, starts its sshd.
func (l *lab) addHost(host string, number int, address string) {
	l.t.Helper()
	port := "port" + strconv.Itoa(number)
	l.do("ip", "netns", "add", l.ns(host))
	l.t.Cleanup(func() { exec.Command("ip", "netns", "del", l.ns(host)).Run() })
	l.ip("", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", l.ns(host))
	l.ip("", "link", "set", port, "master", "bridge", "up")
	l.ip(host, "addr", "add", address+"/24", "dev", "eth0")
	l.ip(host, "link", "set", "eth0", "up")
	l.ip(host, "link", "set", "lo", "up")
	if host == "down" {
		return
	}
	sshd := exec.Command("ip", "netns", "exec", l.ns(host), "/usr/sbin/sshd", "-D", "-e", "-f", l.path("sshd"))
	if err := sshd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		sshd.Process.Kill()
		sshd.Wait()
	})
	await(l.t, "sshd listens on "+host, func() bool {
		return exec.Command("ip", "netns", "exec", l.ns(""), "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=1",
			"-o", "UserKnownHostsFile="+l.path("known"), "-i", l.path("user"), address, "true").Run() == nil
	})
}

// launcher prepares a launcher of a program of these tests, or of another one.
func (l *lab) launcher(hosts, program string, args ...string) (launcher *exec.Cmd, stdout, stderr *lockedBuilder) {
	l.t.Helper()
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	if programs[program] != nil {
		program, args = self, append([]string{program}, args...)
	}
	launcher = exec.Command("ip", append([]string{"netns", "exec", l.ns(""), self, "remote", hosts, "ssh -F " + l.path("ssh"), program}, args...)...)
	stdout, stderr = new(lockedBuilder), new(lockedBuilder)
	launcher.Stdout, launcher.Stderr = stdout, stderr
	l.t.Cleanup(func() {
		if launcher.Process != nil {
			launcher.Process.Kill()
		}
	})
	return launcher, stdout, stderr
}

// checkNothingIsLeft waits until no host has a process or a file of a job.
func (l *lab) checkNothingIsLeft() {
	l.t.Helper()
	await(l.t, "nothing is left on any host", func() bool {
		files, err := filepath.Glob(l.path(guard.Prefix + "*"))
		return err == nil && len(files) == 0 && len(processesWith(l.t, "TMPDIR="+l.dir)) == 0
	})
}

func TestRanksRunOnHostsThatSSHReaches(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	launcher, stdout, stderr := l.launcher("a:2,b,c:2", "ring", "5")
	if err := launcher.Run(); err != nil || strings.Count(stdout.String(), "token 5\n") != 5 {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	// Ranks 1 and 2, which have no input, fail when rank 0 has printed its own.
	script := "cat; echo $SSH_CONNECTION; if [ $CHORALE_RANK = 0 ]; then touch " + l.path("printed") + "; else until [ -e " + l.path("printed") + " ]; do sleep 0.1; done; fi; exit $CHORALE_RANK"
	launcher, stdout, stderr = l.launcher("a,b:2", "sh", "-c", script)
	launcher.Stdin = strings.NewReader("a line\n")
	launcher.Run()
	if !strings.Contains(stdout.String(), "a line\n10.99.0.1 ") || !regexp.MustCompile(`rank [12] on host b exited with status [12]\n$`).MatchString(stderr.String()) {
		t.Errorf("%v\n%s%s", launcher.ProcessState, stdout, stderr)
	}
	l.checkNothingIsLeft()
}

func TestAHostThatSSHDoesNotReachEndsTheStartWithItsWords(t *testing.T) {
	l := newLab(t, "a", "down", "nowhere")
	for hosts, want := range map[string]string{
		"a,down":    "host down: ssh exited with status 255: ssh: connect to host 10.99.0.3 port 22: Connection refused\n",
		"a,nowhere": "host nowhere: ssh exited with status 255: ssh: connect to host 10.99.0.4 port 22: No route to host\n",
		"stranger":  "host stranger: ssh exited with status 255: ssh: Could not resolve hostname stranger: ",
	} {
		began := time.Now()
		launcher, stdout, stderr := l.launcher(hosts, "sh", "-c", "echo started")
		launcher.Run()
		if took := time.Since(began); took > 20*time.Second || launcher.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), want) || stdout.String() != "" {
			t.Errorf("%s: %v after %v\n%s%s", hosts, launcher.ProcessState, took, stdout, stderr)
		}
	}
	l.checkNothingIsLeft()
}

func TestNothingRemainsOnAHostThatSSHReachesWhateverDies(t *testing.T) {
	l := newLab(t, "a", "b")
	script := l.path("script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntrap '' TERM INT HUP\necho rank on ${SSH_CONNECTION% *}\nsetsid sleep 1000 &\nwhile :; do sleep 1; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, victim := range []string{"launcher", "sshd", "host"} {
		launcher, stdout, stderr := l.launcher("a:2,b", script)
		if err := launcher.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "all ranks run", func() bool { return strings.Count(stdout.String(), "rank on") == 3 })
		switch victim {
		case "launcher":
			launcher.Process.Kill()
		case "sshd":
			kill(t, "b", l)
		case "host":
			l.ip("b", "link", "set", "eth0", "down")
			launcher.Process.Signal(syscall.SIGTERM)
		}
		if err := launcher.Wait(); err == nil {
			t.Errorf("%s: the launcher ends with success", victim)
		}
		if victim == "sshd" && !strings.Contains(stderr.String(), "the connection to host b broke: ssh exited with status 255: ") {
			t.Errorf("%s", stderr)
		}
		if victim == "host" {
			l.ip("b", "link", "set", "eth0", "up")
		}
		l.checkNothingIsLeft()
	}
}

// The ranks wait, and no packet says that one of them is gone.
func TestAHostWhoseLinkGoesDownEndsTheJob(t *testing.T) {
	l := newLab(t, "a", "b")
	launcher, stdout, stderr := l.launcher("a:2,b", "idle")
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "all ranks have joined", func() bool { return strings.Count(stdout.String(), "joined") == 3 })
	l.ip("b", "link", "set", "eth0", "down")
	began := time.Now()
	launcher.Wait()
	took := time.Since(began)
	if want := "the connection to host b broke: the host does not answer, and rank 2 on host b has lost the launcher\n"; took > 20*time.Second || !strings.Contains(stderr.String(), want) {
		t.Errorf("%v after %v\n%s", launcher.ProcessState, took, stderr)
	}
	l.ip("b", "link", "set", "eth0", "up")
	l.checkNothingIsLeft()
}

// kill kills the processes of sshd that serve connections to a host.
func kill(t *testing.T, host string, l *lab) {
	t.Helper()
	out, err := exec.Command("ip", "netns", "pids", l.ns(host)).Output()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, pid := range strings.Fields(string(out)) {
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		if number, _ := strconv.Atoi(pid); strings.HasPrefix(string(line), "sshd: root") {
			syscall.Kill(number, syscall.SIGKILL)
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("no sshd serves a connection")
	}
}
