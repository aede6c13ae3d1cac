package proof

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// serve starts a server of rank 0 of 4 that counts the ranks whose connections it
// hands on.
func serve(t *testing.T) (addr string, handled chan int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handled = make(chan int, 100)
	s := &Server{Prover: zero, Listener: l, Handle: func(from int, conn net.Conn) {
		conn.Write([]byte{1})
		conn.Close()
		handled <- from
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(ctx) })
	t.Cleanup(func() {
		l.Close()
		cancel()
		serving.Wait()
	})
	return l.Addr().String(), handled
}

// connect dials like an honest rank, until its proof is taken.
func connect(t *testing.T, p *Prover, addr string) {
	t.Helper()
	var retry Retry
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Connect(t.Context(), conn, 0)
		if err == nil {
			// The server may still drop the connection before it reads the proof.
			if _, err = c.Read(make([]byte, 1)); err != nil {
				err = ErrDropped
			}
		}
		conn.Close()
		if err == nil {
			return
		}
		if !errors.Is(err, ErrDropped) || !retry.Wait(t.Context()) {
			t.Fatal(err)
		}
	}
}

func TestIdleConnectionsKeepNoRankOut(t *testing.T) {
	addr, handled := serve(t)
	var idle []net.Conn
	for range 3 * UnprovenMax {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
	}
	connect(t, one, addr)
	if got := <-handled; got != 1 {
		t.Errorf("rank %d, want 1", got)
	}
	// The first have been dropped, and the last not.
	for _, conn := range idle[:3*UnprovenMax-UnprovenMax-4-1] {
		conn.SetReadDeadline(time.Now().Add(Timeout / 2))
		if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Fatalf("an old idle connection: %v, want it dropped", err)
		}
	}
	last := idle[len(idle)-1]
	last.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := last.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("the last idle connection: %v, want it open", err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestAServerThatEndsDoesNotWaitForStrangers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Prover: zero, Listener: l}
	served := make(chan struct{})
	go func() {
		s.Serve(t.Context())
		close(served)
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for s.unproven.len() == 0 {
		time.Sleep(time.Millisecond)
	}
	l.Close()
	select {
	case <-served:
	case <-time.After(Timeout / 2):
		t.Error("the server waits for a stranger")
	}
}

func (u *unproven) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns)
}

// A pipeListener accepts the ends of pipes.
type pipeListener struct {
	net.Listener
	conns chan net.Conn
}

func (l pipeListener) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

// dripPause is the pause of a peer that says a byte at a time.
const dripPause = Timeout / 20

// The limit is one for all that a peer has to say, and not one for each part of it.
func TestAPeerThatIsSlowIsDroppedInTimeWhereverItIs(t *testing.T) {
	rank := map[bool]*Prover{false: one, true: withTLS(testSecret, 1)}
	prove := func(conn net.Conn, encrypted bool, then ...byte) {
		proof, _, err := rank[encrypted].dial(conn, 0)
		if err != nil {
			t.Error(err)
		}
		conn.Write(append(proof[:], then...))
	}
	for what, say := range map[string]func(conn net.Conn, encrypted bool){
		"before it says anything":              func(net.Conn, bool) {},
		"in a greeting":                        func(conn net.Conn, _ bool) { conn.Write([]byte(magic)) },
		"behind a greeting":                    func(conn net.Conn, tls bool) { conn.Write(rank[tls].appendGreeting(nil, proven)) },
		"behind its challenge":                 func(conn net.Conn, tls bool) { rank[tls].dial(conn, 0) },
		"behind its proof":                     func(conn net.Conn, tls bool) { prove(conn, tls) },
		"in its first message, or that of TLS": func(conn net.Conn, tls bool) { prove(conn, tls, 0x16, 3, 1) },
		"all the time": func(conn net.Conn, tls bool) {
			for _, b := range rank[tls].challenge(0) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(dripPause)
			}
		},
	} {
		for _, encrypted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				l := pipeListener{conns: make(chan net.Conn, 1)}
				prover := zero
				if encrypted {
					prover = withTLS(testSecret, 0)
				}
				s := &Server{Prover: prover, Listener: l, Handle: func(_ int, conn net.Conn) {
					defer conn.Close()
					if _, err := io.ReadFull(conn, make([]byte, 4)); err == nil {
						t.Error("the peer has said its first message")
					}
				}}
				begin := time.Now()
				ours, theirs := net.Pipe()
				l.conns <- theirs
				var serving, peer sync.WaitGroup
				serving.Go(func() { s.Serve(t.Context()) })
				peer.Go(func() {
					say(ours, encrypted)
					io.Copy(io.Discard, ours) // until the server drops the connection
				})
				peer.Wait()
				close(l.conns)
				serving.Wait()
				if took := time.Since(begin); took > Timeout+dripPause {
					t.Errorf("%s, with TLS: %v: the server waits for %v, want %v", what, encrypted, took, Timeout)
				}
			})
		}
	}
}

func TestMoreRanksThanTheLimitMayComeAtOnce(t *testing.T) {
	addr, handled := serve(t)
	var ranks sync.WaitGroup
	for range cap(handled) {
		ranks.Go(func() { connect(t, one, addr) })
	}
	ranks.Wait()
	for range cap(handled) {
		<-handled
	}
}

// A failing listener fails until it is closed.
type failing struct {
	net.Listener
	closed chan struct{}
}

func (f failing) Accept() (net.Conn, error) {
	select {
	case <-f.closed:
		return nil, net.ErrClosed
	default:
		return nil, errors.New("too many open files")
	}
}

func TestAServerThatCannotAcceptSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := failing{closed: make(chan struct{})}
		begin := time.Now()
		s := &Server{Prover: zero, Listener: l, Failed: func(err error) {
			if took := time.Since(begin); took < acceptTimeout || took > 2*acceptTimeout {
				t.Errorf("%v after %v, want %v", err, took, acceptTimeout)
			}
			close(l.closed)
		}}
		s.Serve(t.Context())
	})
}

func TestARetryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var r Retry
		for r.Wait(t.Context()) {
		}
		if took := time.Since(begin); took < RetryTimeout || took > RetryTimeout+2*retryPauseMax {
			t.Errorf("it ends after %v, want %v", took, RetryTimeout)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r = Retry{}
		if r.Wait(ctx) {
			t.Error("it goes on after its context has ended")
		}
	})
}
