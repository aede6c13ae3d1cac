package proof

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// Timeout bounds the time from accepting a connection to the peer's proof, and to
	// its first message after that.
	Timeout = 10 * time.Second

	// UnprovenMax is how many connections beyond one for each rank a Server keeps, unless
	// it has another Max, that have not proven anything. One more drops the oldest.
	UnprovenMax = 64

	// acceptTimeout is how long accepting may fail before the Server reports it, as it
	// does while no file descriptor is free.
	acceptTimeout = time.Second
	acceptPause   = 10 * time.Millisecond // between two attempts
)

// A Server accepts the connections of a listener, and hands on those whose peers have
// proven that they know the job's secret.
type Server struct {
	Prover   *Prover
	Listener net.Listener

	// Handle takes a connection that a rank has opened, in a goroutine of its own: a
	// [tls.Conn] if the Prover has TLS. It has to close the connection. The deadline of
	// the proof is still set.
	Handle func(from int, conn net.Conn)

	// Failed is called if no connection could be accepted for acceptTimeout, and
	// again whenever that time has passed once more. Nil ignores it.
	Failed func(err error)

	// Max is how many connections beyond one for each rank are kept that have not proven
	// anything. 0 means UnprovenMax.
	Max int

	unproven unproven
}

// Serve returns when the listener is closed, and every Handle has returned. When the
// listener is closed, or ctx ends, all connections are dropped that have not proven
// anything.
func (s *Server) Serve(ctx context.Context) {
	var serving sync.WaitGroup
	defer serving.Wait()
	defer s.unproven.close()
	stop := context.AfterFunc(ctx, s.unproven.close)
	defer stop()
	s.unproven.max = cmp.Or(s.Max, UnprovenMax) + int(s.Prover.size)
	var failing time.Time // since when
	for {
		conn, err := s.Listener.Accept()
		switch {
		case err == nil:
			failing = time.Time{}
			if s.unproven.add(conn) {
				serving.Go(func() { s.prove(ctx, conn) })
			}
			continue
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return
		}
		s.unproven.drop() // frees a descriptor
		now := time.Now()
		if failing.IsZero() {
			failing = now
		} else if now.Sub(failing) > acceptTimeout && s.Failed != nil {
			failing = now
			s.Failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(acceptPause):
		}
	}
}

// prove has the peer of a connection prove the secret.
func (s *Server) prove(ctx context.Context, conn net.Conn) {
	conn.SetDeadline(time.Now().Add(Timeout))
	from, nonces, err := s.Prover.accept(conn)
	if kept := s.unproven.remove(conn); err != nil || !kept {
		conn.Close()
		return
	}
	if s.Prover.TLS {
		c := tls.Server(conn, s.Prover.config(nonces))
		if c.HandshakeContext(ctx) != nil {
			conn.Close()
			return
		}
		conn = c
	}
	s.Handle(from, conn)
}

// unproven are the connections that have not proven anything.
type unproven struct {
	mu     sync.Mutex
	max    int
	conns  []net.Conn // oldest first
	closed bool
}

// add adds a connection, and drops the oldest if that is one too many.
func (u *unproven) add(conn net.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		conn.Close()
		return false
	}
	if len(u.conns) == u.max {
		u.dropLocked()
	}
	u.conns = append(u.conns, conn)
	return true
}

// remove removes a connection, and reports whether it was still there.
func (u *unproven) remove(conn net.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := len(u.conns)
	u.conns = slices.DeleteFunc(u.conns, func(c net.Conn) bool { return c == conn })
	return len(u.conns) < n
}

// drop closes the oldest connection, if there is one.
func (u *unproven) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropLocked()
}

func (u *unproven) dropLocked() {
	if len(u.conns) > 0 {
		u.conns[0].Close()
		u.conns = slices.Delete(u.conns, 0, 1)
	}
}

// close drops all connections, now and later.
func (u *unproven) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, conn := range u.conns {
		conn.Close()
	}
	u.conns = nil
}
