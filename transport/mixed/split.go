package mixed

import (
	"context"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
)

// exchangeBoth does a step that has local and remote peers. It returns, or panics as
// a Combine has, when neither endpoint uses the memory of the step any more.
func (e *Endpoint) exchangeBoth(ctx context.Context, step transport.Step) error {
	local, remote, deferred := e.split(step)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var l, r half
	var other sync.WaitGroup
	defer other.Wait()
	other.Go(func() { r.exchange(ctx, cancel, e.remote, remote) })
	l.exchange(ctx, cancel, e.local, local)
	other.Wait()
	for _, h := range []half{l, r} {
		if h.panicked != nil {
			panic(h.panicked)
		}
	}
	if err := join(l.err, r.err); err != nil {
		return err
	}
	for _, d := range deferred {
		d.complete()
	}
	return nil
}

// A half is what has become of the part of a step that one endpoint does.
type half struct {
	err      error
	panicked any // what a Combine panicked with
}

// exchange does one part of a step, and ends the other if it fails.
func (h *half) exchange(ctx context.Context, cancel context.CancelCauseFunc, end transport.ProcessEndpoint, step transport.Step) {
	h.err = transport.ErrPanicked // unless Exchange returns
	defer func() {
		h.panicked = recover()
		if h.err != nil {
			cancel(h.err)
		}
	}()
	h.err = end.Exchange(ctx, step)
}

// A deferredRecv is an ordered receive. A receive listed before it may belong to the
// other endpoint, so it gets its message in a buffer and completes after both.
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

// split returns the step of each endpoint. Every peer of the step has been located.
func (e *Endpoint) split(step transport.Step) (local, remote transport.Step, deferred []deferredRecv) {
	local.Signature, remote.Signature = step.Signature, step.Signature
	isLocal := func(rank int) bool { return e.locations[rank].Load() == onHost }
	for _, s := range step.Sends {
		to := slices.Clone(s.To)
		slices.SortStableFunc(to, func(a, b int) int { return localFirst(isLocal(a), isLocal(b)) })
		n := 0
		for n < len(to) && isLocal(to[n]) {
			n++
		}
		if n > 0 {
			local.Sends = append(local.Sends, transport.Send{To: to[:n], Data: s.Data})
		}
		if n < len(to) {
			remote.Sends = append(remote.Sends, transport.Send{To: to[n:], Data: s.Data})
		}
	}
	for i := range step.Recvs {
		r := step.Recvs[i]
		if r.Ordered {
			d := deferredRecv{&step.Recvs[i], make([]byte, len(r.Into))}
			deferred = append(deferred, d)
			r = transport.Recv{From: r.From, Into: d.data}
		}
		if isLocal(r.From) {
			local.Recvs = append(local.Recvs, r)
		} else {
			remote.Recvs = append(remote.Recvs, r)
		}
	}
	return local, remote, deferred
}

// localFirst compares two ranks, of which it knows whether they are local.
func localFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
