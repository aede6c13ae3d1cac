package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/launch/internal/deadlock"
	"github.com/chorale-go/chorale/transport"
)

var testSecret = proof.Secret{1, 2, 3}

func newTestControl(t *testing.T, size int) *control {
	return newTestControlWith(t, size, false, t.Logf)
}

func newTestControlWith(t testing.TB, size int, shared bool, report func(string, ...any)) *control {
	t.Helper()
	hooks := controlHooks{report, func(err error) { t.Error(err) }, func(d deadlock.Cycle) { t.Error(d) }, func(int) {}, nil}
	c, err := newControl(controlConfig{size: size, secret: testSecret, shared: shared, controlHooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// configOf is how rank 0 of a job joins at an address.
func configOf(address string, size int) dialConfig {
	return dialConfig{size: size, secret: testSecret, addresses: []string{address}}
}

// dialAs joins as a rank that says this of itself.
func dialAs(ctx context.Context, cfg dialConfig, self joinMessage) (*client, error) {
	c, _, err := dial(ctx, cfg, saying(self))
	return c, err
}

func saying(self joinMessage) func(netip.Addr) (joinMessage, error) {
	return func(netip.Addr) (joinMessage, error) { return self, nil }
}

// A rawConn is the control connection of a rank without a client.
type rawConn struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Scanner
}

// dialRaw proves to the launcher that it knows the secret, as a rank.
func dialRaw(t testing.TB, c *control, rank int) *rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", c.address())
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
func joinRaw(t testing.TB, c *control, rank int) *rawConn {
	t.Helper()
	r := dialRaw(t, c, rank)
	r.send(joinLine(rank))
	r.expect(`{"joined":{}}`)
	return r
}

func TestAQueryIsAnsweredWhenTheRankHasJoined(t *testing.T) {
	c := newTestControl(t, 3)
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
	c := newTestControl(t, 3)
	zero, one := joinRaw(t, c, 0), joinRaw(t, c, 1)
	c.end(1, "killed", false)
	zero.expect(`{"lost":{"rank":1,"reason":"killed"}}`)
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"lost":{"rank":1,"reason":"killed"}}`)
	zero.send(`{"addressQuery":2}`)
	c.end(2, "exited with status 0", true)
	zero.expect(`{"lost":{"rank":2,"reason":"exited with status 0 without joining the job"}}`)
	c.close()
	one.expect("")
}

func TestARankThatEndsWithSuccessIsNotAnnouncedButAnswered(t *testing.T) {
	c := newTestControl(t, 3)
	zero, one, two := joinRaw(t, c, 0), joinRaw(t, c, 1), joinRaw(t, c, 2)
	one.send(`{"leave":true}`)
	one.expect(`{"left":1}`)
	c.end(1, "exited with status 0", true)
	c.end(2, "exited with status 0", true)
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"addressReply":{"rank":1,"address":"here:1","left":true}}`)
	zero.send(`{"addressQuery":2}`)
	zero.expect(`{"lost":{"rank":2,"reason":"exited with status 0"}}`)
	c.close()
	two.expect("")
}

// Another process may listen there by then.
func TestARankThatHasLeftHasNoAddress(t *testing.T) {
	c := newTestControl(t, 2)
	zero, one := joinRaw(t, c, 0), joinRaw(t, c, 1)
	one.send(`{"leave":true}`)
	one.expect(`{"left":1}`)
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"addressReply":{"rank":1,"address":"here:1","left":true}}`)
	one.conn.Close()
	c.failedPeer(1) // waits until the launcher has seen that
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"addressReply":{"rank":1,"address":"","left":true}}`)
}

func TestTheFailedPeerIsKnownWhenTheRankHasEnded(t *testing.T) {
	c := newTestControl(t, 3)
	zero := joinRaw(t, c, 0)
	joinRaw(t, c, 1)
	zero.send(`{"failedPeer":1}`)
	zero.conn.Close()
	if got := c.failedPeer(0); got != 1 {
		t.Errorf("the failed peer of rank 0 is %d, want 1", got)
	}
	if got := c.failedPeer(2); got != -1 {
		t.Errorf("the failed peer of rank 2, which never joined, is %d, want -1", got)
	}
}

