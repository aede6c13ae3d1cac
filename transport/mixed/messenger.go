package mixed

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
)

// endpointFor returns the endpoint that carries the tagged messages to and from a
// rank, or from any rank if all are local.
func (e *Endpoint) endpointFor(ctx context.Context, rank int) (transport.ProcessEndpoint, error) {
	if err := e.ended(); err != nil {
		return nil, err
	}
	location, err := e.locate(ctx, rank)
	switch {
	case err != nil:
		return nil, err
	case location == elsewhere:
		return e.remote, nil
	}
	return e.local, nil
}

// fromBoth reports whether messages from a rank, or from any, may come from both
// endpoints.
func (e *Endpoint) fromBoth(from int) bool { return from == transport.Any && !e.allLocal.Load() }

// check returns the error of a tagged-message operation of one of the endpoints. If
// the operation has ended that endpoint's part in the job, check ends the other's.
func (e *Endpoint) check(end transport.ProcessEndpoint, err error) error {
	if err == nil {
		return nil
	}
	if ended := endedAt(end); ended != nil {
		return e.fail(ended)
	}
	return err
}

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, match transport.Match, typeName string, data []byte) error {
	end, err := e.endpointFor(ctx, to)
	if err != nil {
		return err
	}
	e.driveOther(end)
	return e.check(end, end.Send(ctx, to, match, typeName, data))
}

// StartSend implements [transport.Messenger].
func (e *Endpoint) StartSend(ctx context.Context, r *transport.Request, to int, match transport.Match, typeName string, data []byte) {
	end, err := e.endpointFor(ctx, to)
	if err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	end.StartSend(ctx, r, to, match, typeName, data)
	e.started(end, r)
}

// StartRecv implements [transport.Messenger]. A receive of messages that may come from
// both endpoints has a goroutine; these receives follow each other.
func (e *Endpoint) StartRecv(ctx context.Context, r *transport.Request, from int, match transport.Match, typeName string, into []byte) {
	if e.fromBoth(from) {
		e.startFromBoth(ctx, r, match, typeName, into)
		return
	}
	end, err := e.endpointFor(ctx, from)
	if err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	end.StartRecv(ctx, r, from, match, typeName, into)
	e.started(end, r)
}

func (e *Endpoint) startFromBoth(ctx context.Context, r *transport.Request, match transport.Match, typeName string, into []byte) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	r.Owner = &fromBoth{done, cancel}
	e.mu.Lock()
	before := e.lastFromBoth
	e.lastFromBoth = done
	e.mu.Unlock()
	go func() {
		defer cancel(nil)
		defer close(done)
		if before != nil {
			select {
			case <-before:
			case <-ctx.Done():
			}
		}
		r.Finish(e.Recv(ctx, transport.Any, match, typeName, into))
	}()
}

// A fromBoth is a receive in progress of messages that may come from both endpoints.
type fromBoth struct {
	done   chan struct{}
	cancel context.CancelCauseFunc
}

// Cancel implements [transport.Messenger].
func (e *Endpoint) Cancel(r *transport.Request, err error) {
	if r.Done() {
		return
	}
	switch owner := r.Owner.(type) {
	case *fromBoth:
		owner.cancel(err)
		<-owner.done
	case *driven:
		owner.end.Cancel(r, err)
	case transport.ProcessEndpoint:
		owner.Cancel(r, err)
	}
}

// Wait implements [transport.Messenger].
func (e *Endpoint) Wait(r *transport.Request) {
	if d, ok := r.Owner.(*driven); ok {
		e.waitAt(d.end, r)
		e.forget(d, r)
		return
	}
	if !r.Done() {
		switch owner := r.Owner.(type) {
		case *fromBoth:
			<-owner.done
		case transport.ProcessEndpoint:
			e.waitAt(owner, r)
		}
	}
}

func (e *Endpoint) waitAt(end transport.ProcessEndpoint, r *transport.Request) {
	if !r.Done() {
		e.driveOther(end)
		end.Wait(r)
		_ = e.check(end, r.Err)
	}
}

// Progress implements [transport.Messenger].
func (e *Endpoint) Progress() {
	e.local.Progress()
	if !e.allLocal.Load() {
		e.remote.Progress()
	}
}

// A driven is the requests in progress at one of the endpoints. While this rank waits at
// the other one, a goroutine waits for them, and so makes their progress.
type driven struct {
	end      transport.ProcessEndpoint
	requests []*transport.Request // that were not done when they were started, and not waited for
	running  bool
	waits    *transport.Request // what the goroutine waits for, or nil
	moved    sync.Cond          // on the endpoint's mutex: waits has changed
}

// started notes a request that an endpoint has.
func (e *Endpoint) started(end transport.ProcessEndpoint, r *transport.Request) {
	r.Owner = end
	if r.Done() || e.allLocal.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.drivenAt(end)
	d.prune()
	d.requests = append(d.requests, r)
	r.Owner = d
}

// forget returns when the goroutine does not look at a request, which is done, any more: its
// memory may serve for another one.
func (e *Endpoint) forget(d *driven, r *transport.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d.prune()
	for d.waits == r {
		d.moved.Wait()
	}
}

func (e *Endpoint) drivenAt(end transport.ProcessEndpoint) *driven {
	if end == e.local {
		return &e.driven[0]
	}
	return &e.driven[1]
}

// prune forgets the requests that are done.
func (d *driven) prune() {
	d.requests = slices.DeleteFunc(d.requests, (*transport.Request).Done)
}

