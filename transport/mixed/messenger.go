package mixed

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

// endpointFor returns the endpoint that carries the tagged messages to and from a
// rank.
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

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, match transport.Match, kind string, data []byte) error {
	end, err := e.endpointFor(ctx, to)
	if err != nil {
		return err
	}
	return end.Send(ctx, to, match, kind, data)
}

// Recv implements [transport.Messenger]. One Recv from any rank proceeds at a time,
// from its first probe until it has received: another could receive the message
// that it has found. A Recv from one rank with an equal match still can; the Recv
// from any rank then waits for the next message of this rank.
func (e *Endpoint) Recv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	if from == transport.Any {
		e.recvAny.Lock()
		defer e.recvAny.Unlock()
		found, _, err := e.Probe(ctx, from, match, true)
		if err != nil {
			return transport.MessageInfo{}, err
		}
		from = found.From
	}
	end, err := e.endpointFor(ctx, from)
	if err != nil {
		return transport.MessageInfo{}, err
	}
	return end.Recv(ctx, from, match, kind, into)
}

// TryRecv implements [transport.Messenger].
func (e *Endpoint) TryRecv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (info transport.MessageInfo, found bool, err error) {
	if from != transport.Any {
		end, err := e.endpointFor(ctx, from)
		if err != nil {
			return transport.MessageInfo{}, false, err
		}
		return end.TryRecv(ctx, from, match, kind, into)
	}
	if err := e.ended(); err != nil {
		return transport.MessageInfo{}, false, err
	}
	for _, end := range []transport.ProcessEndpoint{e.local, e.remote} {
		if info, found, err = end.TryRecv(ctx, from, match, kind, into); found || err != nil {
			return info, found, err
		}
	}
	return transport.MessageInfo{}, false, nil
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, match transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	if from != transport.Any {
		end, err := e.endpointFor(ctx, from)
		if err != nil {
			return transport.MessageInfo{}, false, err
		}
		return end.Probe(ctx, from, match, wait)
	}
	if err := e.ended(); err != nil {
		return transport.MessageInfo{}, false, err
	}
	for _, end := range []transport.ProcessEndpoint{e.local, e.remote} {
		if info, found, err := end.Probe(ctx, from, match, false); found || err != nil {
			return info, found, err
		}
	}
	if !wait {
		return transport.MessageInfo{}, false, nil
	}
	return e.probeBoth(ctx, match)
}

// probeBoth waits for a message from any rank.
func (e *Endpoint) probeBoth(ctx context.Context, match transport.Match) (transport.MessageInfo, bool, error) {
	type result struct {
		transport.MessageInfo
		found bool
		err   error
	}
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result, 2)
	for _, end := range []transport.ProcessEndpoint{e.local, e.remote} {
		go func() {
			info, found, err := end.Probe(either, transport.Any, match, true)
			results <- result{info, found, err}
			cancel()
		}()
	}
	first, second := <-results, <-results
	if !first.found && second.found {
		first = second
	}
	if !first.found && ctx.Err() != nil {
		first.err = transport.Cause(ctx)
	}
	return first.MessageInfo, first.found, first.err
}
