package transporttest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

func newNaive(n int) []transport.Endpoint { return cluster.All(newNaiveJob(n)) }

func startNaive(_ *testing.T, n int) []transport.Endpoint { return newNaive(n) }

// The naive endpoint bounds nothing, and looks through all that waits at every change.
const unbounded = "AnnouncementsWaitBeyondABoundAndKeepTheirOrder"

func TestTheNaiveEndpointKeepsTheContract(t *testing.T) { Run(t, startNaive, unbounded) }

func TestTheContractHoldsInEveryOrderOfEvents(t *testing.T) {
	var seed atomic.Uint64
	Run(t, func(t *testing.T, n int) []transport.Endpoint {
		return wrap(newNaive(n), Faults{Seed: seed.Add(1), Delay: 20 * time.Microsecond, Shuffle: true})
	}, unbounded)
}

func TestTheNaiveEndpointCanLoseRanks(t *testing.T) {
	RunLost(t, func(_ *testing.T, n int) []*naive { return newNaiveJob(n) })
}

func wrap(ends []transport.Endpoint, f Faults) []transport.Endpoint {
	for i := range ends {
		ends[i] = Faulty(ends[i], f)
	}
	return ends
}
