package transporttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// openFaulty starts a job of two naive ranks, one of them with faults.
func openFaulty(t *testing.T, rank int, f Faults) *job {
	return open(t, func(*testing.T, int) []transport.Endpoint {
		ends := newNaive(2)
		ends[rank] = Faulty(ends[rank], f)
		return ends
	}, 2)
}

func TestFailAtFailsTheExchangeForAllRanks(t *testing.T) {
	broken := errors.New("broken")
	j := openFaulty(t, 0, Faults{FailAt: 3, Err: broken})
	completed := make([]int, 2)
	errs := j.all(counting(completed), counting(completed))
	if errs[0] != broken {
		t.Errorf("got %v, want %v", errs[0], broken)
	}
	checkPeer(t, errs[1], 0, transport.ErrAborted)
	for rank, n := range completed {
		if n != 2 {
			t.Errorf("rank %d: %d exchanges completed before the third, which fails", rank, n)
		}
	}
	if err := j.ends[0].Exchange(t.Context(), transport.Step{}); err != broken {
		t.Errorf("afterwards: got %v, want %v", err, broken)
	}
}

func TestCutAtClosesTheEndpointDuringTheExchange(t *testing.T) {
	j := openFaulty(t, 1, Faults{CutAt: 3, Delay: time.Millisecond})
	completed := make([]int, 2)
	errs := j.all(counting(completed), counting(completed))
	if !errors.Is(errs[1], transport.ErrClosed) {
		t.Errorf("got %v, want %v", errs[1], transport.ErrClosed)
	}
	checkPeer(t, errs[0], 1, transport.ErrLeft)
	if err := j.ends[1].Exchange(t.Context(), transport.Step{}); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("afterwards: got %v, want %v", err, transport.ErrClosed)
	}
}

func TestFaultsConcernNothingButExchange(t *testing.T) {
	broken := errors.New("broken")
	j := openFaulty(t, 0, Faults{FailAt: 2, Err: broken, Delay: time.Hour}) // a delayed call would not return
	e := j.ends[0]
	for i := range 5 {
		if err := errors.Join(
			sendTagged(j.ctx, e, 0, match, tagged(i, 10)),
			recvTagged(j.ctx, e, 0, match, tagged(i, 10)),
		); err != nil {
			t.Fatal(err)
		}
	}
	if info, found, err := e.Probe(j.ctx, 0, match, false); found || err != nil {
		t.Errorf("Probe: got %+v, %v, %v", info, found, err)
	}
	go send(j.ctx, j.ends[1], sig, 0, nil)
	j.untilArrived(e)
	e.Release(sig.Context)
	if err := e.CheckUnreceived(); err != nil {
		t.Errorf("after Release: got %v", err)
	}
	e.(*faulty).faults.Delay = 0
	for _, want := range []error{nil, broken} {
		if err := e.Exchange(j.ctx, transport.Step{Signature: sig}); err != want {
			t.Errorf("Exchange: got %v, want %v", err, want)
		}
	}
}

// counting swaps messages with the other rank until an Exchange fails, and counts
// those that complete.
func counting(completed []int) rankFunc {
	return func(ctx context.Context, e transport.Endpoint) error {
		for {
			if err := swap(ctx, e, sig, 1-e.Rank()); err != nil {
				return err
			}
			completed[e.Rank()]++
		}
	}
}
