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

// Post implements [transport.Mailer].
func (e *Endpoint) Post(ctx context.Context, to int, stamp transport.Stamp, kind string, data []byte) error {
	p, err := e.part(ctx, to)
	if err != nil {
		return err
	}
	return p.Post(ctx, to, stamp, kind, data)
}

// Take implements [transport.Mailer]. Letters from any rank are looked for by one
// goroutine at a time; what it has found is its own unless another goroutine
// takes letters with that stamp from that very rank.
func (e *Endpoint) Take(ctx context.Context, from int, stamp transport.Stamp, kind string, into []byte) (transport.Envelope, error) {
	if from == transport.Any {
		e.taking.Lock()
		defer e.taking.Unlock()
		found, _, err := e.Peek(ctx, from, stamp, true)
		if err != nil {
			return transport.Envelope{}, err
		}
		from = found.From
	}
	p, err := e.part(ctx, from)
	if err != nil {
		return transport.Envelope{}, err
	}
	return p.Take(ctx, from, stamp, kind, into)
}

// Peek implements [transport.Mailer].
func (e *Endpoint) Peek(ctx context.Context, from int, stamp transport.Stamp, wait bool) (transport.Envelope, bool, error) {
	if from != transport.Any {
		p, err := e.part(ctx, from)
		if err != nil {
			return transport.Envelope{}, false, err
		}
		return p.Peek(ctx, from, stamp, wait)
	}
	if err := e.ended(); err != nil {
		return transport.Envelope{}, false, err
	}
	for _, p := range []Part{e.near, e.far} {
		if found, ok, err := p.Peek(ctx, from, stamp, false); ok || err != nil {
			return found, ok, err
		}
	}
	if !wait {
		return transport.Envelope{}, false, nil
	}
	return e.wait(ctx, stamp)
}

// wait waits for a letter from any rank.
func (e *Endpoint) wait(ctx context.Context, stamp transport.Stamp) (transport.Envelope, bool, error) {
	type answer struct {
		transport.Envelope
		found bool
		err   error
	}
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, 2)
	for _, p := range []Part{e.near, e.far} {
		go func() {
			found, ok, err := p.Peek(either, transport.Any, stamp, true)
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
	return first.Envelope, first.found, first.err
}
