// Package prooftest has strangers who do not know a job's secret, for tests of what
// listens for the job's connections.
package prooftest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
)

// Idle is the number of connections of an attack that never say anything.
const Idle = 300

// busy is the number of strangers of each other kind; with -short there are two.
const busy = 8

// Attack has strangers connect to an address, and returns when the idle ones have.
// They go on until the test ends.
func Attack(t testing.TB, addr string) {
	t.Helper()
	var (
		strangers sync.WaitGroup
		mu        sync.Mutex
		conns     = map[net.Conn]bool{}
		over      bool
	)
	t.Cleanup(func() {
		mu.Lock()
		over = true
		for conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		strangers.Wait()
	})
	connect := func() net.Conn {
		conn, err := net.Dial("tcp", addr)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			return nil
		case over:
			conn.Close()
			return nil
		}
		conns[conn] = true
		return conn
	}
	for range Idle {
		if connect() == nil {
			t.Fatalf("nothing listens at %s", addr)
		}
	}
	each := busy
	if testing.Short() {
		each = 2
	}
	for _, act := range []func(net.Conn){slow, huge, browse, reflect, hangUp, guess} {
		for range each {
			strangers.Go(func() {
				for conn := connect(); conn != nil; conn = connect() {
					act(conn)
					conn.Close()
					mu.Lock()
					delete(conns, conn)
					mu.Unlock()
					time.Sleep(5 * time.Millisecond) // leaves the processors to the job
				}
			})
		}
	}
}

// guessed is the prover of a stranger who has guessed a wrong secret.
var guessed = proof.NewProver(proof.Secret{1}, 1, 1<<20)

// slow says a challenge a byte at a time.
func slow(conn net.Conn) {
	for i := 0; ; i++ {
		if _, err := conn.Write([]byte{"chorale\n\x02\x00"[i%10]}); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// huge never stops talking.
func huge(conn net.Conn) {
	b := make([]byte, 1<<20)
	for {
		if _, err := conn.Write(b); err != nil {
			return
		}
	}
}

// browse takes the listener for a web server.
func browse(conn net.Conn) {
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	io.Copy(io.Discard, conn)
}

// reflect answers with what it hears, after a challenge.
func reflect(conn net.Conn) {
	guessed.Connect(context.Background(), conn, 0)
	io.Copy(conn, conn)
}

// hangUp closes in the middle of a challenge.
func hangUp(conn net.Conn) {
	io.WriteString(conn, "chorale\n\x02\x00\x00\x00\x00\x00\x00\x00and")
}

// guess tries a wrong secret, and does not care for the answer.
func guess(conn net.Conn) {
	guessed.Connect(context.Background(), conn, 0)
	conn.Write(make([]byte, proof.ProofLen))
}
