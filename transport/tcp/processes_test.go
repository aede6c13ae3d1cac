package tcp

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/chorale-go/chorale/internal/leaktest"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

func TestMain(m *testing.M) {
	cluster.Serve(func() cluster.Setup { return setup })
	leaktest.VerifyTestMain(m)
}

// setup is that of all jobs of processes.
var setup = cluster.Setup{Join: join}

// encryptVar has ranks encrypt their connections.
const encryptVar = "CHORALE_TEST_ENCRYPT"

// join has every rank tell all others its address.
func join(rank, size int, meet func(string) ([]string, error)) (transport.Endpoint, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addrs, err := meet(l.Addr().String())
	if err != nil {
		return nil, err
	}
	return New(Config{
		Rank: rank, Size: size, Listener: l, Encrypt: os.Getenv(encryptVar) != "",
		Lookup: func(_ context.Context, rank int) (string, error) { return addrs[rank], nil },
	})
}

// processes starts a job of n ranks.
func processes(t testing.TB, n int) *cluster.Cluster {
	t.Helper()
	return cluster.Start(t, n, setup, nil)
}

func TestAKilledRankIsLost(t *testing.T) { cluster.RunKilled(t, processes) }
