package mixed

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

// part returns the part over which letters to and from a rank go.
func (e *Endpoint) part(ctx context.Context, rank int) (Part, error) {
	if err := e.ended(); err != nil {
		return nil, err
	}
	way, err := e.way(ctx, rank)
	switch {
	case err != nil:
		return nil, err
	case way == isFar:
		return e.far, nil
	}
	return e.near, nil
}

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, stamp transport.Match, kind string, data []byte) error {
	p, err := e.part(ctx, to)
	if err != nil {
		return err
	}
	return p.Send(ctx, to, stamp, kind, data)
}

// Recv implements [transport.Messenger]. Letters from any rank are looked for by one
// goroutine at a time; what it has found is its own unless another goroutine
// takes letters with that stamp from that very rank.
func (e *Endpoint) Recv(ctx context.Context, from int, stamp transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	if from == transport.Any {
		e.taking.Lock()
		defer e.taking.Unlock()
		found, _, err := e.Probe(ctx, from, stamp, true)
		if err != nil {
			return transport.MessageInfo{}, err
		}
		from = found.From
	}
	p, err := e.part(ctx, from)
	if err != nil {
		return transport.MessageInfo{}, err
	}
	return p.Recv(ctx, from, stamp, kind, into)
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, stamp transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	if from != transport.Any {
		p, err := e.part(ctx, from)
		if err != nil {
			return transport.MessageInfo{}, false, err
		}
		return p.Probe(ctx, from, stamp, wait)
	}
	if err := e.ended(); err != nil {
		return transport.MessageInfo{}, false, err
	}
	for _, p := range []Part{e.near, e.far} {
		if found, ok, err := p.Probe(ctx, from, stamp, false); ok || err != nil {
			return found, ok, err
		}
	}
	if !wait {
		return transport.MessageInfo{}, false, nil
	}
	return e.wait(ctx, stamp)
}

// wait waits for a letter from any rank.
func (e *Endpoint) wait(ctx context.Context, stamp transport.Match) (transport.MessageInfo, bool, error) {
	type answer struct {
		transport.MessageInfo
		found bool
		err   error
	}
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, 2)
	for _, p := range []Part{e.near, e.far} {
		go func() {
			found, ok, err := p.Probe(either, transport.Any, stamp, true)
			answers <- answer{found, ok, err}
			cancel()
		}()
	}
	first, second := <-answers, <-answers
	if !first.found && second.found {
		first = second
	}
	if !first.found && ctx.Err() != nil {
		first.err = transport.Cause(ctx)
	}
	return first.MessageInfo, first.found, first.err
}
