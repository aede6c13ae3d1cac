//go:build mpi

package mpi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// closeTimeout bounds how long an endpoint waits, when it ends, for peers that do not
// take its termination notice.
const closeTimeout = time.Second

// failedWait bounds how long a rank that leaves waits for its launcher to end the job,
// where another rank has failed. A process that ends without MPI_Finalize makes the
// launcher kill the others.
const failedWait = 5 * time.Second

// Close implements [transport.Endpoint]. Exchanges in progress return
// [transport.ErrClosed]. Close returns when MPI has all messages, and where it ends MPI,
// when all ranks have left. Where a rank has failed, no endpoint ends MPI,
// and Close returns after failedWait at the latest.
func (e *Endpoint) Close() error {
	e.engine.Lock()
	if !e.engine.StartLeaving() {
		e.engine.Unlock()
		return nil
	}
	e.EndAlloc()
	e.endSteps()
	var err error
	orderly := e.engine.MayLinger() == nil // otherwise peers may miss some of the messages in progress, too
	if orderly {
		if err = e.linger(); err != nil {
			e.engine.Fail(err)
			orderly = false
		}
	}
	interrupted := !orderly && !e.engine.Failed()
	e.engine.Close(e.flushNotices)
	if interrupted {
		err = e.undelivered(transport.ErrClosed)
	}
	e.engine.Unlock()
	e.engine.WaitBackground()
	return cmp.Or(err, e.leave(e, orderly))
}

// finish drains the endpoint, and gives its memory back. It reports whether all ranks have
// left in peace. MPI is not called for the endpoint any more.
func (e *Endpoint) finish(ctx context.Context, peace bool) (bool, error) {
	e.engine.Lock()
	defer e.engine.Unlock()
	peace, err := e.drain(ctx, peace)
	e.fault(transport.ErrClosed)
	e.release()
	return peace, err
}

// endSteps ends the steps in progress, unless the peer has asked for a part of one of their
// messages. Messages that have not begun are not sent.
func (e *Endpoint) endSteps() {
	asked := func(l *link) bool {
		return l != nil && slices.ContainsFunc(l.out.sources, func(s *source) bool { return s.op != nil && s.asked > 0 })
	}
	if !e.engine.Failed() && !slices.ContainsFunc(e.links, asked) {
		e.engine.Steps(func(o *progress.Op) { o.Finish(transport.ErrClosed) })
	}
}

// linger tells the peers that this rank leaves, and waits until MPI has all messages. Some of
// them may then still need calls of MPI, which follow (drain).
func (e *Endpoint) linger() error {
	e.notify(e.engine.LeavingNotice())
	if len(e.backlog) == 0 {
		return nil
	}
	err := e.engine.Linger(cmp.Or(e.cfg.Linger, transport.Linger))
	if err == nil {
		return nil
	}
	return cmp.Or(e.abandoned, e.undelivered(err), err)
}

// undelivered returns an error if messages that were completed are not sent.
func (e *Endpoint) undelivered(why error) error {
	err := transport.UndeliveredError{Rank: e.engine.Rank, Peer: -1, Err: why}
	for _, l := range e.links {
		if l != nil && l.err == nil && l.out.unsent > 0 {
			if err.Bytes += l.out.unsent; err.Peer < 0 {
				err.Peer = l.peer
			}
		}
	}
	if err.Bytes == 0 {
		return nil
	}
	return &err
}

// revokeNotices takes back the notices that MPI does not have yet, and the messages
// before them. It reports whether there were any.
func (e *Endpoint) revokeNotices(why error) bool {
	if len(e.backlog) == 0 {
		return false
	}
	e.abandoned = e.undelivered(why)
	for _, l := range slices.Clone(e.backlog) {
		l.dropQueued(func(m *outgoing) bool { return m.frame != nil })
	}
	return true
}

// release gives back the memory that MPI does not use any more.
func (e *Endpoint) release() {
	for _, frames := range e.spare {
		for _, f := range frames {
			free(f.buf)
		}
	}
	for _, a := range e.arrivals.spare {
		free(a.buf)
	}
	e.spare, e.arrivals.spare = [2][]*frame{}, nil
	openEndpoints.Add(-1)
}
