package progress

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A Transport moves the bytes for an engine. Its methods are called with the
// engine's lock held.
type Transport interface {
	// Progress makes progress for all operations until op is over. Its goroutine is
	// the progress owner. Progress may release the lock while it waits.
	Progress(op *Op)
	// Advance makes progress for all operations without waiting, and reports whether
	// something has moved. There is no progress owner.
	Advance() (moved bool)
	// Interrupt wakes the progress owner, which sleeps in the kernel.
	Interrupt()
	// BeforeWait is called before an operation begins to wait, also if it is over
	// already. It polls the links again for which something has changed, and interrupts
	// an owner that sleeps for other things than the operation waits for.
	BeforeWait(op *Op)
	// BeforeUnlock wakes the peers that must know what was done under the lock.
	BeforeUnlock()
	// Unblock polls the next message of a peer again soon, because a receive from the
	// peer is no longer held back.
	Unblock(peer int)
	// Terminate tells every peer why this endpoint's part in the job has ended, and
	// drops everything that is in progress.
	Terminate(why error)
	// Revoke drops what is in progress in the contexts of a communicator, but for the
	// resilient one, and tells its other ranks why ([Engine.Told], [AppendRevocation]);
	// those to which there is no link are told as soon as there is one. What has arrived
	// in these contexts, or arrives later ([Engine.IsRevoked], [match.Drop]), is dropped.
	// Steps have ended when Revoke is called, and tagged messages end when it has
	// returned: no peer receives what their callers write to their memory from then on.
	Revoke(communicator uint32, why *transport.PeerError)
	// OpDone notes that an operation has left. It removes what there still is of a
	// step that was not completed.
	OpDone(op *Op)

	// Poll takes what has arrived from a rank, or from any, without waiting. Waits
	// says that Await comes next if that brings no match.
	Poll(from int, waits bool)
	// Settle does what had to be left while frames were taken.
	Settle()
	// PeerError returns why no tagged message comes any more from a rank, or nil.
	// From any, that is when one of the context's communicator is lost or gave up, or all
	// have left.
	PeerError(from int, context uint32) error
	// AddWaiters adds n to the number of operations that wait for tagged messages from
	// a rank, or from any, or for the transfer of one.
	AddWaiters(from, n int)
	// ReturnCredits returns credits to a peer. It may be called while frames are taken.
	ReturnCredits(peer, n int)
	// SendCTS asks a peer for the contents of a rendezvous message. It may be called
	// while frames are taken.
	SendCTS(peer int, number uint32)
	// SendEager sends a tagged message eagerly, or returns false if it is to go by
	// rendezvous, or an error. ErrNoLink says that the message waits for LinkUp, and
	// ErrNoRoom that SendWhenRoom is to send it.
	SendEager(to int, m transport.Match, typeName string, data []byte) (sent bool, err error)
	// SendWhenRoom sends an eager message when there is room for it, and calls Written.
	SendWhenRoom(m *Message)
	// DropUnwritten undoes SendWhenRoom, unless Written was called.
	DropUnwritten(m *Message)
	// Wire returns what writes the frames of rendezvous messages to a peer.
	Wire(peer int) (*TaggedPeer, Wire)
}

// An Engine runs the operations of one endpoint. Its lock guards its other fields, and
// the links of the endpoint.
type Engine struct {
	Rank, Size int
	Entering   atomic.Int32 // goroutines that wait for the lock

	transport  Transport
	mu         sync.Mutex
	end        ending
	ops        []*Op // in progress
	begun      uint64
	spare      []*Op
	owner      ownership
	watches    []watch
	tagged     match.TaggedQueue
	messages   messages
	own        match.Credits // for messages of this rank to itself
	background sync.WaitGroup

	failing       bool // operations fail: in some contexts, or in all
	communicators communicators
	together      bool // a communicator that is revoked takes the endpoint with it
}

// An ending says whether and why the endpoint's part in the job has ended.
type ending struct {
	leaving   bool  // Close was called
	closed    bool  // and what was sent is delivered, or given up
	abandoned error // of an Abort since
	err       error
	last      transport.Signature // the last call in the context of all ranks
	left      sync.Cond           // an operation has left
}

// An ownership says whether an operation is the progress owner.
type ownership struct {
	taken  bool
	asleep bool // the owner sleeps in the kernel, without the lock
}

// Init makes the engine ready for the transport that contains it.
func (e *Engine) Init(t Transport, rank, size int) {
	e.transport, e.Rank, e.Size = t, rank, size
	e.end.left.L = &e.mu
}

// FailTogether makes the failure of one communicator that of the endpoint, for a transport
// that cannot keep it from the others.
func (e *Engine) FailTogether() { e.together = true }

