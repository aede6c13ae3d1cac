//go:build mpi

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// scenarioVar names, in a process that is a rank, what it does.
const scenarioVar = "CHORALE_MPI_TEST_SCENARIO"

// scenarios are what the ranks of a job do that is a job of its own.
var scenarios = map[string]func() error{
	"lose rank 1":         loseRank,
	"abort rank 1":        abortRank,
	"new twice":           newTwice,
	"memory and pointers": sendBesidePointers,
}

// runScenario has n ranks do what a scenario says, under the launcher.
func runScenario(t *testing.T, n int, name string) (output string, err error) {
	t.Helper()
	requireMPI(t)
	cmd := mpiexec(n, os.Args[0])
	cmd.Env = append(cmd.Env, scenarioVar+"="+name)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// loseRank ends rank 1 while the others wait for it.
func loseRank() error {
	e, _, err := New(Config{})
	if err != nil {
		return err
	}
	if e.Rank() == 1 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return cluster.Receive(context.Background(), e, cluster.Sig, 1, make([]byte, 1)) // if the launcher does not end this process first
}

// A rank ends without MPI_Finalize: the launcher ends the job.
func TestALostRankEndsTheJob(t *testing.T) {
	out, err := runScenario(t, 3, "lose rank 1")
	if exit := new(exec.ExitError); err == nil || !errors.As(err, &exit) || exit.ExitCode() == 124 {
		t.Errorf("got %v\n%s", err, out)
	}
}

// abortRank has rank 1 give up, and live on, while rank 0 leaves.
func abortRank() error {
	e, _, err := New(Config{})
	if err != nil {
		return err
	}
	if e.Rank() == 0 {
		err := e.Close()
		return fmt.Errorf("Close has returned: %v", err)
	}
	e.Abort(errors.New("it has had enough"))
	select {}
}

func TestARankDoesNotWaitInCloseForOneThatHasGivenUp(t *testing.T) {
	out, err := runScenario(t, 2, "abort rank 1")
	if exit := new(exec.ExitError); err == nil || !errors.As(err, &exit) || exit.ExitCode() == 124 || !strings.Contains(out, "Close has returned: <nil>") {
		t.Errorf("got %v\n%s", err, out)
	}
}

// newTwice makes an endpoint after MPI has ended.
func newTwice() error {
	e, _, err := New(Config{})
	if err != nil {
		return err
	}
	if _, _, err := New(Config{}); err == nil {
		return errors.New("a second New while MPI runs: no error")
	}
	if err := e.Close(); err != nil {
		return err
	}
	_, _, err = New(Config{})
	return err
}

func TestASecondNewOfAProcessIsAnError(t *testing.T) {
	out, err := runScenario(t, 2, "new twice")
	if err == nil || !strings.Contains(out, errSecond.Error()) {
		t.Errorf("got %v\n%s", err, out)
	}
}

// sendBesidePointers sends an array of a struct that has pointers to memory of Go, too.
func sendBesidePointers() error {
	e, _, err := New(Config{})
	if err != nil {
		return err
	}
	type node struct {
		next *node
		data [1 << 20]byte
	}
	n := &node{next: new(node)}
	if e.Rank() == 0 {
		n.data[len(n.data)-1] = 7
		err = cluster.Send(e, cluster.Sig, 1, n.data[:])
	} else {
		err = cluster.Receive(context.Background(), e, cluster.Sig, 0, n.data[:])
		if want := append(make([]byte, len(n.data)-1), 7); err == nil && !bytes.Equal(n.data[:], want) {
			err = errors.New("the data arrived changed")
		}
	}
	return errors.Join(err, e.Close())
}

func TestMemoryBesidePointersIsSent(t *testing.T) {
	if out, err := runScenario(t, 2, "memory and pointers"); err != nil {
		t.Errorf("got %v\n%s", err, out)
	}
}
