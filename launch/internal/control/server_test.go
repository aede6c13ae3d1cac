package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/transport"
)

var testSecret = proof.Secret{1, 2, 3}

func newTestServer(t *testing.T, size int) *Server {
	return newTestServerWith(t, size, false, t.Logf)
}

func newTestServerWith(t testing.TB, size int, shared bool, report func(string, ...any)) *Server {
	t.Helper()
	hooks := Hooks{
		Report: report, Failed: func(err error) { t.Error(err) }, Stalled: func(r *stall.Report) { t.Error(r.Text()) },
		Dropped: func(int, bool) {},
	}
	c, err := NewServer(Config{Size: size, Secret: testSecret, Shared: shared, Stall: time.Hour, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// configOf is how rank 0 of a job joins at an address.
func configOf(address string, size int) DialConfig {
	return DialConfig{Size: size, Secret: testSecret, Addresses: []string{address}}
}

// dialAs joins as a rank that says this of itself.
func dialAs(ctx context.Context, cfg DialConfig, self JoinMessage) (*Client, error) {
	c, _, err := Dial(ctx, cfg, saying(self))
	return c, err
}

func saying(self JoinMessage) func(netip.Addr) (JoinMessage, error) {
	return func(netip.Addr) (JoinMessage, error) { return self, nil }
}

// A rawConn is the control connection of a rank without a client.
type rawConn struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Scanner
}

// dialRaw proves to the launcher that it knows the secret, as a rank.
func dialRaw(t testing.TB, c *Server, rank int) *rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := proof.NewProver(testSecret, uint32(rank), len(c.members)).Connect(t.Context(), conn, proof.Launcher); err != nil {
		t.Fatal(err)
	}
	return &rawConn{t, conn, bufio.NewScanner(conn)}
}

func (r *rawConn) send(line string) {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.conn, line); err != nil {
		r.t.Fatal(err)
	}
}

// expect fails unless the next line is the one wanted; "" is the end.
func (r *rawConn) expect(want string) {
	r.t.Helper()
	r.in.Scan()
	if got := r.in.Text(); got != want {
		r.t.Errorf("received %q, want %q", got, want)
	}
}

func joinLine(rank int) string {
	return fmt.Sprintf(`{"join":{"address":"here:%d"}}`, rank)
}

// joinRaw has a rank join.
func joinRaw(t testing.TB, c *Server, rank int) *rawConn {
	t.Helper()
	r := dialRaw(t, c, rank)
	r.send(joinLine(rank))
	r.expect(`{"joined":{}}`)
	return r
}

func TestAQueryIsAnsweredWhenTheRankHasJoined(t *testing.T) {
	c := newTestServer(t, 3)
	zero, one := joinRaw(t, c, 0), joinRaw(t, c, 1)
	zero.send(`{"addressQuery":2}`)
	one.send(`{"addressQuery":2}`)
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"addressReply":{"rank":1,"address":"here:1"}}`) // so the query before it has been handled too
	two := joinRaw(t, c, 2)
	zero.expect(`{"addressReply":{"rank":2,"address":"here:2"}}`)
	one.expect(`{"addressReply":{"rank":2,"address":"here:2"}}`)
	two.send(`{"addressQuery":0}`)
	two.expect(`{"addressReply":{"rank":0,"address":"here:0"}}`)
}

func TestALostRankIsAnnouncedToAllOthers(t *testing.T) {
	c := newTestServer(t, 3)
	zero, one := joinRaw(t, c, 0), joinRaw(t, c, 1)
	c.End(1, "killed", false)
	zero.expect(`{"lost":{"rank":1,"reason":"killed"}}`)
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"lost":{"rank":1,"reason":"killed"}}`)
	zero.send(`{"addressQuery":2}`)
	c.End(2, "exited with status 0", true)
	zero.expect(`{"lost":{"rank":2,"reason":"exited with status 0 without joining the job"}}`)
	c.Close()
	one.expect("")
}

