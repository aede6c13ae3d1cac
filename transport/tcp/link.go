package tcp

import (
	"errors"
	"io"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A phase is how far a link has come.
type phase uint8

const (
	idle      phase = iota // nobody has asked for it
	dialling               // this rank is to say hello
	greeting               // it has said hello and awaits the answer
	expecting              // the peer's own hello has won and is on its way
	accepting              // the peer's hello is being answered
	up
)

// A link is the connection with one peer, or what leads to it.
type link struct {
	e      *Endpoint
	peer   int
	phase  phase
	stream stream
	err    error         // why nothing comes from the peer any more
	opened chan struct{} // closed when the link is up or has ended
	said   bool          // this rank's last word is written, or nobody would read it
	unsaid bool          // it is yet to be written

	// What the driver waits for, and what it has found.
	busy, again bool
	want, ready events

	sender
	receiver
	postman
}

// events is a set of what can be done with a stream.
type events uint8

const (
	readable events = 1 << iota
	writable
)

// A stream is a connection that never blocks.
type stream interface {
	// read reads into p what is there. It returns errAgain if nothing is, and
	// io.EOF when no more will be.
	read(p []byte) (int, error)
	// write writes what there is room for of head and then body. It returns
	// errAgain if there was none for a part of them.
	write(head, body []byte) (int, error)
	// close waits no longer than until the deadline for what is written to leave.
	close(deadline time.Time)
}

var errAgain = errors.New("not now")

// link returns the link with a rank.
func (e *Endpoint) link(rank int) *link {
	if e.links[rank] == nil {
		e.links[rank] = &link{e: e, peer: rank, opened: make(chan struct{})}
	}
	return e.links[rank]
}

// dialled returns the link with a rank, and sees to it that it comes up.
func (e *Endpoint) dialled(rank int) *link {
	l := e.link(rank)
	if l.phase == idle && l.err == nil {
		l.phase = dialling
		e.others.Go(func() { e.dial(l) })
	}
	return l
}

// attach brings the link up.
func (l *link) attach(s stream) {
	l.phase, l.stream, l.heard = up, s, true
	close(l.opened)
	l.makeBuffers()
	e := l.e
	if e.err != nil {
		l.farewell()
		return
	}
	l.flush()
	l.linked()
	if l.wants() != 0 {
		e.nudge() // the driver does not know this link yet
	}
}

// end notes that nothing comes from the peer any more, and why. It fails the
// endpoint if somebody waits for the peer.
func (l *link) end(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.head, l.body = nil, nil
	if l.phase != up {
		close(l.opened)
	}
	l.hush()
	l.noMail()
	l.fate()
}

// fate fails the endpoint if somebody waits for a peer from which nothing
// comes any more.
func (l *link) fate() {
	if l.err != nil && (len(l.posted) > 0 || len(l.queue) > 0) {
		l.e.fail(l.err)
	}
}

// gone ends the link because the connection with the peer broke.
func (l *link) gone(err error) {
	reason := "its connection ended"
	switch {
	case err != io.EOF:
		reason = err.Error()
	case l.left > 0 || l.rest > 0 || l.hi > l.lo:
		reason += " inside a message"
	}
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: reason})
}

// nonsense ends the link because what the peer sends is no frame.
func (l *link) nonsense(err error) {
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "its connection carries " + err.Error()})
}