// driveOther has progress made at the endpoint that this rank does not wait at.
func (e *Endpoint) driveOther(end transport.ProcessEndpoint) {
	if e.allLocal.Load() {
		return
	}
	if end == e.local {
		e.drive(e.remote)
	} else {
		e.drive(e.local)
	}
}

// drive waits for the requests of an endpoint, in a goroutine.
func (e *Endpoint) drive(end transport.ProcessEndpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.drivenAt(end)
	if d.prune(); d.running || len(d.requests) == 0 {
		return
	}
	d.running = true
	go func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for d.prune(); len(d.requests) > 0; d.prune() {
			d.waits = d.requests[0]
			e.mu.Unlock()
			end.Wait(d.waits)
			e.mu.Lock()
			d.waits = nil
			d.moved.Broadcast()
		}
		d.running = false
	}()
}

// Recv implements [transport.Messenger].
func (e *Endpoint) Recv(ctx context.Context, from int, match transport.Match, typeName string, into []byte) (info transport.MessageInfo, err error) {
	if !e.fromBoth(from) {
		end, err := e.endpointFor(ctx, from)
		if err != nil {
			return transport.MessageInfo{}, err
		}
		e.driveOther(end)
		info, err = end.Recv(ctx, from, match, typeName, into)
		return info, e.check(end, err)
	}
	err = e.await(ctx, match, func() (found bool, err error) {
		info, found, err = e.TryRecv(ctx, transport.Any, match, typeName, into)
		return found, err
	})
	return info, err
}

// TryRecv implements [transport.Messenger].
func (e *Endpoint) TryRecv(ctx context.Context, from int, match transport.Match, typeName string, into []byte) (transport.MessageInfo, bool, error) {
	return e.look(ctx, from, match, func(end transport.ProcessEndpoint) (transport.MessageInfo, bool, error) {
		info, found, err := end.TryRecv(ctx, from, match, typeName, into)
		return info, found, e.check(end, err)
	})
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, match transport.Match, wait bool) (info transport.MessageInfo, found bool, err error) {
	if !wait || !e.fromBoth(from) {
		return e.look(ctx, from, match, func(end transport.ProcessEndpoint) (transport.MessageInfo, bool, error) {
			if wait {
				e.driveOther(end)
			}
			return end.Probe(ctx, from, match, wait)
		})
	}
	err = e.await(ctx, match, func() (bool, error) {
		info, found, err = e.Probe(ctx, transport.Any, match, false)
		return found, err
	})
	return info, found, err
}

// look calls find for the endpoint that carries the messages from a rank. For
// messages from any rank it calls find for both, and for each of them first by
// turns: neither is starved by the other.
func (e *Endpoint) look(ctx context.Context, from int, match transport.Match, find func(end transport.ProcessEndpoint) (transport.MessageInfo, bool, error)) (info transport.MessageInfo, found bool, err error) {
	if !e.fromBoth(from) {
		end, err := e.endpointFor(ctx, from)
		if err != nil {
			return transport.MessageInfo{}, false, err
		}
		return find(end)
	}
	if err := e.ended(); err != nil {
		return transport.MessageInfo{}, false, err
	}
	first, second := e.local, e.remote
	if e.turns.Add(1)%2 == 0 {
		first, second = second, first
	}
	info, found, err1 := find(first)
	if found {
		return info, true, err1
	}
	info, found, err2 := find(second)
	if found {
		return info, true, err2
	}
	for _, err := range []error{err1, err2} {
		if err != nil && !errors.Is(err, transport.ErrAllLeft) {
			return transport.MessageInfo{}, false, err
		}
	}
	if err1 != nil || err2 != nil {
		err = e.allLeft(ctx, match, false)
	}
	return transport.MessageInfo{}, false, err
}

// await calls try until it finds a message from any rank or fails. Between the calls
// it waits until one of the endpoints has a message that matches.
func (e *Endpoint) await(ctx context.Context, match transport.Match, try func() (found bool, err error)) error {
	for {
		if found, err := try(); found || err != nil {
			return err
		}
		if err := e.awaitEither(ctx, match); err != nil {
			return err
		}
	}
}

// awaitEither returns when one of the endpoints may have a message from any rank
// that matches. Another receive may take that message.
func (e *Endpoint) awaitEither(ctx context.Context, match transport.Match) error {
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, 2)
	wait := func(end transport.ProcessEndpoint) {
		_, _, err := end.Probe(either, transport.Any, match, true)
		errs <- err
		cancel() // ends the other Probe
	}
	go wait(e.remote)
	wait(e.local)
	first, second := <-errs, <-errs
	switch err := e.ended(); {
	case err != nil:
		return err
	case first == nil || second == nil:
		return nil
	case ctx.Err() != nil:
		return transport.Cause(ctx)
	case errors.Is(first, transport.ErrAllLeft):
		return e.allLeft(ctx, match, true)
	}
	return first
}

// allLeft is called when one of the endpoints says that all other ranks of a communicator have
// left. It returns the error that says so, unless the other endpoint still has a message
// that matches, or does not know of a rank yet that the rank has left. If wait is
// set, allLeft waits until the endpoint does.
func (e *Endpoint) allLeft(ctx context.Context, match transport.Match, wait bool) error {
	for i := 1; i < e.Size(); i++ {
		rank := (e.Rank() + i) % e.Size()
		if !e.isMember(transport.Communicator(match.Context), rank) {
			continue
		}
		_, found, err := e.Probe(ctx, rank, match, wait)
		switch {
		case found || err == nil:
			return nil
		case !errors.Is(err, transport.ErrLeft):
			return err
		}
	}
	return &transport.PeerError{Peer: (e.Rank() + 1) % e.Size(), Err: transport.ErrAllLeft}
}
