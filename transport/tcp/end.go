package tcp

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// terminate drops all that is in progress on the link, and writes this endpoint's
// termination notice. The frame that has begun comes first, in a copy, since the
// memory of the step goes back to its owner; then revocations, and tagged messages that
// were sent eagerly.
func (l *link) terminate() {
	e := l.e
	rest := slices.Concat(l.out.controls, l.out.queuedFrames())
	l.in.queue.CancelAll()
	l.out.queue, l.out.controls, l.out.current = nil, nil, -1
	l.setTaggedQueued(false)
	switch {
	case l.notice.done || l.err != nil || l.phase < requesting || l.phase == expecting:
		return // or the reply to the peer's request has it
	}
	l.queueNotice()
	if l.phase < up {
		return // attach comes here again
	}
	l.writeNotice(slices.Concat(l.out.head, l.out.body, rest), e.engine.Notice())
}

// writeNotice writes a termination notice behind some frames.
func (l *link) writeNotice(frames []byte, n progress.Notice) {
	behind := len(frames)
	l.out.head, l.out.body = l.e.appendNotice(frames, l.peer, n), nil
	l.notice.done, l.notice.size = true, len(l.out.head)-behind
	l.e.watch(l)
	l.flush()
}

// queueNotice notes that there is a termination notice to write.
func (l *link) queueNotice() {
	if !l.notice.queued {
		l.notice.queued = true
		l.e.queued.notices++
	}
}

// noticeDone notes that there is no termination notice to write any more.
func (l *link) noticeDone() {
	l.notice.done = true
	if !l.notice.queued {
		return
	}
	l.notice.queued = false
	if l.e.queued.notices--; l.e.queued.notices == 0 {
		l.e.engine.Flushed()
	}
}

// flushNotices returns when the termination notice is written to every peer, or some
// have not read it for closeTimeout.
func (e *Endpoint) flushNotices() {
	if e.queued.notices == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if e.engine.AwaitFlush(ctx) == nil {
		return
	}
	for _, l := range e.links {
		if l != nil {
			l.noticeDone()
		}
	}
}

// appendNotice appends the frame of this endpoint's termination notice to a peer.
func (e *Endpoint) appendNotice(b []byte, peer int, n progress.Notice) []byte {
	kind, call, text := n.To(peer)
	h := header{kind: leftFrame + frameKind(kind), context: call.Context, sequence: call.Sequence, text: len(text)}
	return append(h.append(b), text...)
}

// handleNotice takes the termination notice of the peer.
func (l *link) handleNotice(h header, text []byte) error {
	call := transport.Signature{Context: h.context, Sequence: h.sequence}
	n, err := progress.ParseNotice(progress.NoticeKind(h.kind-leftFrame), call, text, l.e.cfg.Rank, l.peer)
	if err != nil {
		return err
	}
	l.end(n.PeerError(l.e.cfg.Rank, l.peer))
	return nil
}