func TestARankThatEndsWithSuccessIsNotAnnouncedButAnswered(t *testing.T) {
	c := newTestServer(t, 3)
	zero, one, two := joinRaw(t, c, 0), joinRaw(t, c, 1), joinRaw(t, c, 2)
	one.send(`{"leave":true}`)
	one.expect(`{"left":1}`)
	c.End(1, "exited with status 0", true)
	c.End(2, "exited with status 0", true)
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"addressReply":{"rank":1,"address":"here:1","left":true}}`)
	zero.send(`{"addressQuery":2}`)
	zero.expect(`{"lost":{"rank":2,"reason":"exited with status 0"}}`)
	c.Close()
	two.expect("")
}

// Another process may listen there by then.
func TestARankThatHasLeftHasNoAddress(t *testing.T) {
	c := newTestServer(t, 2)
	zero, one := joinRaw(t, c, 0), joinRaw(t, c, 1)
	one.send(`{"leave":true}`)
	one.expect(`{"left":1}`)
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"addressReply":{"rank":1,"address":"here:1","left":true}}`)
	one.conn.Close()
	c.FailedPeer(1) // waits until the launcher has seen that
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"addressReply":{"rank":1,"address":"","left":true}}`)
}

func TestTheFailedPeerIsKnownWhenTheRankHasEnded(t *testing.T) {
	c := newTestServer(t, 3)
	zero := joinRaw(t, c, 0)
	joinRaw(t, c, 1)
	zero.send(`{"failedPeer":1}`)
	zero.conn.Close()
	if got := c.FailedPeer(0); got != 1 {
		t.Errorf("the failed peer of rank 0 is %d, want 1", got)
	}
	if got := c.FailedPeer(2); got != -1 {
		t.Errorf("the failed peer of rank 2, which never joined, is %d, want -1", got)
	}
}

func TestARankThatDoesNotJoinIsRefused(t *testing.T) {
	c := newTestServer(t, 2)
	joinRaw(t, c, 0)
	const noJoin = `{"refused":"its first message is not that it joins"}`
	for _, test := range []struct {
		name string
		rank int
		line string
		want string
	}{
		{"a second rank 0", 0, joinLine(0), `{"refused":"rank 0 has joined already"}`},
		{"a query first", 1, `{"addressQuery":0}`, noJoin},
		{"an address that makes replies too long", 1, `{"join":{"address":"` + strings.Repeat("<", 1025) + `"}}`,
			`{"refused":"its address has 1025 bytes, and the name of its memory 0: want at most 1024"}`},
		{"something else", 1, "GET / HTTP/1.1", noJoin},
		{"a line without an end", 1, strings.Repeat("x", 2*MaxMessage), ""},
	} {
		t.Log(test.name)
		r := dialRaw(t, c, test.rank)
		r.send(test.line)
		r.expect(test.want)
	}
	joinRaw(t, c, 1)
}

func TestARankIsToldWhyItMayNotJoin(t *testing.T) {
	c := newTestServer(t, 1)
	cfg := configOf(c.Address(), 1)
	first, err := dialAs(t.Context(), cfg, JoinMessage{Address: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = dialAs(t.Context(), cfg, JoinMessage{Address: "here"})
	if want := "rank 0 does not join its job: rank 0 has joined already"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c.Close()
	if _, err = dialAs(t.Context(), cfg, JoinMessage{Address: "here"}); err == nil {
		t.Error("joined without a launcher")
	}
}

func TestALookupEndsWithItsContextOrItsAnswer(t *testing.T) {
	c := newTestServer(t, 2)
	cfg := configOf(c.Address(), 2)
	client, err := dialAs(t.Context(), cfg, JoinMessage{Address: "here"})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan bool)
	go func() { closed <- client.Receive(func(int, string) {}, func(int, string) {}) }()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Lookup(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	c.End(1, "killed", false)
	if _, err := client.Lookup(t.Context(), 1); !errors.Is(err, transport.ErrLost) {
		t.Errorf("%v, want %v", err, transport.ErrLost)
	}
	client.Close()
	if !<-closed {
		t.Error("the launcher is taken for the side that closed the connection")
	}
}

func TestARankThatSharesNoMemoryMayNotJoinThoseThatDo(t *testing.T) {
	c := newTestServerWith(t, 3, true, t.Logf)
	cfg := configOf(c.Address(), 3)
	first, err := dialAs(t.Context(), cfg, JoinMessage{Memory: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	cfg.Rank = 2
	_, err = dialAs(t.Context(), cfg, JoinMessage{Memory: "there"})
	if want := "rank 2 does not join its job: it does not share memory with rank 0: want transport auto or tcp for ranks on several hosts"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestTheLauncherReportsFallbacks(t *testing.T) {
	reports := make(chan string, 2)
	c := newTestServerWith(t, 2, false, func(format string, args ...any) { reports <- fmt.Sprintf(format, args...) })
	cfg := configOf(c.Address(), 2)
	first, err := dialAs(t.Context(), cfg, JoinMessage{FallbackReason: "it has none"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if got, want := <-reports, "rank 0 shares no memory, and is reached over TCP: it has none"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	first.ReportCMADenied()
	if got, want := <-reports, "rank 0 may not read the memory of other ranks: long messages were copied twice"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheSumsOfARankAreHandedOnUnlessTheyAreTooLong(t *testing.T) {
	got := make(chan string, 4)
	hooks := Hooks{
		Report: t.Logf, Failed: func(err error) { t.Error(err) }, Dropped: func(int, bool) {},
		Metrics: func(rank int, totals []byte) { got <- fmt.Sprint(rank, " ", string(totals)) },
	}
	server, err := NewServer(Config{Size: 1, Secret: testSecret, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c, err := dialAs(t.Context(), configOf(server.Address(), 1), JoinMessage{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.ReportMetrics([]byte(`{"calls":"` + strings.Repeat("x", MaxMessage) + `"}`))
	c.ReportMetrics([]byte(`{"calls":[]}`))
	select {
	case report := <-got:
		if want := `0 {"calls":[]}`; report != want {
			t.Errorf("got %.40s, want %s", report, want)
		}
	case <-time.After(10 * time.Second):
		t.Error("no sums have come")
	}
}
