package tcp

import (
	"context"
	"errors"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// An op is an Exchange in progress.
type op struct {
	e      *Endpoint
	sig    transport.Signature
	ctx    context.Context
	ended  <-chan struct{} // ctx.Done()
	parts  int             // messages that are not complete
	recvs  []recv
	turn   int // the first receive that is not complete
	over   bool
	err    error
	errand               // what it waits for if it is no Exchange
	drain  bool          // over when every last word is written
	drive  bool          // this op's goroutine drives the endpoint
	wake   chan struct{} // rung when over, or when it is this op's turn to drive
}

// A recv is a receive of an op.
type recv struct {
	transport.Recv
	op    *op
	got   int  // bytes that have landed
	held  bool // not in turn yet
	done  bool
	asked bool // the peer knows that it is waited for
}

var (
	errPanicked = errors.New("a Combine panicked")
	errTwoSteps = errors.New("two steps of one context at a time")
)

// begin makes an op.
func (e *Endpoint) begin(ctx context.Context, step transport.Step) *op {
	var o *op
	if n := len(e.spare); n > 0 {
		o, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		o = &op{e: e, wake: make(chan struct{}, 1)}
	}
	o.sig, o.ctx, o.ended = step.Signature, ctx, ctx.Done()
	e.ops = append(e.ops, o)
	return o
}

// start posts every receive and sends what the sockets take.
func (e *Endpoint) start(o *op, step transport.Step) {
	o.parts = len(step.Recvs)
	for i := range step.Sends {
		o.parts += len(step.Sends[i].To)
	}
	if o.parts == 0 {
		o.finish(nil)
		return
	}
	for i, r := range step.Recvs {
		o.recvs = append(o.recvs, recv{Recv: r, op: o, held: r.Ordered && i > 0})
	}
	for i := range o.recvs {
		l := e.dialled(o.recvs[i].From)
		l.posted = append(l.posted, &o.recvs[i])
		e.lookAgain(l)
	}
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			l := e.dialled(to)
			l.queue = append(l.queue, outgoing{op: o, data: step.Sends[i].Data})
		}
	}
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if o.over {
				return
			}
			e.links[to].push()
		}
	}
}

// settle looks once more at the links for which something has changed: a
// receive is new, or its turn has come.
func (e *Endpoint) settle() {
	for len(e.again) > 0 {
		l := e.again[len(e.again)-1]
		e.again = e.again[:len(e.again)-1]
		l.again = false
		if e.err == nil {
			l.reconsider()
		}
	}
}

func (e *Endpoint) lookAgain(l *link) {
	if !l.again {
		l.again = true
		e.again = append(e.again, l)
	}
	e.watchOver(l)
}

// part notes that one message of o is complete.
func (o *op) part() {
	if o.parts--; o.parts == 0 {
		o.finish(nil)
	}
}

func (o *op) finish(err error) {
	if o.over {
		return
	}
	o.over, o.err = true, err
	if o.drive {
		o.e.nudge()
	}
	o.ring()
}

// ring wakes the op's goroutine if it sleeps.
func (o *op) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// complete notes that r has landed, and lets the next one in turn go on.
func (r *recv) complete(e *Endpoint) {
	o := r.op
	r.done = true
	for o.turn < len(o.recvs) && o.recvs[o.turn].done {
		o.turn++
	}
	if o.turn < len(o.recvs) {
		if next := &o.recvs[o.turn]; next.held {
			next.held = false
			e.lookAgain(e.links[next.From])
		}
	}
	o.part()
}

// leave ends an op, lets go of the caller's memory, and leaves the driving to
// another op.
func (e *Endpoint) leave(o *op) {
	if !o.over { // a Combine has panicked
		e.fail(errPanicked)
	}
	if o.drive {
		e.driven = false
	}
	i := slices.Index(e.ops, o)
	last := len(e.ops) - 1
	e.ops[i], e.ops[last] = e.ops[last], nil
	e.ops = e.ops[:last]
	select {
	case <-o.wake:
	default:
	}
	clear(o.recvs)
	*o = op{e: e, recvs: o.recvs[:0], wake: o.wake}
	e.spare = append(e.spare, o)

	if !e.driven {
		for _, next := range e.ops {
			if !next.over {
				next.ring()
				break
			}
		}
	}
	if e.closed {
		e.left.Broadcast()
	}
}
