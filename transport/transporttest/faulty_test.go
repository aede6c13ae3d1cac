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
	// Rank 1 may hear of the failure before it has received the second message.
	if completed[0] != 2 || completed[1] < 1 || completed[1] > 2 {
		t.Errorf("%d exchanges completed before the third, which fails", completed)
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

// operations are the operations of an endpoint that are about rank 0, by name. None of
// them waits for another rank.
var operations = map[string]rankFunc{
	"Exchange": func(ctx context.Context, e transport.Endpoint) error {
		return e.Exchange(ctx, transport.Step{Signature: sig})
	},
	"Send": func(ctx context.Context, e transport.Endpoint) error {
		return sendTagged(ctx, e, 0, match, tagged(1, 10))
	},
	"Recv": func(ctx context.Context, e transport.Endpoint) error {
		_, err := e.Recv(ctx, 0, match, "another type", nil)
		if wrongType := new(transport.TypeError); errors.As(err, &wrongType) {
			return nil
		}
		return err
	},
	"TryRecv": func(ctx context.Context, e transport.Endpoint) error {
		_, _, err := e.TryRecv(ctx, 1, match, "bytes", nil)
		return err
	},
	"Probe": func(ctx context.Context, e transport.Endpoint) error {
		_, _, err := e.Probe(ctx, 0, match, true)
		return err
	},
}

func TestFailAtFailsEveryKindOfOperation(t *testing.T) {
	broken := errors.New("broken")
	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			j := openFaulty(t, 0, Faults{FailAt: 3, Err: broken})
			e := j.ends[0]
			if err := sendTagged(j.ctx, e, 0, match, tagged(1, 10)); err != nil {
				t.Fatal(err)
			}
			e.CheckUnreceived() // these are no operations
			e.Release(sig.Context)
			e.Held()
			for _, want := range []error{nil, broken, broken} {
				if err := operation(j.ctx, e); err != want {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			for other, operation := range operations {
				if err := operation(j.ctx, e); err != broken {
					t.Errorf("%s afterwards: got %v, want %v", other, err, broken)
				}
			}
			checkReason(t, recvTagged(j.ctx, j.ends[1], transport.Any, match, nil), 0, transport.ErrAborted, broken.Error())
		})
	}
}

func TestCutAtClosesTheEndpointWhileATaggedMessageIsAwaited(t *testing.T) {
	j := openFaulty(t, 1, Faults{CutAt: 2, Delay: time.Millisecond})
	e := j.ends[1]
	if err := sendTagged(j.ctx, e, 0, match, tagged(1, 10)); err != nil {
		t.Fatal(err)
	}
	if err := recvTagged(j.ctx, e, 0, match, nil); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("got %v, want %v", err, transport.ErrClosed)
	}
	if err := recvTagged(j.ctx, j.ends[0], 1, match, tagged(1, 10)); err != nil {
		t.Errorf("what was sent before: %v", err)
	}
	checkPeer(t, recvTagged(j.ctx, j.ends[0], 1, match, nil), 1, transport.ErrLeft)
}

func TestADelayEndsWithTheContextOfItsOperation(t *testing.T) {
	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			j := openFaulty(t, 0, Faults{Delay: time.Hour})
			ctx, cancel := context.WithCancel(j.ctx)
			cancel()
			ended := make(chan error, 1)
			go func() { ended <- operation(ctx, j.ends[0]) }()
			select {
			case <-ended:
			case <-j.ctx.Done():
				t.Error("the delay does not end")
			}
		})
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
