package tcp

import (
	"context"
	"net/netip"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/transport"
)

// Loopback makes the n endpoints of a job whose ranks all live in this process,
// connected through 127.0.0.1. It is for tests and for comparison: goroutines
// talk faster through package inproc.
func Loopback(n int) ([]*Endpoint, error) {
	return loopback(n, Config{}, newPoller)
}

func loopback(n int, cfg Config, poller func([]*link) (poller, error)) ([]*Endpoint, error) {
	cfg.Secret = proof.NewSecret()
	ends := make([]*Endpoint, n)
	addrs := make([]string, n)
	lookup := func(_ context.Context, rank int) (string, error) {
		if ends[rank].hasClosed() {
			return "", transport.ErrLeft
		}
		return addrs[rank], nil
	}
	for rank := range ends {
		l, err := network.Listen([]netip.Addr{netip.MustParseAddr("127.0.0.1")}, 0)
		if err == nil {
			addrs[rank] = l.Addr().String()
			cfg.Rank, cfg.Size, cfg.Listener, cfg.Lookup = rank, n, l, lookup
			ends[rank], err = newEndpoint(cfg, poller)
		}
		if err != nil {
			for _, e := range ends[:rank] {
				e.Close()
			}
			return nil, err
		}
	}
	return ends, nil
}

func (e *Endpoint) hasClosed() bool {
	e.engine.Lock()
	defer e.engine.Unlock()
	return e.engine.Closed()
}
