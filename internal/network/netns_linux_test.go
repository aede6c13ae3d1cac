package network

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/netns"
	"golang.org/x/sys/unix"
)

// echoVar has this program listen as rank 0 would, instead of running tests: it says its
// addresses, and then to each connection its name, after which it leaves the connection
// to the peer.
const echoVar = "CHORALE_TEST_ECHO"

// unreadVar has this program connect to an address, and read nothing.
const unreadVar = "CHORALE_TEST_UNREAD"

func TestMain(m *testing.M) {
	var err error
	switch name, address := os.Getenv(echoVar), os.Getenv(unreadVar); {
	case name != "":
		err = echo(name)
	case address != "":
		err = unread(address)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func unread(address string) error {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		io.Copy(io.Discard, os.Stdin) // until the test is over
		conn.Close()
	}
	return err
}

func echo(name string) error {
	s, err := Candidates(os.Getenv(Variable))
	if err != nil {
		return err
	}
	l, err := Listen(s.Addresses(), 4711)
	if err != nil {
		return err
	}
	fmt.Println(Join(s.Addresses(), Port(l)))
	go func() {
		io.Copy(io.Discard, os.Stdin) // the test is over
		l.Close()
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil
		}
		if err := WatchHost(conn); err != nil {
			return err
		}
		go func() {
			io.WriteString(conn, name)
			_, err := io.Copy(io.Discard, conn)
			fmt.Println(err)
		}()
	}
}

// An echoer is a process that echo runs in.
type echoer struct {
	addresses []string
	says      *bufio.Scanner
}

// start starts an echo in a host.
func start(t *testing.T, h *netns.Host, name, patterns string) echoer {
	t.Helper()
	c := h.Command(os.Args[0])
	c.Env = append(os.Environ(), echoVar+"="+name, Variable+"="+patterns)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	e := echoer{says: bufio.NewScanner(out)}
	if !e.says.Scan() {
		t.Fatalf("%s does not listen", name)
	}
	if e.addresses, err = Split(e.says.Text()); err != nil {
		t.Fatal(err)
	}
	return e
}

// reach dials rank 0, and returns the address at which it was.
func reach(t *testing.T, addresses ...string) string {
	t.Helper()
	conn, err := Dial(t.Context(), addresses, want("rank 0"))
	if err != nil {
		t.Errorf("%q: %v", addresses, err)
		return ""
	}
	defer conn.Close()
	return conn.RemoteAddr().String()
}

