//go:build mpi

package mpi

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"github.com/chorale-go/chorale/transport/transporttest"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(socketVar); socket != "" {
		if err := serve(socket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(lostVar) != "" {
		loseRank()
	}
	os.Exit(m.Run())
}

// lostVar is set in a process that is a rank of a job of which rank 1 is lost.
const lostVar = "CHORALE_MPI_TEST_LOST"

// loseRank ends rank 1 while the others wait for it. It does not return.
func loseRank() {
	e, err := New(Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if e.Rank() == 1 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	err = cluster.Receive(context.Background(), e, cluster.Sig, 1, make([]byte, 1))
	fmt.Fprintln(os.Stderr, err) // if the launcher does not end this process first
	os.Exit(1)
}

func startJob(t *testing.T, n int) []transport.Endpoint { return cluster.All(open(t, n, 0)) }

func TestTheContractIsKept(t *testing.T) {
	requireMPI(t)
	open(t, 1, 0)[0].Close() // starts the ranks, which do not end with the test
	transporttest.Run(t, startJob)
	transporttest.RunLost(t, func(t *testing.T, n int) []*proxy { return open(t, n, 0) })
}

func TestARankLeavesInTheEnd(t *testing.T) {
	requireMPI(t)
	transporttest.RunLingering(t, func(t *testing.T, n int) []transport.Endpoint {
		return cluster.All(open(t, n, time.Millisecond))
	})
}
