package tcp

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// terminate drops all that is in progress on the link, and writes this endpoint's
// termination notice. The frame that has begun comes first, in a copy, since the
// memory of the step goes back to its owner; then tagged messages that were sent
// eagerly.
func (l *link) terminate() {
	e := l.e
	eager := l.out.queuedFrames()
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
	l.writeNotice(slices.Concat(l.out.head, l.out.body, eager), e.engine.Notice())
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

// appendNotice appends the frame of this endpoint's termination notice. Where a peer
// was in another call, that peer is told both calls: the frame names one, and the text
// has the number of the other, the length of the one, and both.
func (e *Endpoint) appendNotice(b []byte, peer int, n progress.Notice) []byte {
	if m := n.Mismatch; m != nil && m.Peer == peer {
		h := header{kind: mismatchFrame, context: m.Mine.Context, sequence: m.Mine.Sequence}
		h.text = 8 + len(m.Mine.Call) + len(m.Theirs.Call)
		b = h.append(b)
		b = binary.LittleEndian.AppendUint32(b, m.Theirs.Sequence)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Mine.Call)))
		return append(append(b, m.Mine.Call...), m.Theirs.Call...)
	}
	kind, text := noticeText(n)
	return append(header{kind: kind, text: len(text)}.append(b), text...)
}

// noticeText returns how a termination notice without calls is sent.
func noticeText(n progress.Notice) (frameKind, string) {
	kind := abortFrame
	if n.Left {
		kind = leftFrame
	}
	return kind, n.Reason[:min(len(n.Reason), reasonMax)]
}

// handleNotice takes the termination notice of the peer.
func (l *link) handleNotice(h header, text []byte) error {
	n := progress.Notice{Left: h.kind == leftFrame, Reason: string(text)}
	if h.kind == mismatchFrame {
		m, err := parseMismatch(h, text, l.e.cfg.Rank, l.peer)
		if err != nil {
			return err
		}
		n.Mismatch = m
	}
	err := n.PeerError(l.e.cfg.Rank, l.peer)
	l.end(err)
	l.e.engine.HearMismatch(err)
	return nil
}

// parseMismatch returns the mismatch that a peer has found with this rank.
func parseMismatch(h header, text []byte, rank, peer int) (*transport.MismatchError, error) {
	if len(text) < 8 {
		return nil, fmt.Errorf("a mismatch of %d bytes", len(text))
	}
	sequence, n := binary.LittleEndian.Uint32(text), binary.LittleEndian.Uint32(text[4:])
	calls := text[8:]
	if int64(n) > int64(len(calls)) {
		return nil, fmt.Errorf("a mismatch with a call of %d bytes", n)
	}
	return &transport.MismatchError{
		Rank: peer, Peer: rank,
		Mine:   transport.Signature{Context: h.context, Sequence: h.sequence, Call: string(calls[:n])},
		Theirs: transport.Signature{Context: h.context, Sequence: sequence, Call: string(calls[n:])},
	}, nil
}
