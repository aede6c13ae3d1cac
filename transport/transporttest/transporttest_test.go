package transporttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

func TestTheContractCanBeKept(t *testing.T) {
	Run(t, func(t *testing.T, n int) []transport.Endpoint { return newNaive(n) })
}

func TestTheContractHoldsInEveryOrderOfEvents(t *testing.T) {
	var seed uint64
	Run(t, func(t *testing.T, n int) []transport.Endpoint {
		seed++
		return wrap(newNaive(n), Faults{Seed: seed, Delay: 20 * time.Microsecond, Shuffle: true})
	})
}

func wrap(ends []transport.Endpoint, f Faults) []transport.Endpoint {
	for i := range ends {
		ends[i] = Faulty(ends[i], f)
	}
	return ends
}

func TestTheExchangeToFailFailsForEverybody(t *testing.T) {
	broken := errors.New("broken")
	ends := newNaive(2)
	ends[0] = Faulty(ends[0], Faults{FailAt: 3, Err: broken})
	start := func(*testing.T, int) []transport.Endpoint { return ends }
	completed := make([]int, 2)
	errs := open(t, start, 2).all(counting(completed), counting(completed))
	if errs[0] != broken {
		t.Errorf("got %v, want %v", errs[0], broken)
	}
	checkPeer(t, errs[1], 0, transport.ErrAborted)
	for rank, n := range completed {
		if n != 2 {
			t.Errorf("rank %d: %d exchanges completed before the third was to fail", rank, n)
		}
	}
	if err := ends[0].Exchange(t.Context(), transport.Step{}); err != broken {
		t.Errorf("afterwards: got %v, want %v", err, broken)
	}
}

func TestTheExchangeToCutFindsItsEndpointClosed(t *testing.T) {
	start := func(*testing.T, int) []transport.Endpoint {
		return wrap(newNaive(2), Faults{CutAt: 3, Delay: time.Millisecond})
	}
	ends := start(t, 2)
	cut := ends[1]
	ends[0] = ends[0].(*faulty).Endpoint // only rank 1 is cut
	completed := make([]int, 2)
	errs := open(t, func(*testing.T, int) []transport.Endpoint { return ends }, 2).all(counting(completed), counting(completed))
	if !errors.Is(errs[1], transport.ErrClosed) {
		t.Errorf("got %v, want %v", errs[1], transport.ErrClosed)
	}
	checkPeer(t, errs[0], 1, transport.ErrLeft)
	if err := cut.Exchange(t.Context(), transport.Step{}); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("afterwards: got %v, want %v", err, transport.ErrClosed)
	}
}

// counting swaps bytes with the other rank until an exchange fails, and counts
// those that complete.
func counting(completed []int) part {
	return func(ctx context.Context, e transport.Endpoint) error {
		for {
			if err := swap(ctx, e, sig, 1-e.Rank()); err != nil {
				return err
			}
			completed[e.Rank()]++
		}
	}
}
