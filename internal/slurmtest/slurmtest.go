// Package slurmtest runs a small Slurm on the loopback interface, for tests of jobs
// under srun: a munged with a key of its own, a slurmctld, and a slurmd for each of
// three nodes. They are Debian's packages slurmctld, slurmd, slurm-client and munge,
// and libpmix2 for srun --mpi=pmix.
package slurmtest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/testenv"
)

// Nodes are the names of the nodes, each with four processors. They are addresses of
// the loopback interface, because a job without a key store dials the first of them.
var Nodes = []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}

const (
	startLimit = 60 * time.Second
	stopLimit  = 10 * time.Second
	poll       = 50 * time.Millisecond

	maxLog = 2000 // bytes of a daemon's log that a test that fails shows
)

// Start runs a Slurm until the test ends, and returns the variables that srun, sbatch
// and the other commands need to find it, to be appended to [os.Environ]. Jobs that
// still run at the end are killed. Where Slurm is not installed, the test is skipped.
func Start(t testing.TB) (env []string) {
	t.Helper()
	s := &cluster{t: t, munged: find(t, "munged"), slurmctld: find(t, "slurmctld"), slurmd: find(t, "slurmd")}
	for _, command := range []string{"srun", "sbatch", "sinfo", "squeue", "scancel"} {
		find(t, command)
	}
	dir, err := os.MkdirTemp("", "slurm") // not t.TempDir: paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Cleanup(s.killRest)
	s.configure()
	s.startMunge()
	s.start("slurmctld", s.slurmctld, "-D", "-c", "-i")
	for _, node := range Nodes {
		s.start(node, s.slurmd, "-D", "-N", node)
	}
	t.Cleanup(s.cancelJobs)
	s.await("all nodes are idle", func() bool {
		out, _ := s.command("sinfo", "-h", "-N", "-o", "%T").Output()
		return strings.Count(string(out), "idle\n") == len(Nodes)
	})
	return s.env()
}

// find returns the path of a program, which may be in a directory of the
// administrator's.
func find(t testing.TB, program string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	path, err := exec.LookPath("/usr/sbin/" + program)
	if err != nil {
		testenv.Skip(t, "there is no %s", program)
	}
	return path
}

type cluster struct {
	t                         testing.TB
	dir                       string
	munged, slurmctld, slurmd string
}

func (s *cluster) path(name string) string { return filepath.Join(s.dir, name) }

func (s *cluster) env() []string { return []string{"SLURM_CONF=" + s.path("slurm.conf")} }

func (s *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), s.env()...)
	return cmd
}

// configure writes slurm.conf and makes what it names.
func (s *cluster) configure() {
	s.t.Helper()
	self, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range []string{"state", "spool", "tmp"} {
		for _, node := range Nodes {
			if err := os.MkdirAll(filepath.Join(s.dir, dir, node), 0o755); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	var ports []string
	for range 1 + len(Nodes) {
		_, port, _ := net.SplitHostPort(testenv.FreeAddress(s.t, "127.0.0.1")) // it has one
		ports = append(ports, port)
	}
	conf := fmt.Sprintf(`ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=%[1]s
SlurmUser=%[2]s
SlurmdUser=%[2]s
AuthType=auth/munge
AuthInfo=socket=%[3]s/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=%[3]s/state
SlurmdSpoolDir=%[3]s/spool/%%n
TmpFS=%[3]s/tmp/%%n
SlurmctldPidFile=%[3]s/slurmctld.pid
SlurmdPidFile=%[3]s/slurmd.%%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
KillWait=2
`, ports[0], self.Username, s.dir)
	for i, node := range Nodes {
		conf += fmt.Sprintf("NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1 Port=%s CPUs=4\n", node, ports[1+i])
	}
	conf += "PartitionName=all Nodes=ALL Default=YES State=UP\n"
	if err := os.WriteFile(s.path("slurm.conf"), []byte(conf), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *cluster) startMunge() {
	s.t.Helper()
	key := make([]byte, 1024)
	rand.Read(key)
	if err := os.WriteFile(s.path("munge.key"), key, 0o400); err != nil {
		s.t.Fatal(err)
	}
	s.start("munged", s.munged, "--foreground", "--force", "--key-file", s.path("munge.key"), "--socket", s.path("munge.socket"),
		"--pid-file", s.path("munge.pid"), "--log-file", s.path("munge.log"), "--seed-file", s.path("munge.seed"))
	s.await("munged listens", func() bool {
		conn, err := net.Dial("unix", s.path("munge.socket"))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// start runs a daemon until the test ends. The end of its output is logged
// if the test fails.
func (s *cluster) start(name, program string, args ...string) {
	s.t.Helper()
	cmd := s.command(program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = stopLimit // processes that it leaves hold the pipe open
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(stopLimit):
			cmd.Process.Kill()
			<-ended
		}
		if s.t.Failed() {
			s.t.Logf("%s said at the end:\n%s", name, out.Bytes()[max(0, out.Len()-maxLog):])
		}
	})
}

// cancelJobs ends the jobs that still run, and waits for it: their processes are no
// children of the daemons.
func (s *cluster) cancelJobs() {
	if out, err := s.command("scancel", "--partition=all").CombinedOutput(); err != nil {
		s.t.Errorf("scancel: %v\n%s", err, out)
	}
	s.await("no job runs", func() bool {
		out, err := s.command("squeue", "-h").Output()
		return err == nil && len(bytes.TrimSpace(out)) == 0
	})
}

// killRest kills the processes of jobs that outlive the daemons, as those of a job do
// that started while it was canceled.
func (s *cluster) killRest() {
	for _, process := range s.rest() {
		process.Kill()
	}
}

// rest returns the processes that have the configuration of this Slurm in their
// environment.
func (s *cluster) rest() (processes []*os.Process) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		environment, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), s.env()[0]) {
			continue // it has ended, or is another's
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))) // digits
		if process, err := os.FindProcess(pid); err == nil {
			processes = append(processes, process)
		}
	}
	return processes
}

func (s *cluster) await(what string, holds func() bool) {
	s.t.Helper()
	for start := time.Now(); !holds(); time.Sleep(poll) {
		if time.Since(start) > startLimit {
			s.t.Fatalf("Slurm: not after %v: %s", startLimit, what)
		}
	}
}
