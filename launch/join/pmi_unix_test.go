//go:build unix

package join

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inherit returns the environment of a rank that inherited a connection, and the
// server's end.
func inherit(t *testing.T) (fd int, server net.Conn) {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(pair[1]), "server")
	defer file.Close()
	if server, err = net.FileConn(file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return pair[0], server
}

func TestAnInheritedConnectionLeadsToTheLauncher(t *testing.T) {
	fd, server := inherit(t)
	place, err := find(lookupIn(vars(fmt.Sprintf("PMI_FD=%d PMI_RANK=1 PMI_SIZE=3 PMI_JOBID=4.0 SLURM_STEP_ID=0 %s", fd, torch))), pod)
	if err != nil || place.Launcher != SlurmPMI || place.Rank != 1 || place.Size != 3 {
		t.Fatalf("%+v, %v", place, err)
	}
	report := replay(server, transcript(slurmPMI2), noLimit)
	session, err := place.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if place.Job != "4.0" {
		t.Errorf("job %q", place.Job)
	}
	if value, err := session.Share(t.Context(), ""); value != someValue || err != nil {
		t.Errorf("%q, %v", value, err)
	}
	if err := session.Finalize(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-report; err != nil {
		t.Error(err)
	}
}

// Hydra notices the end of a rank by the end of its connection.
func TestAChildOfARankDoesNotHoldItsConnection(t *testing.T) {
	fd, server := inherit(t)
	conn, err := takeDescriptor(fd)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer stdin.Close() // ends the child
	conn.Close()
	server.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the server reads %v while a child of the rank lives, want EOF", err)
	}
}

func TestOnlyAConnectionIsALauncher(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	listening, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(listening)
	for _, fd := range []int{int(file.Fd()), listening, 1 << 19} {
		place, err := find(lookupIn(vars(fmt.Sprintf("PMI_FD=%d PMI_RANK=0 PMI_SIZE=2", fd))), pod)
		if err != nil || place.Launcher != None {
			t.Errorf("%+v, %v", place, err)
		}
	}
}

func TestAnInheritedConnectionNeedsRankAndSize(t *testing.T) {
	fd, _ := inherit(t)
	defer syscall.Close(fd)
	for _, test := range []struct{ vars, want string }{
		{"", "PMI_RANK is not set, but PMI_FD is"},
		{"PMI_RANK=1", "PMI_SIZE is not set, but PMI_FD is"},
		{"PMI_RANK=1 PMI_SIZE=1", "PMI_RANK=1 and PMI_SIZE=1 contradict each other"},
		{"PMI_RANK=1 PMI_SIZE=0", `PMI_SIZE="0"`},
		{"PMI_RANK=1 PMI_SIZE=4 CHORALE_SIZE=3", "CHORALE_SIZE=3 contradicts PMI_FD="},
	} {
		_, err := find(lookupIn(vars(fmt.Sprintf("PMI_FD=%d %s", fd, test.vars))), pod)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.vars, err, test.want)
		}
	}
}
