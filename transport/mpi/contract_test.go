//go:build mpi

package mpi

import (
	"flag"
	"fmt"
	"os"
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
	if name := os.Getenv(scenarioVar); name != "" {
		if err := scenarios[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "1") // all jobs of a test have the same processes
	os.Exit(m.Run())
}

func startJob(t *testing.T, n int) []transport.Endpoint { return cluster.All(open(t, n, 0)) }

func TestTheContractIsKept(t *testing.T) {
	requireMPI(t)
	open(t, 1, 0)[0].Close() // starts the ranks, which do not end with the test
	// The test calls the ranks' processes over sockets: so many messages would take a minute.
	except := append(transporttest.IsolationClaims(), "AnnouncementsWaitBeyondABoundAndKeepTheirOrder")
	transporttest.Run(t, startJob, except...)
	// The failure of one communicator is that of the endpoint.
	transporttest.RunLost(t, func(t *testing.T, n int) []*proxy { return open(t, n, 0) },
		"ALostRankRevokesTheCommunicatorsThatItBelongsTo", "ACommunicatorWithALostRankIsRevokedWhenItIsUsed")
}

func TestARankLeavesInTheEnd(t *testing.T) {
	requireMPI(t)
	transporttest.RunLingering(t, func(t *testing.T, n int) []transport.Endpoint {
		return cluster.All(open(t, n, time.Millisecond))
	})
}
