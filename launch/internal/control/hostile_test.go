package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
)

func TestARankOfAnotherJobDoesNotJoin(t *testing.T) {
	c := newTestServer(t, 2)
	cfg := configOf(c.Address(), 2)
	cfg.Secret[0]++
	if _, err := dialAs(t.Context(), cfg, JoinMessage{}); err == nil || !strings.Contains(err.Error(), "rank 0 does not join its job: its launcher is not reached: "+c.Address()+": what listens at "+c.Address()+" belongs to another job") {
		t.Error(err)
	}
}

// listen returns a listener of the test in the place of a launcher.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// A rank tells a stranger in the place of its launcher nothing.
func TestARankJoinsNoStranger(t *testing.T) {
	l := listen(t)
	heard := make(chan []byte)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			close(heard)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "chorale\n\x01"+strings.Repeat("\x00", 71)) // an answer with a proof that is none
		b, _ := io.ReadAll(conn)
		heard <- b
	}()
	if _, err := dialAs(t.Context(), configOf(l.Addr().String(), 2), JoinMessage{Address: "here"}); err == nil {
		t.Error("the rank joins")
	}
	if b := <-heard; strings.Contains(string(b), "join") || strings.Contains(string(b), string(testSecret[:8])) {
		t.Errorf("the stranger has heard %q", b)
	}
}

func TestALauncherThatDoesNotAnswerIsAnError(t *testing.T) {
	l := listen(t) // the system accepts, and nobody else does
	limit, err := 25*time.Millisecond, error(nil)
	for connected := false; !connected && limit < 5*time.Second; { // a busy machine may take as long to connect
		limit *= 2
		_, _, err = dialWithin(t.Context(), limit, configOf(l.Addr().String(), 2), saying(JoinMessage{}))
		connected = err == nil || strings.Contains(err.Error(), ": connected, ")
	}
	if want := fmt.Sprintf("rank 0 does not join its job: its launcher is not reached: no answer within %v (%v: connected, but no answer until then)", limit, l.Addr()); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := dialAs(ctx, configOf(l.Addr().String(), 2), JoinMessage{}); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}

func TestAConnectionThatTheLauncherDropsIsMadeAnew(t *testing.T) {
	c, l := newTestServer(t, 2), listen(t)
	go func() {
		for range 3 {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		launcher, err := net.Dial("tcp", c.Address())
		if err != nil {
			return
		}
		defer launcher.Close()
		go io.Copy(launcher, conn)
		io.Copy(conn, launcher)
	}()
	rank, err := dialAs(t.Context(), configOf(l.Addr().String(), 2), JoinMessage{})
	if err != nil {
		t.Fatal(err)
	}
	rank.Close()
}

// A stranger has recorded how a rank has joined, and says it again: to the same launcher, and
// to that of another attempt at the job with the same token.
func TestARecordedConnectionJoinsNobody(t *testing.T) {
	c, again, l := newTestServer(t, 2), newTestServer(t, 2), listen(t)
	recorded := make(chan []byte, 1)
	go func() {
		var said bytes.Buffer
		defer func() { recorded <- said.Bytes() }()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		launcher, err := net.Dial("tcp", c.Address())
		if err != nil {
			return
		}
		defer launcher.Close()
		go io.Copy(conn, launcher)
		io.Copy(launcher, io.TeeReader(conn, &said))
	}()
	rank, err := dialAs(t.Context(), configOf(l.Addr().String(), 2), JoinMessage{Address: "here"})
	if err != nil {
		t.Fatal(err)
	}
	rank.Close()
	said := <-recorded
	if !bytes.Contains(said, []byte("join")) {
		t.Fatalf("recorded %q", said)
	}
	for _, server := range []*Server{c, again} {
		conn, err := net.Dial("tcp", server.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(proof.Timeout))
		conn.Write(said)
		if answer, _ := io.ReadAll(conn); len(answer) > 80 || bytes.Contains(answer, []byte("joined")) { // a proof has 80 bytes
			t.Errorf("the launcher answers %q", answer)
		}
	}
	if again.HasMembers() {
		t.Error("a rank has joined by a recording")
	}
}
