package tcp

import (
	"errors"
	"io"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A phase is how far a link has come.
type phase uint8

const (
	idle       phase = iota // no operation has needed it
	dialing                 // this rank is to send a handshake request
	requesting              // it has sent one, and awaits the reply
	expecting               // the peer's own request has won and is on its way
	accepting               // the peer's request is being answered
	up
)

// A link is the connection with one peer, or what leads to it.
type link struct {
	e      *Endpoint
	peer   int
	phase  phase
	stream stream
	remote bool          // the stream leads to another host
	err    error         // why nothing comes from the peer any more
	opened chan struct{} // closed when the link is up or has ended
	linkPoll
	out    sendBuffer
	in     recvBuffer
	tagged taggedLink
	burst  burst
	streak streak
	notice noticeState
}

// A linkPoll is what the progress owner waits for on a link, and what it has found.
type linkPoll struct {
	busy, changed bool // the link is in the lists of the poll set
	want, ready   events
}

// A noticeState says how far this rank's termination notice to the peer has come.
type noticeState struct {
	done   bool // it is written, or being written, or the peer would not read it
	queued bool // it is not completely written
	size   int  // its bytes
}

// events is a set of what can be done with a stream.
type events uint8

const (
	readable events = 1 << iota
	writable
)

// A stream is a connection that never blocks.
type stream interface {
	// read reads into p what there is. It returns errAgain if there is nothing, and
	// io.EOF when there will be nothing more.
	read(p []byte) (int, error)
	// write writes what there is room for of head and then body. It returns errAgain if
	// there was no room for a part of them.
	write(head, body []byte) (int, error)
	// unsent returns how many bytes were written that have not left this machine.
	unsent() int
	// shutdown says that nothing more will be written.
	shutdown()
	// unacknowledged throws away what has come, and returns how many bytes, of what was
	// written and of a byte for shutdown, may not be in the peer's machine yet. There are
	// none when the peer has gone.
	unacknowledged() int
	// silent reports whether no packet has come for so long, although one has to, that
	// the peer's host is lost.
	silent() bool
	close()
}

var errAgain = errors.New("not now")

// link returns the link with a rank.
func (e *Endpoint) link(rank int) *link {
	if e.links[rank] == nil {
		e.links[rank] = &link{e: e, peer: rank, opened: make(chan struct{}), out: sendBuffer{current: -1}}
	}
	return e.links[rank]
}

// dialed returns the link with a rank, and has it come up.
func (e *Endpoint) dialed(rank int) *link {
	l := e.link(rank)
	if l.phase == idle && l.err == nil {
		l.phase = dialing
		e.engine.GoUnlocked(func() { e.dial(l) })
	}
	return l
}

// attach brings the link up.
func (l *link) attach(s stream) {
	l.phase, l.stream, l.in.heard = up, s, true
	close(l.opened)
	l.in.buf = make([]byte, inLen)
	l.out.buf = make([]byte, 0, outMax+copyMax)
	l.tellRevocations()
	e := l.e
	if e.engine.Failed() {
		l.terminate()
		return
	}
	l.flush()
	if len(l.out.controls) > 0 {
		l.flushLater()
	}
	e.engine.LinkUp(l.peer)
	if l.wants() != 0 {
		e.engine.Interrupt() // the owner does not poll this link yet
	}
}

// end notes that nothing comes from the peer any more, and why. It revokes the
// communicators of steps that wait for the peer and, unless the peer has left, all others
// that it belongs to.
func (l *link) end(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.out.head, l.out.body = nil, nil
	if l.phase == up {
		l.stream.shutdown()
	} else {
		close(l.opened)
	}
	l.noticeDone()
	l.dropTagged()
	l.failWaiters()
}

// failWaiters revokes the communicators of steps that wait for a peer from which nothing
// comes any more.
func (l *link) failWaiters() {
	if l.err == nil {
		return
	}
	for s := l.waiting(); s != nil && !l.e.engine.Failed(); s = l.waiting() {
		l.e.engine.FailStep(s, l.err)
	}
}

// waiting returns a step that waits for the peer of a link that has ended, or nil.
func (l *link) waiting() *match.Step {
	if !l.in.queue.Idle() {
		return l.in.queue.Receives()[0].Step
	}
	if len(l.out.queue) > 0 {
		return &l.out.queue[0].op.Step
	}
	return nil
}

// lost ends the link because the connection with the peer broke.
func (l *link) lost(err error) {
	reason := "its connection ended"
	switch {
	case err != io.EOF:
		reason = err.Error()
	case l.in.left > 0 || l.in.rest > 0 || len(l.in.partials) > 0 || l.in.hi > l.in.lo:
		reason += " inside a message"
	}
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: reason})
}

// protocolError ends the link because the peer sends what is no frame.
func (l *link) protocolError(err error) {
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "its connection carries " + err.Error()})
}
