package mixed

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// both does a step that concerns both parts.
func (e *Endpoint) both(ctx context.Context, step transport.Step) error {
	near, far, late := e.divide(step)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make(chan error, 2)
	do := func(p Part, s transport.Step) {
		err := p.Exchange(ctx, s)
		errs <- err
		if err != nil {
			cancel(err) // the other part need not wait
		}
	}
	go do(e.far, far)
	do(e.near, near)
	for range 2 {
		if err := <-errs; err != nil {
			return err
		}
	}
	for _, l := range late {
		l.land()
	}
	return nil
}

// A lateness is a receive in turn whose predecessors may be of the other part:
// it lands when both are done.
type lateness struct {
	recv  *transport.Recv
	bytes []byte
}

func (l lateness) land() {
	if l.recv.Combine == nil {
		copy(l.recv.Into, l.bytes)
	} else if len(l.bytes) > 0 {
		l.recv.Combine(l.recv.Into, l.recv.Held, l.bytes)
	}
}

// divide returns the two parts of a step.
func (e *Endpoint) divide(step transport.Step) (near, far transport.Step, late []lateness) {
	near.Signature, far.Signature = step.Signature, step.Signature
	isNear := func(rank int) bool { return e.ways[rank].Load() == isNear }
	for _, s := range step.Sends {
		to := slices.Clone(s.To)
		slices.SortStableFunc(to, func(a, b int) int { return order(isNear(a), isNear(b)) })
		n := 0
		for n < len(to) && isNear(to[n]) {
			n++
		}
		if n > 0 {
			near.Sends = append(near.Sends, transport.Send{To: to[:n], Data: s.Data})
		}
		if n < len(to) {
			far.Sends = append(far.Sends, transport.Send{To: to[n:], Data: s.Data})
		}
	}
	for i := range step.Recvs {
		r := step.Recvs[i]
		if r.Ordered {
			l := lateness{&step.Recvs[i], make([]byte, len(r.Into))}
			late = append(late, l)
			r = transport.Recv{From: r.From, Into: l.bytes}
		}
		if isNear(r.From) {
			near.Recvs = append(near.Recvs, r)
		} else {
			far.Recvs = append(far.Recvs, r)
		}
	}
	return near, far, late
}

// order has what is near come first.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