func TestARankThatDoesNotJoinIsRefused(t *testing.T) {
	c := newTestControl(t, 2)
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
		{"a line without an end", 1, strings.Repeat("x", 2*maxMessage), ""},
	} {
		t.Log(test.name)
		r := dialRaw(t, c, test.rank)
		r.send(test.line)
		r.expect(test.want)
	}
	joinRaw(t, c, 1)
}

func TestARankIsToldWhyItMayNotJoin(t *testing.T) {
	c := newTestControl(t, 1)
	cfg := configOf(c.address(), 1)
	first, err := dialAs(t.Context(), cfg, joinMessage{Address: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	_, err = dialAs(t.Context(), cfg, joinMessage{Address: "here"})
	if want := "rank 0 does not join its job: rank 0 has joined already"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c.close()
	if _, err = dialAs(t.Context(), cfg, joinMessage{Address: "here"}); err == nil {
		t.Error("joined without a launcher")
	}
}

func TestALookupEndsWithItsContextOrItsAnswer(t *testing.T) {
	c := newTestControl(t, 2)
	cfg := configOf(c.address(), 2)
	client, err := dialAs(t.Context(), cfg, joinMessage{Address: "here"})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan bool)
	go func() { closed <- client.receive(func(int, string) {}) }()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.lookup(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	c.end(1, "killed", false)
	if _, err := client.lookup(t.Context(), 1); !errors.Is(err, transport.ErrLost) {
		t.Errorf("%v, want %v", err, transport.ErrLost)
	}
	client.close()
	if !<-closed {
		t.Error("the launcher is taken for the side that closed the connection")
	}
}

// A rank that never calls its endpoint ends with its launcher too.
func TestARankEndsWithItsLauncher(t *testing.T) {
	c := newTestControl(t, 1)
	env := JobEnv{Transport: "tcp", Rank: 0, Size: 1, Control: c.address(), Secret: testSecret}
	cmd := exec.Command(os.Args[0], "idle")
	cmd.Env = append(os.Environ(), env.environ()...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "joined\n" {
		t.Errorf("it prints %q, %v; want joined", line, err)
	}
	c.close()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("exit status %d, want 1", got)
	}
	if want := "chorale: rank 0: the launcher is gone, so this rank ends\n"; stderr.String() != want {
		t.Errorf("it prints %q, want %q", stderr.String(), want)
	}
}

func TestARankThatSharesNoMemoryMayNotJoinThoseThatDo(t *testing.T) {
	c := newTestControlWith(t, 3, true, t.Logf)
	cfg := configOf(c.address(), 3)
	first, err := dialAs(t.Context(), cfg, joinMessage{Memory: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	cfg.rank = 2
	_, err = dialAs(t.Context(), cfg, joinMessage{Memory: "there"})
	if want := "rank 2 does not join its job: it does not share memory with rank 0: want transport auto or tcp for ranks on several hosts"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestTheLauncherReportsFallbacks(t *testing.T) {
	reports := make(chan string, 2)
	c := newTestControlWith(t, 2, false, func(format string, args ...any) { reports <- fmt.Sprintf(format, args...) })
	cfg := configOf(c.address(), 2)
	first, err := dialAs(t.Context(), cfg, joinMessage{FallbackReason: "it has none"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	if got, want := <-reports, "rank 0 shares no memory, and is reached over TCP: it has none"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	first.reportCMADenied()
	if got, want := <-reports, "rank 0 may not read the memory of other ranks: long messages were copied twice"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAutoFallsBackToTCPAndShmDoesNot(t *testing.T) {
	for _, test := range []struct {
		env  JobEnv
		want string // the transport, or an error
	}{
		{JobEnv{Transport: "auto", Size: 100_000}, "tcp"},
		{JobEnv{Transport: "auto", Size: 1}, "tcp"},
		{JobEnv{Transport: "tcp", Size: 2}, "tcp"},
		{JobEnv{Transport: "shm", Size: 100_000}, "no shared memory: shm: 100000 ranks: want 1 to 1024: --transport auto or tcp does without"},
	} {
		j := &job{}
		env := test.env
		got := "tcp"
		if err := j.share(&env); err != nil {
			got = err.Error()
		} else if env.Transport != "tcp" || env.Mixed || env.Memory != 0 || j.memory != nil {
			got = fmt.Sprintf("%+v", env)
		}
		if got != test.want {
			t.Errorf("%+v: got %s, want %s", test.env, got, test.want)
		}
	}
}
