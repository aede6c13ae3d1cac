package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// fail ends this endpoint's part in the job: every peer is told why, and every
// Exchange in progress returns err.
func (e *Endpoint) fail(err error) {
	if e.err != nil {
		return
	}
	e.err = err
	for _, l := range e.links {
		if l != nil {
			l.farewell()
		}
	}
	for _, o := range e.ops {
		o.finish(err)
	}
	e.nudge()
	if e.unsaid > 0 && !e.closed {
		e.others.Go(func() {
			e.lock()
			defer e.mu.Unlock()
			e.drain()
		})
	}
}

// farewell drops all that is under way and tells the peer how this endpoint's
// part has ended. The frame that has begun comes first, in a copy, since the
// memory of the step goes back to its owner; then letters that were posted.
func (l *link) farewell() {
	e := l.e
	letters := l.unposted()
	l.posted, l.queue, l.notes = nil, nil, nil
	switch {
	case l.said || l.err != nil || l.phase < greeting || l.phase == expecting:
		return // or the answer to the peer's hello will tell
	case !l.unsaid:
		l.unsaid = true
		e.unsaid++
	}
	if l.phase < up {
		return // attach comes here again
	}
	l.said = true
	frame := slices.Concat(l.head, l.body, letters)
	l.head, l.body = e.appendLastWord(frame, l.peer), nil
	e.watchOver(l)
	l.flush()
}

// hush notes that there is no last word to write any more.
func (l *link) hush() {
	l.said = true
	if !l.unsaid {
		return
	}
	l.unsaid = false
	if l.e.unsaid--; l.e.unsaid > 0 {
		return
	}
	for _, o := range l.e.ops {
		if o.drain {
			o.finish(nil)
		}
	}
}

// drain returns when the last word of every link is written, or nobody has
// read it for long.
func (e *Endpoint) drain() {
	if e.unsaid == 0 {
		return
	}
	late := time.AfterFunc(closeTimeout, func() {
		e.lock()
		defer e.mu.Unlock()
		for _, l := range e.links {
			if l != nil {
				l.hush()
			}
		}
		e.nudge()
	})
	defer late.Stop()
	o := e.begin(context.Background(), transport.Step{})
	o.drain = true
	defer e.leave(o)
	e.await(o)
}

// lastWord says how this endpoint's part has ended.
func (e *Endpoint) lastWord() (kind, string) {
	how, text := abort, e.err.Error()
	if e.err == transport.ErrClosed {
		how, text = bye, ""
		if e.last.Call != "" {
			text = fmt.Sprintf("its last call was call %d, %q", e.last.Sequence, e.last.Call)
		}
	}
	return how, text[:min(len(text), reasonMax)]
}

// appendLastWord appends the frame that says how this endpoint's part has
// ended. Where it did so because of what the peer has called, the peer is to
// know both calls: the frame names one, and the text holds the other's number,
// the length of the one, and both.
func (e *Endpoint) appendLastWord(b []byte, peer int) []byte {
	var m *transport.MismatchError
	if errors.As(e.err, &m) && m.Peer == peer {
		h := header{kind: mismatch, context: m.Mine.Context, sequence: m.Mine.Sequence}
		h.text = 8 + len(m.Mine.Call) + len(m.Theirs.Call)
		b = h.append(b)
		b = binary.LittleEndian.AppendUint32(b, m.Theirs.Sequence)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Mine.Call)))
		return append(append(b, m.Mine.Call...), m.Theirs.Call...)
	}
	how, text := e.lastWord()
	return append(header{kind: how, text: len(text)}.append(b), text...)
}

// parseMismatch returns the mismatch that a peer has found, as this rank would
// have found it.
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
		Rank: rank, Peer: peer,
		Mine:   transport.Signature{Context: h.context, Sequence: sequence, Call: string(calls[n:])},
		Theirs: transport.Signature{Context: h.context, Sequence: h.sequence, Call: string(calls[:n])},
	}, nil
}

// parted returns what the last word of a peer means to this rank.
func parted(peer int, how kind, text string) error {
	if how == bye {
		return &transport.PeerError{Peer: peer, Err: transport.ErrLeft, Reason: text}
	}
	return &transport.PeerError{Peer: peer, Err: transport.ErrAborted, Reason: text}
}
