package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	version = 3

	lookAgain    = 2 * time.Second  // between two looks whether a peer that does not answer is still there
	crossTimeout = 10 * time.Second // for the connection of a peer whose own request wins
)

// A reply answers a handshake request.
type reply uint8

const (
	accepted   reply = 1 + iota // the connection is the link
	crossed                     // this rank's own request is on its way, and wins
	hasAborted                  // this rank has given up; the text says why
	hasLeft                     // this rank leaves the job; the text is its last call
	refused                     // there is no link for this request; the text says why
)

// A connection begins with the mutual proof of the job's secret, as package proof has
// it. Behind its proof, the rank that has dialed sends a request
//
//	version u8 · 0 u8 · 0 u16 · size u32
//
// and the other one answers with a reply:
//
//	version u8 · reply u8 · text u16 · text
const (
	requestLen = 8
	replyLen   = 4
)

func appendRequest(b []byte, size int) []byte {
	return binary.LittleEndian.AppendUint32(append(b, version, 0, 0, 0), uint32(size))
}

// checkRequest returns why a request of a rank of this job is refused, or "".
func checkRequest(b []byte, size int) string {
	n := binary.LittleEndian.Uint32(b[4:])
	switch {
	case b[0] != version:
		return fmt.Sprintf("it speaks version %d, this rank version %d", version, b[0])
	case n != uint32(size):
		return fmt.Sprintf("its job has %d ranks, and this one %d", size, n)
	}
	return ""
}

func appendReply(b []byte, r reply, text string) []byte {
	text = text[:min(len(text), reasonMax)]
	b = append(b, version, byte(r))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// readReply reads the reply to a request.
func readReply(conn io.Reader) (r reply, text string, err error) {
	var b [replyLen]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		return 0, "", fmt.Errorf("%w: %w", proof.ErrDropped, err)
	}
	r, length := reply(b[1]), binary.LittleEndian.Uint16(b[2:])
	switch {
	case b[0] != version:
		return 0, "", fmt.Errorf("it speaks version %d, this rank version %d", b[0], version)
	case r < accepted || r > refused || length > reasonMax:
		return 0, "", fmt.Errorf("it sends the reply %x, which is none", b)
	}
	p := make([]byte, length)
	if _, err := io.ReadFull(conn, p); err != nil {
		return 0, "", fmt.Errorf("%w: %w", proof.ErrDropped, err)
	}
	return r, string(p), nil
}

// dial brings a link up, or ends it with a reason. A peer that does not answer is
// waited for as long as the peer is in the job: it may have been stopped. A connection
// that the peer drops is made anew, for proof.RetryTimeout.
func (e *Endpoint) dial(l *link) {
	var retry proof.Retry
	for {
		switch err := e.connect(l); {
		case err == nil:
			return
		case err == errNotCome:
			retry = proof.Retry{} // the peer answers
		case !errors.Is(err, proof.ErrDropped) || !e.enter(l, requesting, dialing) || !retry.Wait(e.connecting.ctx):
			e.unreachable(l, err)
			return
		}
	}
}

var (
	errNotCome = errors.New("the peer's own connection has not come")
	errFaster  = errors.New("the peer's own connection has come first")
)

// connect connects to the peer of a link once, and does what the peer replies. It
// returns nil if nothing is left to do.
func (e *Endpoint) connect(l *link) error {
	addr, gone := e.cfg.Lookup(e.connecting.ctx, l.peer) // by now it may be known what has become of the rank
	if gone != nil && (addr == "" || !errors.Is(gone, transport.ErrLeft)) {
		return gone
	}
	ctx, there := e.watchWhetherThere(l.peer)
	conn, err := e.reach(ctx, l.peer, addr)
	if err != nil {
		return e.whyNotReached(l.peer, there(), gone, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	r, text, err := e.request(l, conn)
	whole, left := stop(), there()
	if whole && left == nil && err == nil && r == accepted {
		e.bringUp(l, conn)
		return nil
	}
	conn.Close()
	switch {
	case left != nil:
		return left
	case err == errFaster || e.connecting.ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", conn.RemoteAddr(), err)
	case r == refused:
		return errors.New(text)
	case r == crossed:
		return e.expect(l)
	}
	n := progress.Notice{Left: r == hasLeft, Reason: text}
	return n.PeerError(e.cfg.Rank, l.peer)
}

// reach connects to a rank at one of the addresses where it may be, and has both prove
// the secret.
func (e *Endpoint) reach(ctx context.Context, peer int, text string) (net.Conn, error) {
	addresses, err := network.Split(text)
	if err != nil {
		return nil, err
	}
	return network.Dial(ctx, addresses, func(ctx context.Context, conn net.Conn) (net.Conn, error) {
		return e.connecting.prover.Connect(ctx, conn, uint32(peer))
	})
}

// whyNotReached returns why a peer was not reached. Left is what has become of it
// meanwhile, gone what was known before.
func (e *Endpoint) whyNotReached(peer int, left, gone, err error) error {
	switch {
	case left != nil:
		return left
	case e.connecting.ctx.Err() != nil:
		return nil
	case errors.Is(err, proof.ErrDropped):
		return err
	case gone != nil:
		return gone // and its address is another's now
	}
	if _, known := e.cfg.Lookup(e.connecting.ctx, peer); known != nil {
		return known
	}
	return err
}

// watchWhetherThere returns a context that ends when a peer is at no address any longer:
// what listens there now may be a stranger that says nothing. The function ends it, too,
// and returns what has become of the peer.
func (e *Endpoint) watchWhetherThere(peer int) (ctx context.Context, end func() error) {
	ctx, cancel := context.WithCancelCause(e.connecting.ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookAgain):
			}
			if addr, gone := e.cfg.Lookup(ctx, peer); gone != nil && addr == "" && ctx.Err() == nil {
				cancel(gone)
				return
			}
		}
	})
	return ctx, func() error {
		cancel(nil)
		looking.Wait()
		if gone := context.Cause(ctx); gone != context.Canceled {
			return gone
		}
		return nil
	}
}

