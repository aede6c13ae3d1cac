package progress

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A fake is a transport of rank 0 without any bytes: a test says what arrives. Its
// owner sleeps until something has happened to its operation.
type fake struct {
	Engine
	t      *testing.T
	queue  match.Queue // of rank 1
	wake   chan struct{}
	polled func(from int) // stands for what has arrived unseen

	atRevoke func() // is called by Revoke, if not nil

	// What the engine has called.
	owners     []*Op
	interrupts int
	rechecked  []int
	terminated []error
	revoked    []string
	expected   map[int]int
	returned   int // bytes of received messages, for whose credits it is asked
	cts        []uint32
	peerErr    error
	unlinked   bool
	peer       *TaggedPeer
	wire       Wire
}

// run runs a test of an endpoint of a job of three ranks in a bubble, in which
// synctest.Wait returns when all operations wait.
func run(t *testing.T, test func(t *testing.T, f *fake)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{t: t, wake: make(chan struct{}, 1), expected: map[int]int{}}
		f.Init(f, 0, 3)
		test(t, f)
		f.with(func() { f.Close(nil) })
		f.WaitBackground()
		if len(f.ops) > 0 || f.Started() || len(f.watches) > 0 {
			t.Errorf("%d operations, %d messages and %d watches are left", len(f.ops), len(f.messages.inProgress), len(f.watches))
		}
		for peer, n := range f.expected {
			if n != 0 {
				t.Errorf("%d operations are expected to wait for rank %d", n, peer)
			}
		}
	})
}

func (f *fake) Progress(o *Op) {
	f.owners = append(f.owners, o)
	for !o.Over() {
		f.Watch(o)
		if o.Over() {
			return
		}
		f.EnterSleep()
		<-f.wake
		f.ExitSleep()
	}
}

// Advance stands for what has arrived from rank 1.
func (f *fake) Advance() bool {
	if f.polled == nil {
		return false
	}
	f.polled(1)
	return true
}

func (f *fake) Interrupt() {
	f.interrupts++
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *fake) BeforeWait(*Op)      { f.Engine.Interrupt() }
func (f *fake) BeforeUnlock()       {}
func (f *fake) Unblock(peer int)    { f.rechecked = append(f.rechecked, peer) }
func (f *fake) Terminate(why error) { f.terminated = append(f.terminated, why); f.queue.CancelAll() }

func (f *fake) OpDone(o *Op) {
	if o.Pending() > 0 {
		f.queue.Cancel(&o.Step)
	}
}

func (f *fake) Poll(from int, _ bool) {
	if f.polled != nil {
		f.polled(from)
	}
}

// SendEager sends nothing eagerly. It looks for what has come from the peer before.
func (f *fake) SendEager(to int, _ transport.Match, _ string, _ []byte) (bool, error) {
	if f.unlinked {
		return false, ErrNoLink
	}
	f.Poll(to, false)
	return false, f.peerErr
}

func (f *fake) Settle()                            {}
func (f *fake) SendWhenRoom(*Message)              {}
func (f *fake) DropUnwritten(*Message)             {}
func (f *fake) Wire(int) (*TaggedPeer, Wire)       { return f.peer, f.wire }
func (f *fake) PeerError(int, uint32) error        { return f.peerErr }
func (f *fake) AddWaiters(from, n int)             { f.expected[from] += n }
func (f *fake) ReturnCredits(_, size int)          { f.returned += size }
func (f *fake) SendCTS(_ int, number uint32)       { f.cts = append(f.cts, number) }
func (f *fake) with(do func())                     { f.Lock(); defer f.Unlock(); do() }
func (f *fake) failed() (err error)                { f.with(func() { err = f.Err() }); return err }
func (f *fake) tag(context uint32) transport.Match { return transport.Match{Context: context, Tag: 1} }

// in returns a context of a communicator.
func in(communicator, n uint32) uint32 { return communicator<<transport.ContextBits | n }

// step is the one that receives a byte from rank 1, in a context.
func step(context uint32) transport.Step {
	return transport.Step{
		Signature: transport.Signature{Context: context, Sequence: 1, Call: "sum"},
		Recvs:     []transport.Recv{{From: 1, Into: make([]byte, 1)}},
	}
}

// exchange does a step, as endpoints do.
func (f *fake) exchange(ctx context.Context, s transport.Step) error {
	f.Lock()
	defer f.Unlock()
	if err := f.Admit(ctx, &s); err != nil {
		return err
	}
	o := f.Begin(ctx)
	defer f.Leave(o)
	f.post(o, s)
	return o.Await()
}

// start starts a step, as endpoints do.
func (f *fake) start(ctx context.Context, s transport.Step) *Op {
	f.Lock()
	defer f.Unlock()
	return f.Start(ctx, func(o *Op) { f.post(o, s) })
}

func (f *fake) post(o *Op, s transport.Step) {
	o.Start(o, match.Call{Signature: s.Signature}, s.Recvs)
	o.Add(len(s.Recvs) + 1)
	for i := range o.Recvs {
		f.queue.Post(&o.Recvs[i])
	}
	o.Complete(1)
}

// arrive has the byte for a step's receive arrive.
func (f *fake) arrive(context uint32) {
	f.with(func() {
		r := f.queue.Posted(context)
		if r == nil {
			f.t.Fatalf("nothing is received in context %d", context)
		}
		match.Land(r.Recv, []byte{1})
		f.queue.Unpost(r)
		f.queue.Complete(r)
	})
}

// eager has a tagged message of rank 1 arrive.
func (f *fake) eager(context uint32, size int) {
	f.with(func() {
		m := f.Tagged().New(size)
		m.MessageInfo = transport.MessageInfo{From: 1, Tag: 1, Size: size, Type: "bytes"}
		m.Context = context
		f.Arrived(m)
	})
}

// rts announces a rendezvous message of rank 1.
func (f *fake) rts(number uint32, size int) {
	f.with(func() {
		f.Arrived(&match.Tagged{
			MessageInfo: transport.MessageInfo{From: 1, Tag: 1, Size: size, Type: "bytes"},
			Context:     1, Rendezvous: true, Number: number,
		})
	})
}

// A call is one that has begun in a goroutine of its own.
type call chan error

// do begins a call, and returns when it waits.
func do(f func() error) call {
	c := make(call, 1)
	go func() { c <- f() }()
	synctest.Wait()
	return c
}

// ended reports whether the call has returned, and with which error.
func (c call) ended() (bool, error) {
	synctest.Wait()
	select {
	case err := <-c:
		c <- err
		return true, err
	default:
		return false, nil
	}
}

// check fails the test unless the call has returned with an error of a kind, or none.
func (c call) check(t *testing.T, what string, want error) {
	t.Helper()
	if over, err := c.ended(); !over {
		t.Errorf("%s has not returned", what)
	} else if !isError(err, want) {
		t.Errorf("%s returns %v, want %v", what, err, want)
	}
}

// waits fails the test if the call has returned.
func (c call) waits(t *testing.T, what string) {
	t.Helper()
	if over, err := c.ended(); over {
		t.Errorf("%s has returned %v", what, err)
	}
}

func (f *fake) Revoke(communicator uint32, why *transport.PeerError) {
	f.revoked = append(f.revoked, fmt.Sprintf("%d: %v", communicator, why))
	f.queue.Revoke(f.IsRevoked)
	if f.atRevoke != nil {
		f.atRevoke()
	}
}
