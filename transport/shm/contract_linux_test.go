package shm

import (
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// start returns a Start for the contract suite.
func start(cfg Config) transporttest.Start {
	return func(t *testing.T, n int) []transport.Endpoint {
		ends, err := loopback(n, cfg)
		if err != nil {
			t.Fatal(err)
		}
		all := make([]transport.Endpoint, n)
		for i, e := range ends {
			all[i] = e
		}
		return all
	}
}

func TestTheContractIsKept(t *testing.T) {
	transporttest.Run(t, start(Config{}))
}

func TestTheContractIsKeptWhereNoRankReadsAnothersMemory(t *testing.T) {
	transporttest.Run(t, start(Config{Apart: true}))
}

func TestLettersAreCarried(t *testing.T) {
	transporttest.RunMail(t, start(Config{}))
}