// Lock takes the lock. A progress owner that spins sees in Entering that a goroutine
// waits for it.
func (e *Engine) Lock() {
	if e.mu.TryLock() {
		return
	}
	e.Entering.Add(1)
	e.mu.Lock()
	e.Entering.Add(-1)
}

// Unlock releases the lock.
func (e *Engine) Unlock() {
	e.transport.BeforeUnlock()
	e.mu.Unlock()
}

// UnlockNow releases the lock for a transport that has done what BeforeUnlock does.
func (e *Engine) UnlockNow() { e.mu.Unlock() }

// Err returns why this endpoint's part in the job has ended, or nil.
func (e *Engine) Err() error {
	if e.end.leaving {
		return transport.ErrClosed
	}
	return e.end.err
}

// ErrIn returns why operations in a context fail, or nil.
func (e *Engine) ErrIn(context uint32) error {
	if e.failing { // small enough to be inlined
		return e.errIn(context)
	}
	return nil
}

func (e *Engine) errIn(context uint32) error {
	if err := e.Err(); err != nil {
		return err
	}
	return e.revokedIn(context)
}

// Failed reports whether this endpoint's part in the job has ended.
func (e *Engine) Failed() bool { return e.end.err != nil }

// Cause returns why this endpoint's part in the job has ended, also while it leaves, or
// nil.
func (e *Engine) Cause() error { return e.end.err }

// Closed reports whether the endpoint is closed: it no longer lingers.
func (e *Engine) Closed() bool { return e.end.closed }

// Abandoned returns why nothing is to be waited for: the error of an Abort since the
// endpoint is closed. It returns nil if there was none.
func (e *Engine) Abandoned() error { return e.end.abandoned }

// Ops returns the operations in progress.
func (e *Engine) Ops() []*Op { return e.ops }

// Abort implements [transport.Endpoint].
func (e *Engine) Abort(why error) {
	e.Lock()
	defer e.Unlock()
	if e.end.closed {
		e.end.abandoned = cmp.Or(e.end.abandoned, why)
		return
	}
	e.Fail(why)
}

// Admit checks a step before anything of it is started. An error ends the
// endpoint's part in the job.
func (e *Engine) Admit(ctx context.Context, step *transport.Step) error {
	if e.end.leaving {
		return transport.ErrClosed
	}
	if e.end.err == nil {
		if e.failing {
			if err := e.revokedIn(step.Signature.Context); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			err := transport.Cause(ctx)
			e.RevokeLocked(transport.Communicator(step.Signature.Context), err)
			return err
		}
		if err := e.validate(step); err != nil {
			e.Fail(err)
		}
	}
	if e.end.err == nil && step.Signature.Context == 0 {
		e.end.last = step.Signature
	}
	return e.end.err
}

func (e *Engine) validate(step *transport.Step) error {
	if len(e.ops) > 0 && e.StepIn(step.Signature.Context) != nil {
		return transport.ErrTwoSteps
	}
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if !e.IsPeer(to) {
				return e.rankError(to)
			}
		}
	}
	for i := range step.Recvs {
		if from := step.Recvs[i].From; !e.IsPeer(from) {
			return e.rankError(from)
		}
	}
	return nil
}

// IsPeer reports whether there is a rank of that number beside this one.
func (e *Engine) IsPeer(rank int) bool { return 0 <= rank && rank < e.Size && rank != e.Rank }

func (e *Engine) rankError(rank int) error {
	return &transport.RankError{Peer: rank, Rank: e.Rank, Size: e.Size}
}

// StepIn implements [match.Steps].
func (e *Engine) StepIn(context uint32) *match.Step {
	for _, o := range e.ops {
		if !o.over && o.kind == stepOp && o.Context == context {
			return &o.Step
		}
	}
	return nil
}

// Steps calls f for the steps in progress, as long as none of them fails the
// endpoint.
func (e *Engine) Steps(f func(o *Op)) {
	for _, o := range e.ops {
		if e.end.err == nil && !o.over && o.kind == stepOp {
			f(o)
		}
	}
}

// Fail ends this endpoint's part in the job: every peer is told why, and every
// operation in progress returns err.
func (e *Engine) Fail(err error) {
	if e.end.err != nil {
		return
	}
	e.end.err, e.failing = err, true
	e.transport.Terminate(err)
	e.finishEach(err, func(*Message) bool { return true })
	for _, o := range e.ops {
		o.Finish(err)
	}
	e.Interrupt()
}

// FailMismatch fails the endpoint because a peer is in another call than a step of
// this rank.
func (e *Engine) FailMismatch(s *match.Step, peer int, theirs transport.Signature) {
	e.Fail(&transport.MismatchError{Rank: e.Rank, Peer: peer, Mine: s.Signature, Theirs: theirs})
}

