package shm

import (
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// start returns a Start for the contract suite.
func start(cfg Config) transporttest.Start {
	return func(t *testing.T, n int) []transport.Endpoint {
		ends, err := loopback(n, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return cluster.All(ends)
	}
}

func TestTheContractIsKept(t *testing.T) { runContract(t, Config{}) }

func TestTheContractIsKeptWhereNoRankReadsAnothersMemory(t *testing.T) {
	runContract(t, Config{NoCMA: true})
}

func TestARankLeavesInTheEnd(t *testing.T) {
	if !transporttest.RunLingering(t, start(Config{Linger: time.Millisecond})) {
		t.Error("everything was delivered, so that nothing was tested")
	}
}

func runContract(t *testing.T, cfg Config) {
	transporttest.Run(t, start(cfg))
	transporttest.RunPerformance(t, start(cfg))
	transporttest.RunLost(t, func(t *testing.T, n int) []*Endpoint { return crew(t, n, cfg) })
}

// skipRead skips, in short tests, a contract in which ranks read the memory of others, as they do
// in TestTheContractIsKept too.
func skipRead(t *testing.T, cfg Config) {
	if testing.Short() && !cfg.NoCMA {
		t.Skip("the contract once more")
	}
}

// withoutBuffers names the claims that need staging buffers.
var withoutBuffers = []string{
	// The copy of a tagged message that is sent by rendezvous counts at its sender, and
	// a release drops no message that was announced.
	"UnreceivedTaggedMessagesAreCounted",
	"ReleaseDropsTheTaggedMessagesOfItsContext",
}

// Every message of a step that does not fit into a cell goes by rendezvous here.
func TestTheContractIsKeptWithoutStagingBuffers(t *testing.T) {
	for name, cfg := range map[string]Config{"read": {}, "requested": {NoCMA: true}} {
		t.Run(name, func(t *testing.T) {
			skipRead(t, cfg)
			transporttest.Run(t, func(t *testing.T, n int) []transport.Endpoint {
				ends := start(cfg)(t, n)
				for _, e := range ends {
					hold(e.(*Endpoint))
				}
				return ends
			}, withoutBuffers...)
		})
	}
}
