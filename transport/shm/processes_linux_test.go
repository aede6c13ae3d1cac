package shm

import (
	"flag"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/chorale-go/chorale/internal/leaktest"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// noCMAVar is set for ranks without cross-memory attach.
const noCMAVar = "CHORALE_SHM_TEST_NO_CMA"

func TestMain(m *testing.M) {
	arenaLimit = 128 << 20
	cluster.Serve(func() cluster.Setup {
		return setup(os.NewFile(3, "memory"), os.Getenv(noCMAVar) != "")
	})
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() == "" {
		flag.Set("test.parallel", "6") // jobs in which ranks are killed mostly wait
	}
	leaktest.VerifyTestMain(m)
}

// setup has the ranks of a job share a memory.
func setup(memory *os.File, noCMA bool) cluster.Setup {
	return cluster.Setup{
		Join: func(rank, size int, meet func(string) ([]string, error)) (transport.Endpoint, error) {
			e, err := New(Config{Rank: rank, Size: size, Memory: memory, NoCMA: noCMA})
			if err != nil {
				return nil, err
			}
			_, err = meet("joined")
			return e, err
		},
		Patterns: map[string]cluster.Pattern{"line": line},
	}
}

// processes starts a job of n ranks.
func processes(t testing.TB, n int) *cluster.Cluster { return startCluster(t, n, false) }

func startCluster(t testing.TB, n int, noCMA bool) *cluster.Cluster {
	t.Helper()
	memory, err := NewMemory(n, [16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	var env []string
	if noCMA {
		env = []string{noCMAVar + "=1"}
	}
	return cluster.Start(t, n, setup(memory, noCMA), []*os.File{memory}, env...)
}

func TestAKilledRankIsLost(t *testing.T) { cluster.RunKilled(t, processes) }

func TestAStoppedRankIsWaitedFor(t *testing.T) {
	t.Parallel() // it sleeps
	cluster.RunStopped(t, processes)
}

// line has every rank write a word of its own line, and wait for all the others',
// in the bare memory: what an exchange takes at least. Where ranks share cores,
// it yields as soon as it may.
func line(p *cluster.Rank, rounds int) error {
	e := p.Endpoint.(*Endpoint)
	words := make([]*atomic.Uint64, e.Size())
	for rank := range words {
		words[rank] = (*atomic.Uint64)(unsafe.Pointer(&e.seg.staging(rank, e.seg.buffers-1)[0])) // not in use
	}
	looksMost := 3000
	if e.wait.Oversubscribed {
		looksMost = 20
	}
	own := words[e.Rank()]
	return p.Repeat(rounds, func() error {
		lines := own.Add(1)
		for _, theirs := range words {
			for looks := 0; theirs.Load() < lines; looks++ {
				if looks > looksMost {
					yield()
				}
			}
		}
		return nil
	})
}