// FailSize fails the endpoint because a message is not as long as its receive.
func (e *Engine) FailSize(r *match.Recv, size int) {
	e.Fail(&transport.SizeError{Peer: r.From, Got: size, Want: len(r.Into)})
}

// Refuse fails the endpoint if a verdict says that a message of a peer contradicts the
// step, or the receive, of this rank. It reports whether that is so.
func (e *Engine) Refuse(v match.Verdict, peer int, h *match.Header, r *match.Recv, s *match.Step) bool {
	switch v {
	case match.Mismatch:
		e.FailMismatch(s, peer, h.Signature)
	case match.WrongSize:
		e.FailSize(r, h.Size)
	default:
		return false
	}
	return true
}

// Go runs f in a goroutine of the endpoint, with the lock held.
func (e *Engine) Go(f func()) {
	e.background.Go(func() {
		e.Lock()
		defer e.Unlock()
		f()
	})
}

// GoUnlocked runs f in a goroutine of the endpoint, without the lock.
func (e *Engine) GoUnlocked(f func()) { e.background.Go(f) }

// WaitBackground returns when the goroutines of the endpoint have ended. The lock
// is not held.
func (e *Engine) WaitBackground() { e.background.Wait() }

// Interrupt wakes the progress owner if it sleeps in the kernel.
func (e *Engine) Interrupt() {
	if e.owner.asleep {
		e.owner.asleep = false
		e.transport.Interrupt()
	}
}

// Owned reports whether an operation is the progress owner.
func (e *Engine) Owned() bool { return e.owner.taken }

// Asleep reports whether the progress owner sleeps in the kernel.
func (e *Engine) Asleep() bool { return e.owner.asleep }

// EnterSleep releases the lock for the progress owner, which goes to sleep in the
// kernel. ExitSleep takes it back.
func (e *Engine) EnterSleep() {
	e.owner.asleep = true
	e.Unlock()
}

// ExitSleep takes the lock back after EnterSleep.
func (e *Engine) ExitSleep() {
	e.Lock()
	e.owner.asleep = false
}

// A watch is a context whose end is noticed while an operation uses it. It stays
// for the next operation, which mostly has the same context.
type watch struct {
	done <-chan struct{}
	stop func() bool
}

const watchesMax = 8

// Watch has the end of the operation's context noticed while its goroutine sleeps.
func (e *Engine) Watch(o *Op) {
	if o.done == nil {
		return
	}
	for i := range e.watches {
		if e.watches[i].done == o.done {
			return
		}
	}
	if len(e.watches) >= watchesMax {
		e.watches = slices.DeleteFunc(e.watches, func(w watch) bool {
			unused := !e.uses(w.done)
			if unused {
				w.stop()
			}
			return unused
		})
	}
	ctx, done := o.ctx, o.done
	stop := context.AfterFunc(ctx, func() {
		e.Lock()
		defer e.Unlock()
		e.watches = slices.DeleteFunc(e.watches, func(w watch) bool { return w.done == done })
		e.expire(ctx, done)
	})
	e.watches = append(e.watches, watch{done, stop})
}

// uses reports whether an operation in progress has the context with this Done
// channel.
func (e *Engine) uses(done <-chan struct{}) bool {
	return slices.ContainsFunc(e.ops, func(o *Op) bool { return !o.over && o.done == done })
}

// CheckContext ends the operations that use the context of o, if it has ended.
func (e *Engine) CheckContext(o *Op) {
	select {
	case <-o.done:
		e.expire(o.ctx, o.done)
	default:
	}
}

// expire ends the operations whose context has this Done channel. A step takes its
// communicator with it; so does a tagged message whose transfer has begun.
func (e *Engine) expire(ctx context.Context, done <-chan struct{}) {
	err := transport.Cause(ctx)
	for {
		i := slices.IndexFunc(e.messages.inProgress, func(m *Message) bool { return m.ctx.Done() == done && m.committed() })
		if i < 0 {
			break
		}
		context := e.messages.inProgress[i].pattern.Context
		if transport.Resilient(context) {
			e.Fail(err)
			return
		}
		e.RevokeLocked(transport.Communicator(context), err)
	}
	e.finishEach(err, func(m *Message) bool { return m.ctx.Done() == done })
	for _, o := range e.ops {
		switch {
		case o.over || o.done != done || o.kind == messageOp:
		case o.kind != stepOp:
			o.Finish(err)
		default:
			e.RevokeLocked(transport.Communicator(o.Context), err)
		}
	}
}

// leftReason is the reason that a rank gives when it leaves.
func (e *Engine) leftReason() string {
	if e.end.last.Call == "" {
		return ""
	}
	return fmt.Sprintf("its last call was call %d, %q", e.end.last.Sequence, e.end.last.Call)
}
