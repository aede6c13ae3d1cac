package tcp

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	version = 1
	magic   = "chorale"

	dialTimeout        = 10 * time.Second // for a connection and a reply to the request
	requestTimeout     = 5 * time.Second  // for a request on a connection that was accepted
	unauthenticatedMax = 64               // connections that have sent no request yet
)

// A reply answers a handshake request.
type reply uint8

const (
	accepted   reply = 1 + iota // the connection is the link
	crossed                     // this rank's own request is on its way, and wins
	hasAborted                  // this rank has given up; the text says why
	hasLeft                     // this rank leaves the job; the text is its last call
)

// A handshake request begins a connection:
//
//	"chorale" · version u8 · token · from u32 · to u32 · size u32
//
// The reply is
//
//	"chorale" · version u8 · reply u8 · 0 u8 · text u16 · text
const (
	prefixLen  = len(magic) + 1
	requestLen = prefixLen + 16 + 3*4
	replyLen   = prefixLen + 4
)

func (e *Endpoint) request(to int) []byte {
	b := append([]byte(magic), version)
	b = append(b, e.cfg.Token[:]...)
	for _, n := range []int{e.cfg.Rank, to, e.cfg.Size} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// requester returns the rank that a request is from, or -1 if it is not from a rank
// of this job to this rank.
func (e *Endpoint) requester(b []byte) int {
	n := func(i int) uint32 { return binary.LittleEndian.Uint32(b[requestLen-12+4*i:]) }
	authentic := subtle.ConstantTimeCompare(b[prefixLen:requestLen-12], e.cfg.Token[:]) == 1
	from := n(0)
	if string(b[:len(magic)]) != magic || !authentic || n(1) != uint32(e.cfg.Rank) || n(2) != uint32(e.cfg.Size) ||
		from >= uint32(e.cfg.Size) || from == uint32(e.cfg.Rank) {
		return -1
	}
	return int(from)
}

func appendReply(b []byte, r reply, text string) []byte {
	b = append(append(b, magic...), version, byte(r), 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// dial brings a link up, or ends it with a reason.
func (e *Endpoint) dial(l *link) {
	addr, err := e.cfg.Lookup(e.connecting.ctx, l.peer)
	if err != nil {
		e.unreachable(l, err)
		return
	}
	ctx, cancel := context.WithTimeout(e.connecting.ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		if !e.enter(l, dialing, requesting) { // the peer was faster
			conn.Close()
			return
		}
		err = e.sendRequest(ctx, l, conn)
	}
	if err == nil {
		return
	}
	if ctx.Err() == nil {
		// By now it may be known what has become of the rank.
		if _, known := e.cfg.Lookup(ctx, l.peer); known != nil {
			err = known
		}
	}
	e.unreachable(l, err)
}

// enter takes a link that is still wanted from one phase to the next.
func (e *Endpoint) enter(l *link, from, to phase) bool {
	e.engine.Lock()
	defer e.engine.Unlock()
	if l.phase != from || l.err != nil || e.engine.Failed() {
		return false
	}
	l.phase = to
	return true
}

// unreachable ends a link that this rank could not make, unless the peer could.
func (e *Endpoint) unreachable(l *link, err error) {
	why := &transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: err.Error()}
	if known := new(transport.PeerError); errors.As(err, &known) {
		why = known
	} else if errors.Is(err, transport.ErrLeft) {
		why = &transport.PeerError{Peer: l.peer, Err: transport.ErrLeft}
	}
	e.engine.Lock()
	defer e.engine.Unlock()
	if l.phase != accepting && l.phase != up {
		l.end(why)
	}
}

// sendRequest sends a request, and does what the reply says.
func (e *Endpoint) sendRequest(ctx context.Context, l *link, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	r, text, err := e.awaitReply(l.peer, conn)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && r == accepted {
		e.bringUp(l, conn)
		return nil
	}
	conn.Close()
	switch {
	case err != nil:
		return err
	case r == hasAborted, r == hasLeft:
		n := progress.Notice{Left: r == hasLeft, Reason: text}
		return n.PeerError(e.cfg.Rank, l.peer)
	}
	e.engine.Lock()
	if l.phase == requesting {
		l.phase = expecting
		if e.engine.Failed() {
			l.noticeDone() // the reply to the peer's request has it
		}
	}
	e.engine.Unlock()
	select {
	case <-l.opened:
		return nil
	case <-ctx.Done():
		return errors.New("its own connection has not come")
	}
}

// awaitReply sends a request to a rank, and returns its reply.
func (e *Endpoint) awaitReply(peer int, conn net.Conn) (reply, string, error) {
	if _, err := conn.Write(e.request(peer)); err != nil {
		return 0, "", err
	}
	b := make([]byte, replyLen)
	if _, err := io.ReadFull(conn, b); err != nil {
		return 0, "", fmt.Errorf("no answer from %s: %w", conn.RemoteAddr(), err)
	}
	r := reply(b[prefixLen])
	switch {
	case string(b[:len(magic)]) != magic || r < accepted || r > hasLeft:
		return 0, "", fmt.Errorf("what listens at %s is no rank", conn.RemoteAddr())
	case b[len(magic)] != version:
		return 0, "", fmt.Errorf("it speaks version %d, this rank version %d", b[len(magic)], version)
	}
	text := make([]byte, min(binary.LittleEndian.Uint16(b[prefixLen+2:]), reasonMax))
	_, err := io.ReadFull(conn, text)
	return r, string(text), err
}

// bringUp brings a link up on a connection that both ends agree on.
func (e *Endpoint) bringUp(l *link, conn net.Conn) {
	e.engine.Lock()
	defer e.engine.Unlock()
	if l.err != nil {
		conn.Close()
		return
	}
	s, err := e.polls.poller.attach(l, conn)
	if err != nil {
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: err.Error()})
		return
	}
	l.attach(s)
}

