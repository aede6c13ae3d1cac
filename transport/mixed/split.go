package mixed

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// pollTime is for how long a rank polls both endpoints by turns, in one goroutine, from one
// thing that moves to the next. Then it waits at both, in two goroutines: each may sleep in
// the kernel. Handing a short step to a second goroutine takes longer than the step where a
// process has one processor.
const pollTime = 300 * time.Microsecond

// exchangeBoth does a step that has local and remote peers. It returns, or panics as
// a Combine has, when neither endpoint uses the memory of the step any more.
func (e *Endpoint) exchangeBoth(ctx context.Context, step transport.Step) error {
	s := e.splitStep()
	s.split(e, &step)
	if err := s.exchange(ctx, e); err != nil {
		return err
	}
	for _, d := range s.deferred {
		d.complete()
	}
	e.recycle(s)
	return nil
}

// exchange does both halves. It has the requests of tagged messages make progress at the
// endpoint whose half is over first.
func (s *splitStep) exchange(ctx context.Context, e *Endpoint) error {
	l, r := &s.local, &s.remote
	defer r.wait() // they have nothing to wait for unless a Combine ends this goroutine
	defer l.wait()
	if l.start(ctx); l.err == nil {
		r.start(ctx)
	}
	for since := time.Now(); l.runs() && r.runs() && time.Since(since) < e.pollTime; {
		switch movedLocal, movedRemote := l.poll(), r.poll(); {
		case movedLocal || movedRemote:
			since = time.Now()
		case l.runs() && r.runs():
			runtime.Gosched()
			yield()
		}
	}
	e.drive(e.local)
	e.drive(e.remote)
	s.wait()
	for _, h := range []*half{l, r} {
		if h.panicked != nil {
			panic(h.panicked)
		}
	}
	return join(l.err, r.err)
}

// A splitStep is a step whose two halves are done by different endpoints.
type splitStep struct {
	local, remote half
	deferred      []deferredRecv
	ranks         []int          // memory of the halves' Send.To
	waiter        sync.WaitGroup // of a goroutine that waits for the local half
}

// A half is the part of a step that one endpoint does.
type half struct {
	endpoint Part
	other    *half
	step     transport.Step
	pending  transport.PendingStep // nil unless it is to be waited for
	err      error
	panicked any // what a Combine panicked with
}

// runs reports whether the half is neither over nor about to end.
func (h *half) runs() bool { return h.pending != nil && h.err == nil }

func (h *half) start(ctx context.Context) {
	h.do(func() { h.pending, h.err = h.endpoint.Start(ctx, h.step) })
}

// poll reports whether something has moved.
func (h *half) poll() (moved bool) {
	if !h.runs() {
		return false
	}
	h.do(func() {
		var over bool
		if moved, over = h.pending.Poll(); !over {
			h.err = nil
			return
		}
		h.err = h.await()
	})
	return moved
}

// wait returns when the half is over.
func (h *half) wait() {
	if h.pending != nil {
		h.do(func() { h.err = h.await() })
	}
}

// await waits for the step, once: also if a Combine panics meanwhile.
func (h *half) await() error {
	pending := h.pending
	h.pending = nil
	return pending.Wait()
}

// do calls f, which sets err. If the half fails, do ends at the other what the half has ended.
func (h *half) do(f func()) {
	h.err = transport.ErrPanicked // unless f returns
	defer func() {
		if v := recover(); v != nil {
			h.panicked = v
		}
		if h.err != nil {
			spread(h.endpoint, h.other.endpoint, transport.Communicator(h.step.Signature.Context), h.err)
		}
	}()
	f()
}

// wait returns when both halves are over.
func (s *splitStep) wait() {
	defer s.waiter.Wait()
	if s.local.pending != nil && s.remote.pending != nil {
		s.waiter.Go(s.local.wait)
	} else {
		s.local.wait()
	}
	s.remote.wait()
}

// A deferredRecv is an ordered receive of which one listed before belongs to the other
// endpoint. It gets its message in a buffer and completes after both halves.
type deferredRecv struct {
	recv *transport.Recv
	data []byte
}

func (d deferredRecv) complete() {
	if d.recv.Combine == nil {
		copy(d.recv.Into, d.data)
	} else if len(d.data) > 0 {
		d.recv.Combine(d.recv.Into, d.recv.Held, d.data)
	}
}

// split sets the step of each half. Every peer of the step has been located.
func (s *splitStep) split(e *Endpoint, step *transport.Step) {
	local, remote := &s.local.step, &s.remote.step
	local.Signature, remote.Signature = step.Signature, step.Signature
	isLocal := func(rank int) bool { return e.locations[rank].Load() == onHost }
	peers := func(to []int, local bool) []int {
		before := len(s.ranks)
		for _, rank := range to {
			if isLocal(rank) == local {
				s.ranks = append(s.ranks, rank)
			}
		}
		return s.ranks[before:len(s.ranks):len(s.ranks)]
	}
	for _, send := range step.Sends {
		if to := peers(send.To, true); len(to) > 0 {
			local.Sends = append(local.Sends, transport.Send{To: to, Data: send.Data})
		}
		if to := peers(send.To, false); len(to) > 0 {
			remote.Sends = append(remote.Sends, transport.Send{To: to, Data: send.Data})
		}
	}
	for i := range step.Recvs {
		r := step.Recvs[i]
		half, other := local, remote
		if !isLocal(r.From) {
			half, other = remote, local
		}
		if r.Ordered && (len(other.Recvs) > 0 || len(s.deferred) > 0) {
			d := deferredRecv{&step.Recvs[i], make([]byte, len(r.Into))}
			s.deferred = append(s.deferred, d)
			r = transport.Recv{From: r.From, Into: d.data}
		}
		half.Recvs = append(half.Recvs, r)
	}
}

// splitStep returns one to use, and recycle takes one back of which nothing is under way.
func (e *Endpoint) splitStep() *splitStep {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.spare); n > 0 {
		s := e.spare[n-1]
		e.spare = e.spare[:n-1]
		return s
	}
	s := &splitStep{local: half{endpoint: e.local}, remote: half{endpoint: e.remote}}
	s.local.other, s.remote.other = &s.remote, &s.local
	return s
}

func (e *Endpoint) recycle(s *splitStep) {
	for _, step := range []*transport.Step{&s.local.step, &s.remote.step} {
		clear(step.Sends)
		clear(step.Recvs)
		*step = transport.Step{Sends: step.Sends[:0], Recvs: step.Recvs[:0]}
	}
	clear(s.deferred)
	s.deferred, s.ranks = s.deferred[:0], s.ranks[:0]
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spare = append(e.spare, s)
}
