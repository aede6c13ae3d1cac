package tcp

import (
	"cmp"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	// closeTimeout bounds how long an endpoint waits, when it ends, for peers that do not
	// read its termination notice. They find a broken connection instead.
	closeTimeout = time.Second

	// lingerPause is for how long at most an endpoint that leaves does not look whether
	// its messages have arrived.
	lingerPause = 20 * time.Millisecond
)

// Close implements [transport.Endpoint]. Exchanges in progress return
// [transport.ErrClosed]. While a message of one has been sent in part, or the contents of a
// tagged message are on their way, Close does not wait for receivers. Otherwise it waits until the systems of the receivers have all messages, or where this system does not
// tell, until the receivers have read them, which they do up to a bound while they
// compute.
func (e *Endpoint) Close() error {
	e.engine.Lock()
	if !e.engine.StartLeaving() {
		e.engine.Unlock()
		return nil
	}
	e.EndAlloc()
	e.endSteps()
	deadline := time.Now().Add(cmp.Or(e.cfg.Linger, transport.Linger))
	orderly := e.engine.MayLinger() == nil // otherwise peers may miss some of the messages in progress, too
	var err error
	if orderly {
		if err = e.linger(deadline); err != nil {
			e.engine.Fail(err)
			orderly = false
		}
	}
	interrupted := !orderly && !e.engine.Failed()
	noticeDeadline := time.Now().Add(closeTimeout)
	if e.cfg.Listener != nil {
		e.cfg.Listener.Close() // its error would tell the caller nothing
	}
	e.engine.Close(e.flushNotices)
	if interrupted {
		err = e.unwritten()
	}
	for _, l := range e.links {
		if l != nil {
			l.end(transport.ErrClosed)
		}
	}
	e.engine.Unlock()

	e.connecting.cancel()
	e.engine.WaitBackground()
	if orderly {
		err = e.awaitAcknowledgments(deadline, noticeDeadline)
	} else if late := e.awaitAcknowledgments(noticeDeadline, noticeDeadline); interrupted {
		err = cmp.Or(err, late)
	}
	for _, l := range e.links {
		if l != nil && l.stream != nil {
			l.stream.close()
		}
	}
	e.polls.poller.close()
	openEndpoints.Add(-1)
	return err
}

// endSteps ends the steps in progress, unless one of their messages has begun: the peer takes
// the rest of it, or nothing that comes behind. Messages that have not begun are not sent.
func (e *Endpoint) endSteps() {
	if e.engine.Failed() || slices.ContainsFunc(e.links, (*link).sendsStep) {
		return
	}
	for _, l := range e.links {
		if l != nil {
			l.in.dropSteps()
			l.out.dropSteps()
		}
	}
	e.engine.Steps(func(o *progress.Op) { o.Finish(transport.ErrClosed) })
}

// sendsStep reports whether a message of a step has begun.
func (l *link) sendsStep() bool {
	return l != nil && slices.ContainsFunc(l.out.queue, func(m outgoing) bool { return m.op != nil && m.begun })
}

// dropSteps drops the messages of steps, none of which has begun.
func (s *sendBuffer) dropSteps() {
	s.drop(func(m *outgoing) bool { return m.op != nil })
}

// dropSteps drops the receives of steps. What is still to come for them is thrown away.
func (in *recvBuffer) dropSteps() {
	in.queue.CancelAll()
	in.discard(func(uint32) bool { return true })
}

// linger waits until all messages have left this machine, or their receivers have gone,
// and tells each receiver then that this rank leaves. If the endpoint fails meanwhile, what
// had not left before may not be received: the receivers learn of the failure.
func (e *Endpoint) linger(deadline time.Time) error {
	err := transport.UndeliveredError{Rank: e.cfg.Rank}
	for pause := time.Duration(0); !e.engine.Failed(); pause = nextPause(pause) {
		err.Peer, err.Bytes = -1, 0
		for _, l := range e.links {
			if l == nil {
				continue
			}
			l.leave()
			if n := l.undelivered(); n > 0 {
				if err.Bytes += n; err.Peer < 0 {
					err.Peer = l.peer
				}
			}
		}
		switch {
		case err.Bytes == 0:
			return nil
		case time.Now().After(deadline):
			err.Err = transport.ErrLinger
			return &err
		}
		e.engine.Unlock()
		time.Sleep(pause)
		e.engine.Lock()
	}
	err.Err = e.engine.Cause()
	return &err
}

// unwritten returns an error if an endpoint that closes in the middle of a message has not
// written all that was sent. It does not tell messages that were completed from the rest.
func (e *Endpoint) unwritten() error {
	for _, l := range e.links {
		if l != nil && l.err == nil && len(l.out.head)+len(l.out.body) > 0 {
			return &transport.UndeliveredError{Rank: e.cfg.Rank, Peer: l.peer, Bytes: len(l.out.head) + len(l.out.body), Err: transport.ErrClosed}
		}
	}
	return nil
}

// nextPause returns the pause that follows another one, or none.
func nextPause(pause time.Duration) time.Duration {
	return min(max(2*pause, lingerPause/1000), lingerPause)
}

// leave tells the peer that this rank leaves if everything before has left this machine.
func (l *link) leave() {
	if l.err != nil || l.notice.done || l.phase != up {
		return
	}
	l.in.drains, l.in.headUnexpected = true, false // it may have gone
	l.parse()
	l.receive()
	l.flush()
	if l.undelivered() == 0 && l.err == nil && !l.notice.done && !l.out.dropped {
		l.queueNotice()
		l.writeNotice(nil, l.e.engine.LeavingNotice())
	}
}

// undelivered returns how many bytes to the peer have not left this machine, without the
// termination notice. Nothing is waited for behind a message that was dropped when a part
// of it was written.
func (l *link) undelivered() int {
	if l.err != nil || l.phase != up || l.out.dropped {
		return 0
	}
	n := len(l.out.head) + len(l.out.body) + l.stream.unsent()
	for i := range l.out.queue {
		n += len(l.out.queue[i].data) - l.out.queue[i].sent
	}
	return max(n-l.notice.size, 0)
}

// awaitAcknowledgments returns when all that was written to the peers has arrived there,
// or they have gone. The termination notice has only to leave this machine, and has a
// deadline of its own for that.
func (e *Endpoint) awaitAcknowledgments(deadline, noticeDeadline time.Time) error {
	for _, l := range e.links {
		if l == nil || l.stream == nil {
			continue
		}
		for pause := time.Duration(0); l.closedHere(); pause = nextPause(pause) {
			n, now := l.stream.unacknowledged(), time.Now()
			data := n - l.notice.size - 1
			if l.out.dropped {
				data = 0
			}
			if n == 0 || l.remote && l.stream.silent() || data <= 0 && (l.stream.unsent() == 0 || now.After(noticeDeadline)) {
				break
			}
			why := e.abandoned()
			if now.After(deadline) {
				why = cmp.Or(why, transport.ErrLinger)
			}
			if why != nil && data > 0 {
				return &transport.UndeliveredError{Rank: e.cfg.Rank, Peer: l.peer, Bytes: data, Err: why}
			}
			if why != nil {
				break
			}
			time.Sleep(pause)
		}
	}
	return nil
}

// closedHere reports whether the link has ended by Close, and not by what its peer did.
func (l *link) closedHere() bool {
	l.e.engine.Lock()
	defer l.e.engine.Unlock()
	return l.err == transport.ErrClosed
}

// abandoned returns why the acknowledgments are waited for no longer, or nil.
func (e *Endpoint) abandoned() error {
	e.engine.Lock()
	defer e.engine.Unlock()
	return e.engine.Abandoned()
}