// accept lets other ranks connect. A connection without a request is kept for
// requestTimeout at most, and at most unauthenticatedMax of them at a time.
func (e *Endpoint) accept() {
	unauthenticated := make(chan struct{}, unauthenticatedMax)
	for {
		conn, err := e.cfg.Listener.Accept()
		switch {
		case err == nil:
		case errors.Is(err, net.ErrClosed):
			return
		default: // no file descriptor is free, most likely; one may be soon
			select {
			case <-e.connecting.ctx.Done():
				return
			case <-time.After(requestTimeout / 100):
			}
			continue
		}
		select {
		case unauthenticated <- struct{}{}:
			e.engine.GoUnlocked(func() {
				e.answer(conn)
				<-unauthenticated
			})
		case <-e.connecting.ctx.Done():
			conn.Close()
			return
		}
	}
}

// answer answers the request of a connection.
func (e *Endpoint) answer(conn net.Conn) {
	stop := context.AfterFunc(e.connecting.ctx, func() { conn.Close() })
	defer stop()
	peer, err := e.readRequest(conn)
	if err != nil {
		conn.Close()
		return
	}
	l, r, text := e.decide(peer)
	if r != 0 {
		_, err = conn.Write(appendReply(nil, r, text))
	}
	switch {
	case r != accepted:
		conn.Close() // whether the reply has arrived changes nothing here
	case err != nil || conn.SetDeadline(time.Time{}) != nil:
		conn.Close()
		e.engine.Lock()
		l.end(&transport.PeerError{Peer: peer, Err: transport.ErrLost, Reason: "its connection ended before it began"})
		e.engine.Unlock()
	default:
		stop()
		e.bringUp(l, conn)
	}
}

// readRequest reads a request and returns the rank that it is from.
func (e *Endpoint) readRequest(conn net.Conn) (int, error) {
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return 0, err
	}
	b := make([]byte, requestLen)
	if _, err := io.ReadFull(conn, b[:prefixLen]); err != nil {
		return 0, err
	}
	if string(b[:len(magic)]) == magic && b[len(magic)] != version {
		_, err := conn.Write(appendReply(nil, hasLeft, "")) // the peer reads the version in it
		return 0, errors.Join(errNoRank, err)
	}
	if _, err := io.ReadFull(conn, b[prefixLen:]); err != nil {
		return 0, err
	}
	peer := e.requester(b)
	if peer < 0 {
		return 0, errNoRank
	}
	return peer, nil
}

var errNoRank = errors.New("not a rank of this job")

// decide decides what to reply to the request of a rank. Where both ranks have sent a
// request, the lower rank's connection is the link. No reply means that the rank has a
// link already, or had one.
func (e *Endpoint) decide(peer int) (l *link, r reply, text string) {
	e.engine.Lock()
	defer e.engine.Unlock()
	l = e.link(peer)
	switch {
	case e.engine.Failed():
		kind, text := noticeText(e.engine.Notice())
		if kind == leftFrame {
			return l, hasLeft, text
		}
		return l, hasAborted, text
	case l.err != nil || l.phase == accepting || l.phase == up:
		return l, 0, ""
	case l.phase == requesting && e.cfg.Rank < peer:
		return l, crossed, ""
	}
	l.phase = accepting
	return l, accepted, ""
}
