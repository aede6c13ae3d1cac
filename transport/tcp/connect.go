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
)

const (
	version = 1
	magic   = "chorale"

	dialTimeout  = 10 * time.Second // for a connection and an answer to the hello
	greetTimeout = 5 * time.Second  // for a hello; whoever has none is a stranger
	guestsMax    = 64               // connections that have not said hello
)

// A verdict answers a hello.
type verdict uint8

const (
	welcome verdict = 1 + iota // the connection is the link
	mine                       // my own hello to you is on its way and wins
	over                       // I have given up; the text says why
	closing                    // I am leaving the job
)

// A hello begins a connection:
//
//	"chorale" · version u8 · token · from u32 · to u32 · size u32
//
// The answer is
//
//	"chorale" · version u8 · verdict u8 · 0 u8 · text u16 · text
const (
	prefixLen = len(magic) + 1
	helloLen  = prefixLen + 16 + 3*4
	answerLen = prefixLen + 4
)

func (e *Endpoint) hello(to int) []byte {
	b := append([]byte(magic), version)
	b = append(b, e.cfg.Token[:]...)
	for _, n := range []int{e.cfg.Rank, to, e.cfg.Size} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// guest returns the rank that a hello is from, or -1 if it is not from a rank
// of this job to this rank.
func (e *Endpoint) guest(b []byte) int {
	n := func(i int) uint32 { return binary.LittleEndian.Uint32(b[helloLen-12+4*i:]) }
	known := subtle.ConstantTimeCompare(b[prefixLen:helloLen-12], e.cfg.Token[:]) == 1
	from := n(0)
	if string(b[:len(magic)]) != magic || !known || n(1) != uint32(e.cfg.Rank) || n(2) != uint32(e.cfg.Size) ||
		from >= uint32(e.cfg.Size) || from == uint32(e.cfg.Rank) {
		return -1
	}
	return int(from)
}

func answer(v verdict, text string) []byte {
	b := append([]byte(magic), version, byte(v), 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// dial sees to it that a link comes up, or ends with a reason.
func (e *Endpoint) dial(l *link) {
	addr, err := e.cfg.Lookup(e.ctx, l.peer)
	if err != nil {
		e.unreachable(l, err)
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		if !e.enter(l, dialling, greeting) { // the peer was faster
			conn.Close()
			return
		}
		err = e.greet(ctx, l, conn)
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
	e.lock()
	defer e.mu.Unlock()
	if l.phase != from || l.err != nil || e.err != nil {
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
	e.lock()
	defer e.mu.Unlock()
	if l.phase != accepting && l.phase != up {
		l.end(why)
	}
}

// greet says hello and does what the answer says.
func (e *Endpoint) greet(ctx context.Context, l *link, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	v, text, err := e.introduce(l.peer, conn)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && v == welcome {
		e.open(l, conn)
		return nil
	}
	conn.Close()
	switch {
	case err != nil:
		return err
	case v == over:
		return parted(l.peer, abort, text)
	case v == closing:
		return parted(l.peer, bye, text)
	}
	e.lock()
	if l.phase == greeting {
		l.phase = expecting
		if e.err != nil {
			l.hush() // the answer to the peer's hello says it
		}
	}
	e.mu.Unlock()
	select {
	case <-l.opened:
		return nil
	case <-ctx.Done():
		return errors.New("its own connection has not come")
	}
}

// introduce says hello to a rank and returns its answer.
func (e *Endpoint) introduce(peer int, conn net.Conn) (verdict, string, error) {
	if _, err := conn.Write(e.hello(peer)); err != nil {
		return 0, "", err
	}
	b := make([]byte, answerLen)
	if _, err := io.ReadFull(conn, b); err != nil {
		return 0, "", fmt.Errorf("no answer from %s: %w", conn.RemoteAddr(), err)
	}
	v := verdict(b[prefixLen])
	switch {
	case string(b[:len(magic)]) != magic || v < welcome || v > closing:
		return 0, "", fmt.Errorf("what listens at %s is no rank", conn.RemoteAddr())
	case b[len(magic)] != version:
		return 0, "", fmt.Errorf("it speaks version %d, this rank version %d", b[len(magic)], version)
	}
	text := make([]byte, min(binary.LittleEndian.Uint16(b[prefixLen+2:]), reasonMax))
	_, err := io.ReadFull(conn, text)
	return v, string(text), err
}

// open brings a link up on a connection that both ends agree on.
func (e *Endpoint) open(l *link, conn net.Conn) {
	e.lock()
	defer e.mu.Unlock()
	if l.err != nil {
		conn.Close()
		return
	}
	s, err := e.poll.attach(l, conn)
	if err != nil {
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: err.Error()})
		return
	}
	l.attach(s)
}

// accept lets other ranks connect. Strangers cost a connection for a few
// seconds at most, and at most guestsMax of them at a time.
func (e *Endpoint) accept() {
	guests := make(chan struct{}, guestsMax)
	for {
		conn, err := e.cfg.Listener.Accept()
		switch {
		case err == nil:
		case errors.Is(err, net.ErrClosed):
			return
		default: // no file descriptor is free, most likely; one may be soon
			select {
			case <-e.ctx.Done():
				return
			case <-time.After(greetTimeout / 100):
			}
			continue
		}
		select {
		case guests <- struct{}{}:
			e.others.Go(func() {
				e.admit(conn)
				<-guests
			})
		case <-e.ctx.Done():
			conn.Close()
			return
		}
	}
}

// admit answers the hello of a connection.
func (e *Endpoint) admit(conn net.Conn) {
	stop := context.AfterFunc(e.ctx, func() { conn.Close() })
	defer stop()
	peer, err := e.meet(conn)
	if err != nil {
		conn.Close()
		return
	}
	l, v, text := e.judge(peer)
	if v != 0 {
		_, err = conn.Write(answer(v, text))
	}
	switch {
	case v != welcome:
		conn.Close() // whether the answer was heard changes nothing here
	case err != nil || conn.SetDeadline(time.Time{}) != nil:
		conn.Close()
		e.lock()
		l.end(&transport.PeerError{Peer: peer, Err: transport.ErrLost, Reason: "its connection ended before it began"})
		e.mu.Unlock()
	default:
		stop()
		e.open(l, conn)
	}
}

// meet reads a hello and returns the rank that says it.
func (e *Endpoint) meet(conn net.Conn) (int, error) {
	if err := conn.SetDeadline(time.Now().Add(greetTimeout)); err != nil {
		return 0, err
	}
	b := make([]byte, helloLen)
	if _, err := io.ReadFull(conn, b[:prefixLen]); err != nil {
		return 0, err
	}
	if string(b[:len(magic)]) == magic && b[len(magic)] != version {
		_, err := conn.Write(answer(closing, "")) // the version in it says enough
		return 0, errors.Join(errStranger, err)
	}
	if _, err := io.ReadFull(conn, b[prefixLen:]); err != nil {
		return 0, err
	}
	peer := e.guest(b)
	if peer < 0 {
		return 0, errStranger
	}
	return peer, nil
}

var errStranger = errors.New("not a rank of this job")

// judge decides what to answer to a rank that says hello. Where both have said
// hello, the lower rank's connection is the link. No verdict means that the
// rank has a link already, or had one.
func (e *Endpoint) judge(peer int) (l *link, v verdict, text string) {
	e.lock()
	defer e.mu.Unlock()
	l = e.link(peer)
	switch {
	case e.err != nil:
		how, text := e.lastWord()
		if how == bye {
			return l, closing, text
		}
		return l, over, text
	case l.err != nil || l.phase == accepting || l.phase == up:
		return l, 0, ""
	case l.phase == greeting && e.cfg.Rank < peer:
		return l, mine, ""
	}
	l.phase = accepting
	return l, welcome, ""
}
