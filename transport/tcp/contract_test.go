package tcp

import (
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// A kind makes the endpoints of a job in one of the ways that there are.
type kind func(n int) ([]*Endpoint, error)

func bySystem(n int) ([]*Endpoint, error)     { return loopback(n, Config{}, newPoller) }
func byGoroutines(n int) ([]*Endpoint, error) { return loopback(n, Config{}, newGoroutineStreams) }
func byTLS(n int) ([]*Endpoint, error) {
	return loopback(n, Config{Encrypt: true}, newGoroutineStreams)
}

// start returns a Start for the contract suite.
func start(k kind) transporttest.Start {
	return func(t *testing.T, n int) []transport.Endpoint {
		ends, err := k(n)
		if err != nil {
			t.Fatal(err)
		}
		return cluster.All(ends)
	}
}

func TestTheContractIsKept(t *testing.T) {
	runContract(t, bySystem)
	transporttest.RunPerformance(t, start(bySystem))
}

func TestGoroutineStreamsKeepTheContractToo(t *testing.T) {
	runContract(t, byGoroutines)
	transporttest.RunPerformance(t, start(byGoroutines))
}

// Package tls allocates memory for each record.
func TestEncryptedConnectionsKeepTheContractToo(t *testing.T) {
	if testing.Short() {
		t.Skip("the contract once more: what differs from streams of goroutines is no code of ours")
	}
	runContract(t, byTLS)
}

func TestARankLeavesInTheEnd(t *testing.T) {
	for name, k := range map[string]kind{"system": bySystem, "goroutines": byGoroutines, "TLS": byTLS} {
		t.Run(name, func(t *testing.T) {
			transporttest.RunLingering(t, func(t *testing.T, n int) []transport.Endpoint {
				all := start(k)(t, n)
				for _, e := range all {
					e.(*Endpoint).cfg.Linger = time.Millisecond
				}
				return all
			})
		})
	}
}

func runContract(t *testing.T, k kind) {
	transporttest.Run(t, start(k))
	transporttest.RunLost(t, func(t *testing.T, n int) []*Endpoint {
		ends, err := k(n)
		return cluster.Job(t, ends, err)
	})
}
