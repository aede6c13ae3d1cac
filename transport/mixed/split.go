package mixed

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// exchangeBoth does a step that has local and remote peers.
func (e *Endpoint) exchangeBoth(ctx context.Context, step transport.Step) error {
	local, remote, deferred := e.split(step)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make(chan error, 2)
	do := func(end transport.ProcessEndpoint, s transport.Step) {
		err := end.Exchange(ctx, s)
		errs <- err
		if err != nil {
			cancel(err) // ends the other Exchange
		}
	}
	go do(e.remote, remote)
	do(e.local, local)
	for range 2 {
		if err := <-errs; err != nil {
			return err
		}
	}
	for _, d := range deferred {
		d.complete()
	}
	return nil
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
