package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/testenv"
)

// A listener of a test accepts connections, and says its name to each, unless it has none.
type listener struct {
	net.Listener
	name      string
	accepting sync.WaitGroup
	mu        sync.Mutex
	conns     []net.Conn
}

func listen(t *testing.T, name string) *listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	named := &listener{Listener: l, name: name}
	named.accepting.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			io.WriteString(conn, name)
			named.mu.Lock()
			named.conns = append(named.conns, conn)
			named.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		l.Close()
		named.accepting.Wait()
		for _, conn := range named.conns {
			conn.Close()
		}
	})
	return named
}

func (l *listener) address() string { return l.Addr().String() }

// untilAllAreClosed returns when the dialing sides of all connections are closed.
func (l *listener) untilAllAreClosed() {
	l.Close()
	l.accepting.Wait()
	for _, conn := range l.conns {
		io.Copy(io.Discard, conn)
	}
}

// want returns a handshake with a process of a name.
func want(name string) func(context.Context, net.Conn) (net.Conn, error) {
	return func(_ context.Context, conn net.Conn) (net.Conn, error) {
		b := make([]byte, len(name))
		if _, err := io.ReadFull(conn, b); err != nil {
			return nil, err
		}
		if string(b) != name {
			return nil, fmt.Errorf("it is %s, and not %s", b, name)
		}
		return conn, nil
	}
}

// nowhere knows no names.
var nowhere = resolver{func(context.Context, string, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }}

func TestTheFirstWhoseHandshakeSucceedsIsTaken(t *testing.T) {
	right, wrong, silent := listen(t, "right"), listen(t, "wrong"), listen(t, "")
	for _, test := range []struct {
		name      string
		addresses []string
	}{
		{"alone", []string{right.address()}},
		{"behind one that refuses", []string{testenv.FreeAddress(t, "127.0.0.1"), right.address()}},
		{"behind another process", []string{wrong.address(), right.address()}},
		{"behind one that says nothing", []string{silent.address(), silent.address(), right.address()}},
		{"before one that says nothing", []string{right.address(), silent.address()}},
		{"behind a name that does not resolve", []string{"nowhere:1", right.address()}},
	} {
		conn, err := dial(t.Context(), &nowhere, test.addresses, want("right"))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := conn.RemoteAddr().String(); got != right.address() {
			t.Errorf("%s: it is %s, and not %s", test.name, got, right.address())
		}
		conn.Close()
	}
	wrong.untilAllAreClosed()
	silent.untilAllAreClosed()
}

func TestTheErrorListsAllThatWasTried(t *testing.T) {
	wrong, nothing := listen(t, "wrong"), testenv.FreeAddress(t, "127.0.0.1")
	_, err := dial(t.Context(), &nowhere, []string{wrong.address(), nothing, "nowhere:4711"}, want("right"))
	var all *DialError
	if !errors.As(err, &all) || len(all.Attempts) != 3 || all.Cause != nil {
		t.Fatalf("got %v", err)
	}
	for i, text := range []string{wrong.address() + ": it is wrong, and not right", nothing + ": connect", "nowhere:4711: no such host"} {
		if part := strings.Split(err.Error(), "; ")[i]; !strings.HasPrefix(part, text) {
			t.Errorf("got %q, want %q", part, text)
		}
	}
}

func TestADialEndsWithItsContextAndSaysHowFarItHasCome(t *testing.T) {
	silent, nothing := listen(t, ""), testenv.FreeAddress(t, "127.0.0.1")
	enough := errors.New("enough")
	var ctx context.Context
	var err error
	for range 5 {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(t.Context())
		_, err = Dial(ctx, []string{nothing, silent.address()}, func(_ context.Context, conn net.Conn) (net.Conn, error) {
			cancel(enough)
			_, err := io.Copy(io.Discard, conn)
			return nil, err
		})
		if !errors.Is(err, errNoConnection) { // else a busy machine has taken HeadStart to refuse
			break
		}
	}
	if !errors.Is(err, enough) {
		t.Errorf("got %v, want %v", err, enough)
	}
	for _, text := range []string{"enough (", nothing + ": connect", silent.address() + ": connected, but no answer"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	silent.untilAllAreClosed()
	if _, err := Dial(ctx, []string{silent.address()}, want("right")); !errors.Is(err, enough) {
		t.Errorf("after its context has ended: %v, want %v", err, enough)
	}
}

func TestANameIsLookedUpAnewAndAllItsAddressesAreTried(t *testing.T) {
	right := listen(t, "right")
	port := right.Addr().(*net.TCPAddr).Port
	lookups := 0
	r := resolver{func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if lookups++; host != "node1" || lookups == 1 {
			return nil, errors.New("no such host")
		}
		// As a host that has its own name as a loopback address, where nothing listens.
		return []netip.Addr{netip.MustParseAddr("127.0.1.1"), netip.MustParseAddr("127.0.0.1")}, nil
	}}
	address := fmt.Sprintf("node1:%d", port)
	if _, err := dial(t.Context(), &r, []string{address}, want("right")); err == nil || !strings.Contains(err.Error(), address+": no such host") {
		t.Errorf("got %v", err)
	}
	conn, err := dial(t.Context(), &r, []string{address}, want("right"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := dial(t.Context(), &r, []string{address}, want("other")); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s at 127.0.1.1:%d: ", address, port)) {
		t.Errorf("got %v", err)
	}
}

// A winner is late when another has won meanwhile: it is closed.
func TestOnlyOneConnectionIsLeft(t *testing.T) {
	first, second := listen(t, "right"), listen(t, "right")
	both := make(chan struct{})
	var met sync.WaitGroup
	met.Add(2)
	go func() { met.Wait(); close(both) }()
	conn, err := Dial(t.Context(), []string{first.address(), second.address()}, func(ctx context.Context, conn net.Conn) (net.Conn, error) {
		met.Done()
		<-both // HeadStart later, both have connected
		return want("right")(ctx, conn)
	})
	if err != nil {
		t.Fatal(err)
	}
	other := first
	if conn.RemoteAddr().String() == first.address() {
		other = second
	}
	other.untilAllAreClosed()
	conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("the one that is left: %v", err)
	}
	conn.Close()
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