// request sends a request to a peer that has proven the secret, and returns its reply.
func (e *Endpoint) request(l *link, conn net.Conn) (reply, string, error) {
	if !e.enter(l, dialing, requesting) {
		return 0, "", errFaster
	}
	if _, err := conn.Write(appendRequest(nil, e.cfg.Size)); err != nil {
		return 0, "", fmt.Errorf("%w: %w", proof.ErrDropped, err)
	}
	return readReply(conn)
}

// expect waits for the connection of a peer whose own request wins. If it does not
// come, the link may be dialed again: the peer may have given up.
func (e *Endpoint) expect(l *link) error {
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
	case <-e.connecting.ctx.Done():
	case <-time.After(crossTimeout):
		if e.enter(l, expecting, dialing) {
			return errNotCome
		}
	}
	return nil
}

// enter takes a link that is still wanted from one phase to the next, where it may be
// already.
func (e *Endpoint) enter(l *link, from, to phase) bool {
	e.engine.Lock()
	defer e.engine.Unlock()
	if l.phase != from && l.phase != to || l.err != nil || e.engine.Failed() {
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

// bringUp brings a link up on a connection that both ends agree on.
func (e *Endpoint) bringUp(l *link, conn net.Conn) {
	e.engine.Lock()
	defer e.engine.Unlock()
	if l.err != nil {
		conn.Close()
		return
	}
	remote := !network.OnOneHost(conn)
	if remote {
		_ = network.WatchDataHost(conn) // without it, a lost host is noticed later
	}
	s, err := e.polls.poller.attach(l, conn)
	if err != nil {
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: err.Error()})
		return
	}
	l.attach(s)
	if remote {
		e.watchHost(l)
	}
}

// accept lets the ranks of the job connect. While no file descriptor is free, nothing
// is accepted; an operation of this rank that needs a connection then fails, since it
// dials too.
func (e *Endpoint) accept() {
	s := proof.Server{Prover: e.connecting.prover, Listener: e.cfg.Listener, Handle: e.answer}
	s.Serve(e.connecting.ctx)
}

// answer answers the request of a rank that has proven the secret.
func (e *Endpoint) answer(peer int, conn net.Conn) {
	stop := context.AfterFunc(e.connecting.ctx, func() { conn.Close() })
	defer stop()
	var b [requestLen]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		conn.Close()
		return
	}
	if why := checkRequest(b[:], e.cfg.Size); why != "" {
		conn.Write(appendReply(nil, refused, why))
		conn.Close()
		return
	}
	l, r, text := e.decide(peer)
	_, err := conn.Write(appendReply(nil, r, text))
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

// decide decides what to reply to the request of a rank. Where both ranks have sent a
// request, the lower rank's connection is the link.
func (e *Endpoint) decide(peer int) (l *link, r reply, text string) {
	e.engine.Lock()
	defer e.engine.Unlock()
	l = e.link(peer)
	switch {
	case e.engine.Failed():
		n := e.engine.Notice()
		_, _, text := n.To(transport.Any)
		if n.Left {
			return l, hasLeft, text
		}
		return l, hasAborted, text
	case l.err != nil:
		return l, refused, fmt.Sprintf("it has ended its link with this rank: %v", l.err)
	case l.phase == accepting || l.phase == up:
		return l, refused, "it has a link with this rank already"
	case l.phase == requesting && e.cfg.Rank < peer:
		return l, crossed, ""
	}
	l.phase = accepting
	return l, accepted, ""
}
