package tcp

import (
	"context"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
)

const (
	// spinTime is how long a rank that has a core of its own asks again and
	// again before it sleeps: a few times what a message takes.
	spinTime = 50 * time.Microsecond
	// patience is how long a rank waits before it says for what, and listens
	// to ranks of which it expects nothing.
	patience = 10 * time.Millisecond
)

// A poller waits for streams. It is used by one goroutine at a time, except
// for wake.
type poller interface {
	// attach makes a stream of a connection, which is its own from now on.
	attach(l *link, conn net.Conn) (stream, error)
	// wait returns when a link is ready for what it wants, when wake was
	// called, or after d; a negative d is for ever. It sets ready.
	wait(links []*link, d time.Duration)
	wake()
	close()
}

// await returns when o is over.
func (e *Endpoint) await(o *op) {
	for !o.over {
		if !e.driven {
			e.driven, o.drive = true, true
			e.drive(o)
			e.driven, o.drive = false, false
			return
		}
		e.watch(o)
		e.mu.Unlock()
		<-o.wake
		e.lock()
	}
}

// drive moves what there is to move on all links until o is over.
func (e *Endpoint) drive(o *op) {
	e.listens = false
	began := time.Now()
	moved, quiet := e.moved, began // since when nothing has moved
	for !o.over {
		now := time.Now()
		if e.moved != moved {
			moved, quiet = e.moved, now
		}
		e.arm()
		if e.spins && now.Sub(quiet) < spinTime && e.entering.Load() == 0 {
			e.spin(o)
		} else {
			e.sleep(o, patience-now.Sub(began))
		}
		for _, l := range e.watching {
			if l.ready&writable != 0 {
				l.flush()
			}
			if l.ready&readable != 0 {
				l.receive()
			}
		}
		e.settle()
	}
	e.watching = e.watching[:0]
}

// spin asks once, without waiting. One link or two are asked by reading.
func (e *Endpoint) spin(o *op) {
	select {
	case <-o.ended:
		e.fail(cause(o.ctx))
		return
	default:
	}
	for _, l := range e.watching {
		if l.ready = l.want; l.want != readable || len(e.watching) > 2 {
			e.poll.wait(e.watching, 0)
			return
		}
	}
}

// sleep waits in the kernel, without the lock. When d is over, this rank says
// for whom it waits, and listens to all.
func (e *Endpoint) sleep(o *op, d time.Duration) {
	e.watch(o)
	if d <= 0 || e.listens {
		d = -1
		e.listens = true
		for _, l := range e.busy {
			l.ask()
		}
		e.arm()
	}
	if o.over {
		return
	}
	e.asleep = true
	e.mu.Unlock()
	runtime.Gosched() // whom this goroutine has woken may have its thread first
	e.poll.wait(e.watching, d)
	e.lock()
	e.asleep = false
}

// arm collects the links to wait for, and what each waits for.
func (e *Endpoint) arm() {
	busy := e.busy[:0]
	for _, l := range e.busy {
		if l.busy = len(l.posted) > 0 || l.pending(); l.busy {
			busy = append(busy, l)
		}
	}
	clear(e.busy[len(busy):])
	e.busy = busy

	from := e.busy
	if e.listens {
		from = e.links
	}
	e.watching = e.watching[:0]
	for _, l := range from {
		if l == nil {
			continue
		}
		if l.want = l.wants(); l.want != 0 {
			e.watching = append(e.watching, l)
		}
	}
}

// wants returns what the link waits for.
func (l *link) wants() (want events) {
	if l.reads() {
		want = readable
	}
	if l.phase == up && l.pending() && (l.err == nil || l.unsaid) {
		want |= writable
	}
	return want
}

// watchOver sees to it that the driver waits for a link.
func (e *Endpoint) watchOver(l *link) {
	if !l.busy {
		l.busy = true
		e.busy = append(e.busy, l)
	}
	if e.asleep && l.wants()&^l.want != 0 {
		e.nudge()
	}
}

// nudge wakes the driver if it sleeps.
func (e *Endpoint) nudge() {
	if e.asleep {
		e.asleep = false
		e.poll.wake()
	}
}

// drain returns when the last word of every link is written, or nobody has
// read it for long.
func (e *Endpoint) drain() {
	if e.unsaid == 0 {
		return
	}
	late := time.AfterFunc(closeTimeout, func() {
		e.lock()
		defer e.mu.Unlock()
		for _, l := range e.links {
			if l != nil {
				l.hush()
			}
		}
		e.nudge()
	})
	defer late.Stop()
	o := e.begin(context.Background(), transport.Step{})
	o.drain = true
	defer e.leave(o)
	e.await(o)
}

// A watch is a context that fails the endpoint if it ends while an Exchange
// uses it. It stays for the next Exchange, which most often has the same.
type watch struct {
	ended <-chan struct{}
	stop  func() bool
}

const watchesMax = 8

// watch sees to it that the end of o's context is noticed while o's goroutine
// sleeps.
func (e *Endpoint) watch(o *op) {
	if o.ended == nil {
		return
	}
	for i := range e.watches {
		if e.watches[i].ended == o.ended {
			return
		}
	}
	if len(e.watches) >= watchesMax {
		e.watches = slices.DeleteFunc(e.watches, func(w watch) bool {
			return !e.uses(w.ended) && (w.stop() || true)
		})
	}
	ctx, ended := o.ctx, o.ended
	stop := context.AfterFunc(ctx, func() {
		e.lock()
		defer e.mu.Unlock()
		e.watches = slices.DeleteFunc(e.watches, func(w watch) bool { return w.ended == ended })
		if e.uses(ended) {
			e.fail(cause(ctx))
		}
	})
	e.watches = append(e.watches, watch{ended, stop})
}

// uses reports whether an Exchange in progress has the context with this Done
// channel.
func (e *Endpoint) uses(ended <-chan struct{}) bool {
	return slices.ContainsFunc(e.ops, func(o *op) bool { return !o.over && o.ended == ended })
}
