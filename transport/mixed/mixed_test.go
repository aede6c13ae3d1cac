package mixed

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A fake is one of the two endpoints of rank 0 of three. Its methods do what the
// fields say.
type fake struct {
	transport.ProcessEndpoint
	exchange func(ctx context.Context, step transport.Step) error
	recv     func(ctx context.Context) error
	close    func() error
	ended    atomic.Bool // Abort was called
	started  atomic.Pointer[context.CancelCauseFunc]
}

func (f *fake) Rank() int { return 0 }
func (f *fake) Size() int { return 3 }

func (f *fake) Exchange(ctx context.Context, step transport.Step) error {
	return f.exchange(ctx, step)
}

func (f *fake) OnRevoke(func(uint32, *transport.PeerError)) {}
func (f *fake) Stalls() []transport.Stall                   { return nil }
func (f *fake) Revoked(uint32) error                        { return nil }

func (f *fake) Revoke(_ uint32, why error) {
	if cancel := f.started.Load(); cancel != nil {
		(*cancel)(why)
	}
}

func (f *fake) Abort(why error) {
	f.ended.Store(true)
	if cancel := f.started.Load(); cancel != nil {
		(*cancel)(why)
	}
}

// Start starts a step that ends with ctx, or with the endpoint's part.
func (f *fake) Start(ctx context.Context, step transport.Step) (transport.PendingStep, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	f.started.Store(&cancel)
	return &fakePending{func() error { return f.exchange(ctx, step) }}, nil
}

// A fakePending is a step that only Wait does.
type fakePending struct{ wait func() error }

func (p *fakePending) Poll() (moved, over bool) { return false, false }
func (p *fakePending) Wait() error              { return p.wait() }

func (f *fake) Recv(ctx context.Context, _ int, _ transport.Match, _ string, _ []byte) (transport.MessageInfo, error) {
	return transport.MessageInfo{}, f.recv(ctx)
}

// Probe says whether the endpoint's part has ended.
func (f *fake) Probe(ctx context.Context, _ int, _ transport.Match, _ bool) (transport.MessageInfo, bool, error) {
	if f.recv == nil {
		return transport.MessageInfo{}, false, nil
	}
	return transport.MessageInfo{}, false, f.recv(ctx)
}

func (f *fake) Close() error { return f.close() }

// join3 joins two fakes. Rank 1 is remote, and rank 2 local.
func join3(local, remote *fake) *Endpoint {
	return New(local, remote, func(_ context.Context, rank int) (bool, error) { return rank == 2, nil })
}

// both is a step with a local and a remote peer.
var both = transport.Step{Sends: []transport.Send{{To: []int{1, 2}}}}

func TestExchangeReturnsWhenBothEndpointsHave(t *testing.T) {
	broken := errors.New("broken")
	returned := false
	fails := func(context.Context, transport.Step) error { return broken }
	waits := func(ctx context.Context, _ transport.Step) error {
		<-ctx.Done()
		time.Sleep(10 * time.Millisecond)
		returned = true
		return transport.Cause(ctx)
	}
	for _, c := range []struct{ local, remote *fake }{
		{&fake{exchange: fails}, &fake{exchange: waits}},
		{&fake{exchange: waits}, &fake{exchange: fails}},
	} {
		returned = false
		if err := join3(c.local, c.remote).Exchange(t.Context(), both); err != broken {
			t.Errorf("got %v, want %v", err, broken)
		}
		if !returned {
			t.Error("Exchange returned while one of its endpoints used the step")
		}
		if !c.local.ended.Load() || !c.remote.ended.Load() {
			t.Error("an endpoint's part has not ended")
		}
	}
}

// A polled is an endpoint, and a step of it, which is over after some polls.
type polled struct {
	fake
	polls, left int
	early       int // how often Wait was called before the step was over
}

func (p *polled) Start(context.Context, transport.Step) (transport.PendingStep, error) {
	p.left = p.polls
	return (*polledStep)(p), nil
}

// A polledStep is the step of a polled.
type polledStep polled