func TestBetweenHostsWithDecoysTheDefaultsReachTheRightProcess(t *testing.T) {
	hosts, inside := netns.Run(t)
	if !inside {
		return
	}
	here, there := hosts[0], hosts[1]
	there.IP(t, "link", "set", "docker0", "up")
	e := start(t, &there, "rank 0", "")
	v4, v6, docker := there.Address+":4711", "["+there.IPv6+"]:4711", netns.Docker+":4711"
	if want := []string{v4, v6, docker}; !slices.Equal(e.addresses, want) {
		t.Errorf("rank 0 publishes %q, want %q", e.addresses, want)
	}
	if at := reach(t, e.addresses...); at != v4 {
		t.Errorf("rank 0 is reached at %q, want %q", at, v4)
	}
	if at := reach(t, v6); at != v6 {
		t.Errorf("by IPv6, rank 0 is reached at %q", at)
	}
	if at := reach(t, docker, v4); at != v4 { // here docker's address is this host
		t.Errorf("behind docker's address, rank 0 is reached at %q, want %q", at, v4)
	}
	silent, err := net.Listen("tcp", docker)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // it never accepts
	if at := reach(t, docker, v6, v4); at != v6 {
		t.Errorf("behind a silent stranger, rank 0 is reached at %q, want %q", at, v6)
	}
	stranger := start(t, &here, "stranger", "127.0.0.1")
	if at := reach(t, "localhost:4711", v4); at != v4 {
		t.Errorf("behind a stranger, rank 0 is reached at %q, want %q", at, v4)
	}
	// This host has its own name as 127.0.1.1, where nothing of rank 0 is.
	if at := reach(t, netns.Name+":4711", v4); at != v4 {
		t.Errorf("behind a name in /etc/hosts, rank 0 is reached at %q, want %q", at, v4)
	}
	_, err = Dial(t.Context(), []string{netns.Name + ":4712", "10.77.0.99:4711", stranger.addresses[0]}, want("rank 0"))
	for _, text := range []string{netns.Name + ":4712 at 127.0.1.1:4712: connect: connection refused; 10.77.0.99:4711: connect: no route to host; 127.0.0.1:4711: it is strang, and not rank 0"} {
		if err == nil || err.Error() != text {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}

func TestAHostListensWhereTheUserSays(t *testing.T) {
	hosts, inside := netns.Run(t)
	if !inside {
		return
	}
	there := hosts[1]
	for patterns, want := range map[string]string{
		"docker*":      netns.Docker + ":4711",
		"10.77.0.0/16": there.Address + ":4711",
		"fd00::/8":     "[" + there.IPv6 + "]:4711",
		"lo":           "127.0.0.1:4711,[::1]:4711",
	} {
		t.Run(patterns, func(t *testing.T) {
			e := start(t, &there, "rank 0", patterns)
			if got := strings.Join(e.addresses, ","); got != want {
				t.Errorf("it publishes %s, want %s", got, want)
			}
			if conn, err := net.DialTimeout("tcp", there.Address+":4711", time.Second); (err == nil) != (patterns == "10.77.0.0/16" || patterns == "lo") {
				t.Errorf("eth0 is listened at: %v", err == nil)
			} else if err == nil {
				conn.Close()
			}
		})
	}
	c := there.Command(os.Args[0])
	c.Env = append(os.Environ(), echoVar+"=rank 0", Variable+"=ib*")
	out, err := c.CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || !strings.Contains(string(out), "CHORALE_INTERFACE=ib*: no address of this host is left: it has lo 127.0.0.1 ::1; eth0 "+there.Address+" "+there.IPv6) {
		t.Errorf("no interface matches: %v, %s", err, out)
	}
}

// lossOf returns how long it takes both ends of a connection to fail after the link
// between the hosts is down.
func lossOf(t *testing.T, hosts [2]netns.Host, conn net.Conn, e echoer, wait func(conn net.Conn) error) time.Duration {
	t.Helper()
	began := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		close(began)
		failed <- wait(conn)
	}()
	<-began
	hosts[1].IP(t, "link", "set", "eth0", "down")
	begin := time.Now()
	if err := <-failed; err == nil || err == io.EOF {
		t.Errorf("this end fails with %v", err)
	}
	t.Logf("this end has failed after %v", time.Since(begin))
	if !e.says.Scan() || e.says.Text() == "<nil>" {
		t.Errorf("the other end fails with %q", e.says.Text())
	}
	took := time.Since(begin)
	netns.PlugIn(t, hosts, 1)
	return took
}

func TestALostHostIsNoticedAtBothEndsOfAConnection(t *testing.T) {
	hosts, inside := netns.Run(t)
	if !inside {
		return
	}
	e := start(t, &hosts[1], "rank 0", "")
	for _, test := range []struct {
		name string
		wait func(conn net.Conn) error
	}{
		{"idle", func(conn net.Conn) error { _, err := io.Copy(io.Discard, conn); return err }},
		{"sending short messages", func(conn net.Conn) error {
			for {
				if _, err := conn.Write(make([]byte, 100)); err != nil {
					return err
				}
				time.Sleep(10 * time.Millisecond)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			took := 2 * LossTimeout
			for runs := 0; took > LossTimeout && runs < 3; runs++ { // a busy machine may not run an end for a second
				conn, err := Dial(t.Context(), []string{hosts[1].Address + ":4711"}, want("rank 0"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				took = lossOf(t, hosts, conn, e, test.wait)
			}
			if took > LossTimeout {
				t.Errorf("the last of three losses is noticed after %v, want %v at most", took, LossTimeout)
			}
		})
	}
}

// A peer that is there and reads nothing is no lost host, for as long as it likes; but if
// its host is lost then, that is noticed.
func TestAPeerThatDoesNotReadIsNotLostUntilItsHostIs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes longer than the limit for a lost host")
	}
	hosts, inside := netns.Run(t)
	if !inside {
		return
	}
	l, err := net.Listen("tcp", hosts[0].Address+":4711")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := hosts[1].Command(os.Args[0])
	other.Env = append(os.Environ(), unreadVar+"="+l.Addr().String())
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer in.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn := accepted.(*net.TCPConn)
	defer conn.Close()
	if err := WatchHost(conn); err != nil {
		t.Fatal(err)
	}
	if err := WatchDataHost(conn); err != nil {
		t.Fatal(err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	silent := func() (silent bool) {
		raw.Control(func(fd uintptr) { silent = HostIsSilent(fd) })
		return silent
	}
	conn.SetWriteDeadline(time.Now().Add(LossTimeout + 3*time.Second))
	for err == nil {
		_, err = conn.Write(make([]byte, 1<<20))
		if silent() {
			t.Fatal("a peer that does not read counts as lost")
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || silent() {
		t.Fatalf("writing to a peer that does not read ends with %v, silent: %v", err, silent())
	}
	bound := 0
	raw.Control(func(fd uintptr) { bound, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS) })
	if bound == 0 {
		return // before Linux 6.15, a launcher alone notices this
	}
	hosts[1].IP(t, "link", "set", "eth0", "down")
	begin := time.Now()
	for !silent() && time.Since(begin) < 2*LossTimeout {
		time.Sleep(LookPause)
	}
	if took := time.Since(begin); took > LossTimeout {
		t.Errorf("noticed after %v, want %v at most", took, LossTimeout)
	}
	hosts[1].IP(t, "link", "set", "eth0", "up")
}
