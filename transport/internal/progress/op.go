package progress

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A kind says what an operation waits for.
type kind uint8

const (
	stepOp    kind = iota // until every message of a step is complete
	probeOp               // until a tagged message that matches a pattern is queued
	messageOp             // until a tagged message in progress is done
	flushOp               // until everything that was queued is written
)

// An Op is an operation in progress: an Exchange, or a wait of the tagged-message
// protocol. A goroutine waits in it.
type Op struct {
	match.Step // of an Exchange

	engine  *Engine
	number  uint64 // of those of the engine
	kind    kind
	pending int // messages that are not complete
	over    bool
	awaited bool // Await has returned, not panicked
	err     error

	ctx     context.Context
	done    <-chan struct{} // ctx.Done()
	waiter  waiter
	subject subject
}

// A waiter is the goroutine of an operation.
type waiter struct {
	owner    bool          // it is the progress owner
	sleeping bool          // it waits for wake
	wake     chan struct{} // a token: the operation is over, or is to own progress
}

// A subject is what an operation that is no step is about.
type subject struct {
	pattern match.Pattern // of a probeOp
	message *Message      // of a messageOp
}

// Begin begins an operation.
func (e *Engine) Begin(ctx context.Context) *Op { return e.begin(ctx, stepOp) }

func (e *Engine) begin(ctx context.Context, k kind) *Op {
	var o *Op
	if n := len(e.spare); n > 0 {
		o, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		o = &Op{engine: e, waiter: waiter{wake: make(chan struct{}, 1)}}
	}
	e.begun++
	o.number, o.kind = e.begun, k
	o.ctx, o.done = ctx, ctx.Done()
	e.ops = append(e.ops, o)
	return o
}

// Await returns when the operation is over. The operation is live in it to the end, so that
// the stack of its goroutine shows its address: see [transport.Stall].
//
//go:noinline
func (o *Op) Await() error {
	e := o.engine
	e.transport.BeforeWait(o)
	for !o.over {
		if !e.owner.taken {
			e.owner.taken, o.waiter.owner = true, true
			e.transport.Progress(o)
			e.owner.taken, o.waiter.owner = false, false
			break
		}
		e.Watch(o)
		if o.over {
			break
		}
		o.waiter.sleeping = true
		e.Unlock()
		<-o.waiter.wake
		e.Lock()
		o.waiter.sleeping = false
	}
	o.awaited = true
	return o.err
}

// Over reports whether the operation is over.
func (o *Op) Over() bool { return o.over }

// Pending returns the number of messages of the step that are not complete.
func (o *Op) Pending() int { return o.pending }

// Add notes that n more messages of the step are to be completed.
func (o *Op) Add(n int) { o.pending += n }

// Complete implements [match.Operation].
func (o *Op) Complete(n int) {
	if o.pending -= n; o.pending == 0 {
		o.Finish(nil)
	}
}

// Unblock implements [match.Operation].
func (o *Op) Unblock(peer int) { o.engine.transport.Unblock(peer) }

// Finish ends the operation.
func (o *Op) Finish(err error) {
	if o.over {
		return
	}
	o.over, o.err = true, err
	if o.waiter.owner {
		o.engine.Interrupt()
	}
	o.wakeUp()
}

// wakeUp wakes the operation's goroutine if it sleeps.
func (o *Op) wakeUp() {
	if o.waiter.sleeping {
		select {
		case o.waiter.wake <- struct{}{}:
		default:
		}
	}
}

// Leave ends the use of an operation and of the caller's memory, and hands the
// progress to another operation that waits. It is deferred: an operation whose Await has
// not returned then has panicked, maybe in a Combine of another one.
func (e *Engine) Leave(o *Op) {
	if !o.awaited {
		e.Fail(transport.ErrPanicked)
	}
	if o.waiter.owner {
		e.owner.taken = false
	}
	n := len(e.ops) - 1
	if i := slices.Index(e.ops, o); i < n {
		e.ops[i] = e.ops[n]
	}
	e.ops[n] = nil
	e.ops = e.ops[:n]
	e.transport.OpDone(o)
	o.reset()
	e.spare = append(e.spare, o)
	if !e.owner.taken {
		for _, next := range e.ops {
			if !next.over && next.waiter.sleeping { // the others own progress when they wait
				next.wakeUp()
				break
			}
		}
	}
	if e.end.closed {
		e.end.left.Broadcast()
	}
}

// reset makes the operation ready for its next use.
func (o *Op) reset() {
	select {
	case <-o.waiter.wake:
	default:
	}
	o.Step.Reset()
	o.kind, o.pending, o.over, o.awaited, o.err = stepOp, 0, false, false, nil
	o.ctx, o.done = nil, nil
	o.waiter.owner, o.waiter.sleeping = false, false
	o.subject = subject{}
}

// Guard runs f, which takes what peers have sent although the caller has no operation
// that would leave. If a Combine of a step in progress panics there, the endpoint fails.
func (e *Engine) Guard(f func()) {
	returned := false
	defer func() {
		if !returned {
			e.Fail(transport.ErrPanicked)
		}
	}()
	f()
	returned = true
}

// AwaitFlush returns when Flushed is called, or ctx ends.
func (e *Engine) AwaitFlush(ctx context.Context) error {
	o := e.begin(ctx, flushOp)
	defer e.Leave(o)
	return o.Await()
}

// Flushing reports whether an operation waits for Flushed.
func (e *Engine) Flushing() bool {
	return slices.ContainsFunc(e.ops, func(o *Op) bool { return o.kind == flushOp && !o.over })
}

// Flushed notes that everything that was queued is written.
func (e *Engine) Flushed() {
	for _, o := range e.ops {
		if o.kind == flushOp {
			o.Finish(nil)
		}
	}
}

// PeerGone ends the messages on their way from or to a peer that has gone: its
// rendezvous messages are lost, and no message to it is received any more. The
// goroutines that wait for other messages of the peer look what has become of it. Unless
// the peer has left, the communicators that it belongs to are revoked. The endpoint fails
// if why says that the peer was in another call than a step in progress here.
func (e *Engine) PeerGone(peer int, why error) {
	e.HearMismatch(why)
	e.tagged.Lose(peer)
	e.finishEach(why, func(m *Message) bool { return m.peer == peer && m.phase != posted })
	for _, o := range e.ops {
		var from int
		switch o.kind {
		case probeOp:
			from = o.subject.pattern.From
		case messageOp:
			if o.over || o.subject.message.phase != posted {
				continue
			}
			from = o.subject.message.pattern.From
		default:
			continue
		}
		if from == peer || from == transport.Any {
			o.Finish(nil)
		}
	}
	e.losePeer(peer, why)
}

// StartFlusher starts an operation that waits for Flushed, in a goroutine of the
// endpoint, unless there is one: what was queued is written also while no goroutine of
// the program waits.
func (e *Engine) StartFlusher() {
	if e.Flushing() {
		return
	}
	o := e.begin(context.Background(), flushOp)
	e.Go(func() {
		defer e.Leave(o)
		o.Await()
	})
}
