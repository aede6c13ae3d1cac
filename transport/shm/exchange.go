package shm

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// An op is an Exchange in progress.
type op struct {
	e     *Endpoint
	sig   transport.Signature
	call  uint32 // stands for sig.Call
	ctx   context.Context
	ended <-chan struct{} // ctx.Done()
	sends []sending       // messages that are not on their way
	loans []loan          // messages that lie in the caller's memory until they are taken
	recvs []recv
	open  int // receives that are not complete
	turn  int // the first of them
	over  bool
	err   error
	errand
	drive bool          // this op's goroutine drives the endpoint
	waits bool          // it sleeps until wake rings
	wake  chan struct{} // rung when over, or when it is this op's turn to drive
}

// A sending is a message to one rank, as far as it is not on its way.
type sending struct {
	link  *link
	data  []byte
	sent  int
	first uint32 // the frame that it began with, once it has begun
	begun bool
	group int       // so many of an op's sendings, from this one on, go together
	stuck time.Time // since when they cannot
}

// A loan is a message, or the rest of one, that the receiver reads in the
// caller's memory, or asks for.
type loan struct {
	sending
	number uint32 // of the frame that offers it
	asked  bool
}

// A recv is a receive of an op.
type recv struct {
	*transport.Recv
	op   *op
	got  int    // bytes that have landed
	part []byte // of an element that goes on in the next piece
	held bool   // not in turn yet
	done bool
}

var (
	errPanicked = errors.New("a Combine panicked")
	errTwoSteps = errors.New("two steps of one context at a time")
)

// begin makes an op.
func (e *Endpoint) begin(ctx context.Context) *op {
	var o *op
	if n := len(e.spare); n > 0 {
		o, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		o = &op{e: e, wake: make(chan struct{}, 1)}
	}
	o.ctx, o.ended = ctx, ctx.Done()
	e.ops = append(e.ops, o)
	return o
}

// start posts every receive and sends what there is room for.
func (e *Endpoint) start(o *op, step *transport.Step) {
	o.sig = step.Signature
	o.call = e.register.hash(step.Signature.Call)
	if n := len(step.Recvs); n > 0 {
		o.open = n
		o.recvs = slices.Grow(o.recvs[:0], n)[:n]
		for i := range o.recvs {
			r := &o.recvs[i]
			r.Recv, r.op = &step.Recvs[i], o
			r.held = r.Ordered && i > 0
			l := &e.links[r.From]
			l.posted = append(l.posted, r)
			l.blocked = false
			e.watchOver(l)
		}
	}
	for i := range step.Sends {
		s := &step.Sends[i]
		if len(s.Data) > inlineMax {
			o.list(s)
			continue
		}
		if len(s.To) >= castMin && len(o.sends) == 0 && e.cast(o.label(), s) {
			continue
		}
		for _, to := range s.To {
			l := &e.links[to]
			if l.room() && len(o.sends) == 0 {
				l.line(o.label(), s.Data)
			} else {
				o.sends = append(o.sends, sending{link: l, data: s.Data})
				e.watchOver(l)
			}
			if l.err != nil {
				e.partings = true
			}
		}
	}
	if e.partings {
		e.seePartings()
		e.mourn(step, inlineMax)
	}
	if !o.over {
		o.send()
	}
	e.tellAll()
}

// mourn fails the endpoint if the step sends something to a rank that has gone
// without having taken it. Messages of up to so many bytes have been written.
func (e *Endpoint) mourn(step *transport.Step, written int) {
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if l := &e.links[to]; l.err != nil && !(l.took(l.tail) && len(step.Sends[i].Data) <= written) {
				l.hear() // that the ranks differ in what they call says more
				e.fail(l.err)
			}
		}
	}
}

// finish ends the waiting for an op.
func (o *op) finish(err error) {
	if o.over {
		return
	}
	o.over, o.err = true, err
	o.e.moved = true
	if o.drive {
		o.e.nudge()
	}
	o.ring()
}

// complete ends an Exchange that has done all that it is to do.
func (o *op) complete() {
	if o.open == 0 && len(o.sends) == 0 && len(o.loans) == 0 && !o.mail {
		o.finish(nil)
	}
}

// ring wakes the op's goroutine if it sleeps.
func (o *op) ring() {
	if o.waits {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
}

// complete notes that r has landed, and lets the next one in turn go on.
func (r *recv) complete() {
	o := r.op
	r.done = true
	o.open--
	for o.turn < len(o.recvs) && o.recvs[o.turn].done {
		o.turn++
	}
	if o.turn < len(o.recvs) {
		if next := &o.recvs[o.turn]; next.held {
			next.held = false
			o.e.links[next.From].blocked = false
			o.e.moved = true
		}
	}
	o.complete()
}

// needs reports whether the Exchange cannot complete unless the peer of a link
// does something.
func (o *op) needs(l *link) bool {
	for i := range o.sends {
		if o.sends[i].link == l {
			return true
		}
	}
	for i := range o.loans {
		if d := &o.loans[i]; d.link == l && (d.asked || !l.took(d.number)) {
			return true
		}
	}
	for i := range o.recvs {
		if r := &o.recvs[i]; !r.done && r.From == l.peer {
			s, _ := l.next()
			m := l.firstAside(o.sig.Context)
			return s == nil && (m == nil || !m.whole)
		}
	}
	return false
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
	if o.open > 0 {
		for i := range e.links {
			l := &e.links[i]
			l.posted = slices.DeleteFunc(l.posted, func(r *recv) bool { return r.op == o })
			l.flows = slices.DeleteFunc(l.flows, func(f flow) bool { return f.recv != nil && f.recv.op == o })
		}
	}
	if n := len(e.ops) - 1; n == 0 {
		e.ops = e.ops[:0]
		e.rest()
	} else {
		i := slices.Index(e.ops, o)
		e.ops[i], e.ops[n] = e.ops[n], nil
		e.ops = e.ops[:n]
	}
	o.reset()
	e.spare = append(e.spare, o)
	if e.lender.due != nil {
		e.lender.move(e)
	}
	if !e.driven && len(e.ops) > 0 {
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

// reset makes an op ready for its next use.
func (o *op) reset() {
	select {
	case <-o.wake:
	default:
	}
	clear(o.sends)
	clear(o.loans)
	clear(o.recvs)
	o.sends, o.loans, o.recvs = o.sends[:0], o.loans[:0], o.recvs[:0]
	o.sig, o.ctx, o.ended = transport.Signature{}, nil, nil
	o.open, o.turn, o.over, o.err, o.drive, o.waits = 0, 0, false, nil, false, false
	o.errand = errand{}
}
