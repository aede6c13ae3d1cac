package control

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
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
	_, _, err := dialWithin(t.Context(), 50*time.Millisecond, configOf(l.Addr().String(), 2), saying(JoinMessage{}))
	if want := "rank 0 does not join its job: its launcher is not reached: no answer within 50ms (" + l.Addr().String() + ": connected, but no answer until then)"; err == nil || err.Error() != want {
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
