//go:build mpi

package mpi

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// notify tells every peer why this endpoint's part in the job has ended. It does so
// once. What was sent before comes first.
func (e *Endpoint) notify(n progress.Notice) {
	if e.noticed {
		return
	}
	e.noticed = true
	for peer := range e.engine.Size {
		if peer == e.engine.Rank {
			continue
		}
		if l := e.link(peer); l.err == nil {
			kind, call, text := n.To(peer)
			l.detach(header{
				kind: leftFrame + frameKind(kind), context: call.Context, sequence: call.Sequence,
				order: l.out.answered, taken: l.in.frames,
			}, text, nil)
		}
	}
}

// flushNotices returns when MPI has all frames, or closeTimeout has passed.
func (e *Endpoint) flushNotices() {
	if len(e.backlog) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = e.engine.AwaitFlush(ctx) // calls of MPI follow until the frames are sent (drain)
	}
}

// handleNotice takes the termination notice of the peer. Its last words may be here
// before messages that it has sent: the link ends when these have arrived.
func (l *link) handleNotice(h header, text []byte) error {
	call := transport.Signature{Context: h.context, Sequence: h.sequence}
	n, err := progress.ParseNotice(progress.NoticeKind(h.kind-leftFrame), call, text, l.e.engine.Rank, l.peer)
	if err != nil {
		return err
	}
	if !n.Left {
		l.e.deserted = true
	}
	if l.err == nil && l.ending == nil && !l.e.engine.Failed() {
		l.ending = n.PeerError(l.e.engine.Rank, l.peer)
		if l.starves() || !l.willComplete(h) {
			l.conclude()
		} else {
			l.e.recheck(l)
		}
	}
	unanswered := func(q *piece) bool { return int32(q.order-h.order) >= 0 }
	l.e.pulls.cancel(l, unanswered)
	return nil
}

// conclude ends a link whose peer has sent its termination notice.
func (l *link) conclude() {
	l.end(l.ending)
	l.e.engine.HearMismatch(l.err)
}

// recheckEnding looks again whether the link ends.
func (l *link) recheckEnding() {
	if l.ending != nil {
		l.e.recheck(l)
	}
}

// willComplete reports whether all transfers with a peer are complete in the end that
// has answered and taken what its termination notice says.
func (l *link) willComplete(notice header) bool {
	for _, p := range l.e.pulls.pulls {
		if p.link != l || p.dropped {
			continue
		}
		if !p.last || slices.ContainsFunc(p.pieces, func(q *piece) bool { return int32(q.order-notice.order) >= 0 }) {
			return false
		}
	}
	for _, s := range l.out.sources {
		if s.asked < len(s.data) {
			return false
		}
	}
	return !l.frames(func(f *frame) bool { return f.op != nil && int32(f.index-notice.taken) >= 0 })
}

// transfers reports whether messages from or to the peer are on their way, for which an
// operation waits.
func (l *link) transfers() bool {
	return len(l.out.sources) > 0 ||
		slices.ContainsFunc(l.e.pulls.pulls, func(p *pull) bool { return p.link == l && !p.dropped }) ||
		l.frames(func(f *frame) bool { return f.op != nil })
}