func (p *polledStep) Poll() (moved, over bool) {
	p.left--
	return false, p.left <= 0
}

func (p *polledStep) Wait() error {
	if p.left > 0 {
		p.early++
	}
	return nil
}

func TestAShortStepOfBothKindsTakesNoSecondGoroutineAndNoMemory(t *testing.T) {
	local, remote := &polled{polls: 3}, &polled{polls: 3}
	e := New(local, remote, func(_ context.Context, rank int) (bool, error) { return rank == 2, nil })
	e.pollTime = time.Hour
	step, ctx := both, t.Context()
	if n := testing.AllocsPerRun(100, func() {
		if err := e.Exchange(ctx, step); err != nil {
			t.Error(err)
		}
	}); n >= 1 {
		t.Errorf("a step makes %v allocations", n)
	}
	if n := local.early + remote.early; n > 0 {
		t.Errorf("an endpoint was waited for %d times, although polling was enough", n)
	}
}

func TestTheErrorsOfBothEndpointsAreJoined(t *testing.T) {
	const first, second = "the rank is lost", "ranks differ"
	begun := make(chan struct{})
	local := &fake{exchange: func(context.Context, transport.Step) error {
		<-begun
		return errors.New(first)
	}}
	remote := &fake{exchange: func(ctx context.Context, _ transport.Step) error {
		close(begun)
		<-ctx.Done()
		return errors.New(second)
	}}
	err := join3(local, remote).Exchange(t.Context(), both)
	if err == nil || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), second) {
		t.Errorf("got %v, want both %q and %q", err, first, second)
	}
	ctx, cancel := context.WithCancel(t.Context())
	canceled := func(ctx context.Context, _ transport.Step) error {
		cancel()
		<-ctx.Done()
		return transport.Cause(ctx)
	}
	err = join3(&fake{exchange: canceled}, &fake{exchange: canceled}).Exchange(ctx, both)
	if err == nil || err.Error() != context.Canceled.Error() {
		t.Errorf("got %v, want %v once", err, context.Canceled)
	}
}

func TestAnEndedTransferEndsBothEndpoints(t *testing.T) {
	broken := errors.New("broken")
	local, remote := &fake{}, &fake{recv: func(context.Context) error { return broken }}
	e := join3(local, remote)
	if _, err := e.Recv(t.Context(), 1, transport.Match{}, "bytes", nil); err != broken {
		t.Errorf("got %v, want %v", err, broken)
	}
	if !local.ended.Load() {
		t.Error("the local endpoint's part has not ended")
	}
	if err := e.Exchange(t.Context(), both); err != broken {
		t.Errorf("afterwards: got %v, want %v", err, broken)
	}
}

func TestCloseLingersForBothEndpointsAtOnce(t *testing.T) {
	closing := make(chan struct{}, 2)
	lingers := func(peer, bytes int) func() error {
		return func() error {
			closing <- struct{}{}
			for len(closing) < 2 { // until both linger
				time.Sleep(time.Millisecond)
			}
			return &transport.UndeliveredError{Peer: peer, Bytes: bytes, Err: transport.ErrLinger}
		}
	}
	err := join3(&fake{close: lingers(2, 100)}, &fake{close: lingers(1, 11)}).Close()
	want := transport.UndeliveredError{Peer: 2, Bytes: 111, Err: transport.ErrLinger}
	var got *transport.UndeliveredError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
	done := func() error { return nil }
	if err := join3(&fake{close: done}, &fake{close: done}).Close(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAbortEndsTheLingering(t *testing.T) {
	local, remote := &fake{}, &fake{}
	lingers := func(f *fake) func() error {
		return func() error {
			for !f.ended.Load() {
				time.Sleep(time.Millisecond)
			}
			return nil
		}
	}
	local.close, remote.close = lingers(local), lingers(remote)
	e := join3(local, remote)
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	for e.ended() == nil {
		time.Sleep(time.Millisecond)
	}
	e.Abort(errors.New("enough"))
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("Close lingers on")
	}
}
