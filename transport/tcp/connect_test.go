package tcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/transport"
)

// call connects to an endpoint as a program that is no rank would, and writes.
func call(t testing.TB, e *Endpoint, says []byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", e.cfg.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write(says); err != nil {
		t.Fatal(err)
	}
	return c
}

// callAs connects to an endpoint, proves the secret as a rank, and writes.
func callAs(t testing.TB, e *Endpoint, rank int, says []byte) net.Conn {
	t.Helper()
	prover := proof.NewProver(e.cfg.Secret, uint32(rank), e.cfg.Size)
	prover.TLS = e.cfg.Encrypt
	c, err := prover.Connect(t.Context(), call(t, e, nil), uint32(e.cfg.Rank))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(says); err != nil {
		t.Fatal(err)
	}
	return c
}

// refusal returns the text with which an endpoint refuses what a rank says.
func refusal(t *testing.T, e *Endpoint, rank int, says []byte) string {
	t.Helper()
	r, text, err := readReply(callAs(t, e, rank, says))
	if err != nil || r != refused {
		t.Errorf("%x gets the reply %d %q, %v; want it refused", says, r, text, err)
	}
	return text
}

func TestConnectionsOfNoRankAreDropped(t *testing.T) {
	ends := job(t, 3)
	stranger := proof.NewProver(proof.Secret{1}, 1, 3)
	if _, err := stranger.Connect(t.Context(), call(t, ends[0], nil), 0); err == nil || !strings.Contains(err.Error(), "another job") {
		t.Errorf("a rank of another job: %v", err)
	}
	call(t, ends[0], nil)
	call(t, ends[0], []byte("chora"))
	if answer, _ := io.ReadAll(call(t, ends[0], []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))); len(answer) > 0 {
		t.Errorf("a browser gets the answer %q", answer)
	}
	each(t, ends[:2], func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })
}

func TestARankIsToldWhyItsRequestIsRefused(t *testing.T) {
	ends := job(t, 3)
	newer := appendRequest(nil, 3)
	newer[0]++
	if _, _, err := readReply(bytes.NewReader(appendReply(nil, accepted, "")[:0])); !errors.Is(err, proof.ErrDropped) {
		t.Errorf("no reply: %v", err)
	}
	if got, want := refusal(t, ends[0], 1, newer), "it speaks version 3, this rank version 4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := refusal(t, ends[0], 1, appendRequest(nil, 4)), "its job has 3 ranks, and this one 4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	each(t, ends[:2], func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })
	if got, want := refusal(t, ends[0], 1, appendRequest(nil, 3)), "it has a link with this rank already"; got != want {
		t.Errorf("a second rank 1: %q, want %q", got, want)
	}
	ends[1].Close()
	until(ends[0], func() bool { ends[0].links[1].poll(); return ends[0].links[1].err != nil })
	if got, want := refusal(t, ends[0], 1, appendRequest(nil, 3)), "it has ended its link with this rank: "; !strings.HasPrefix(got, want) {
		t.Errorf("a rank 1 that comes back: %q, want %q", got, want)
	}
}

// Of two requests, one connection comes.
func TestOfTwoRequestsTheLowerRanksWins(t *testing.T) {
	for _, c := range []struct {
		name   string
		me     int
		phase  phase
		want   reply
		become phase
	}{
		{"neither has dialed", 0, idle, accepted, accepting},
		{"the lower has sent a request", 0, requesting, crossed, requesting},
		{"the higher has sent a request", 1, requesting, accepted, accepting},
		{"the lower has sent no request", 0, dialing, accepted, accepting},
		{"the higher expects a request", 1, expecting, accepted, accepting},
		{"it is a second request", 1, accepting, refused, accepting},
		{"there is a connection", 0, up, refused, up},
	} {
		e := job(t, 2)[c.me]
		e.link(1 - c.me).phase = c.phase
		l, r, _ := e.decide(1 - c.me)
		if r != c.want || l.phase != c.become {
			t.Errorf("%s: the reply is %d and the phase %d, want %d and %d", c.name, r, l.phase, c.want, c.become)
		}
		l.phase = idle
	}
}

func TestBothMayDialAtOnce(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		ends, err := Loopback(2)
		if err != nil {
			t.Fatal(err)
		}
		each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })
		for _, e := range ends {
			e.Close()
		}
	}
}

func TestARankThatWillNeverJoinIsAnError(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	strange, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer strange.Close()
	go func() {
		for {
			c, err := strange.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("220 mail.example.org ESMTP\r\n"))
			c.Close()
		}
	}()
	at := func(l net.Listener) func(context.Context, int) (string, error) {
		return func(context.Context, int) (string, error) { return l.Addr().String(), nil }
	}
	for _, c := range []struct {
		lookup func(context.Context, int) (string, error)
		what   error
		text   string
	}{
		{func(context.Context, int) (string, error) { return "", errors.New("it never started") }, transport.ErrLost, "it never started"},
		{func(context.Context, int) (string, error) { return "", transport.ErrLeft }, transport.ErrLeft, ""},
		{at(closed), transport.ErrLost, closed.Addr().String()},
		{at(strange), transport.ErrLost, "is no rank and no launcher"},
	} {
		for _, receives := range []bool{false, true} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(Config{Size: 2, Listener: l, Lookup: c.lookup})
			if err != nil {
				t.Fatal(err)
			}
			if receives {
				err = receive(context.Background(), e, sig, 1, nil)
			} else {
				err = send(e, sig, 1, nil)
			}
			checkPeer(t, err, 1, c.what, c.text)
			e.Close()
		}
	}
}

func TestNoOperationWaitsForALookupLongerThanItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e, err := New(Config{Size: 2, Listener: l, Lookup: func(ctx context.Context, _ int) (string, error) {
		cancel() // while the lookup goes on
		<-ctx.Done()
		return "", ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := receive(ctx, e, sig, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	e.Close()
}

// impostor makes an endpoint of rank 0 of two, and a connection on which the
// test plays rank 1.
func impostor(t testing.TB) (*Endpoint, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Size: 2, Listener: l, Lookup: func(ctx context.Context, _ int) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	c := callAs(t, e, 1, appendRequest(nil, 2))
	if r, text, err := readReply(c); r != accepted || err != nil {
		t.Fatalf("got the reply %d %q, %v", r, text, err)
	}
	return e, c
}

// frame is a header with a text.
func frame(h header, text string) []byte {
	h.text = len(text)
	return append(h.append(nil), text...)
}

func TestAProtocolErrorEndsAConnectionAndNothingElse(t *testing.T) {
	message := frame(header{kind: messageFrame, context: 1, sequence: 1, body: 4, total: 8}, "test")
	huge := frame(header{kind: messageFrame, total: 8}, "test")
	binary.LittleEndian.PutUint64(huge[16:], 1<<63+8)
	for name, says := range map[string][]byte{
		"no frame":                         bytes.Repeat([]byte{0xff}, 100),
		"no kind":                          frame(header{}, ""),
		"an unknown kind":                  frame(header{kind: resumeFrame + 1}, ""),
		"too long a text":                  append(header{kind: messageFrame, text: textMax + 1}.append(nil), make([]byte, textMax+1)...),
		"too long a frame":                 frame(header{kind: messageFrame, body: bodyMax + 1, total: bodyMax + 1}, "test"),
		"a frame beyond its end":           frame(header{kind: messageFrame, body: 9, total: 8}, "test"),
		"too long a message":               huge,
		"more of nothing":                  frame(header{kind: chunkFrame, context: 1, body: 1}, ""),
		"more of another":                  append(append(bytes.Clone(message), 1, 2, 3, 4), frame(header{kind: chunkFrame, context: 2, body: 4}, "")...),
		"more than there is":               append(append(bytes.Clone(message), 1, 2, 3, 4), frame(header{kind: chunkFrame, context: 1, body: 5}, "")...),
		"a message in a message":           append(append(bytes.Clone(message), 1, 2, 3, 4), message...),
		"a termination notice with a body": frame(header{kind: leftFrame, body: 1}, ""),
		"half a mismatch":                  frame(header{kind: mismatchFrame}, "1234567"),
		"a mismatch of no length":          frame(header{kind: mismatchFrame}, "1234\xff\xff\xff\xff"),
	} {
		t.Run(name, func(t *testing.T) {
			e, c := impostor(t)
			if _, err := c.Write(says); err != nil {
				t.Fatal(err)
			}
			err := receive(context.Background(), e, sig, 1, make([]byte, 8))
			checkPeer(t, err, 1, transport.ErrLost, "its connection carries")
		})
	}
}

func TestAConnectionThatEndsIsALostRank(t *testing.T) {
	for name, says := range map[string][]byte{
		"its connection ended":                  nil,
		"its connection ended inside a message": frame(header{kind: messageFrame, context: 1, sequence: 1, body: 8, total: 8}, "test"),
	} {
		e, c := impostor(t)
		c.Write(says)
		c.Close()
		checkPeer(t, receive(context.Background(), e, sig, 1, make([]byte, 8)), 1, transport.ErrLost, name)
	}
}

// A peer that does not read keeps neither a canceled Exchange nor Close.
func TestAPeerThatDoesNotReadHoldsUpNoCall(t *testing.T) {
	e, _ := impostor(t)
	ctx, cancel := context.WithCancel(context.Background())
	var sender sync.WaitGroup
	sender.Go(func() {
		err := e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1}, Data: make([]byte, 64<<20)}}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
	until(e, func() bool { l := e.links[1]; return len(l.out.queue) > 0 && l.out.queue[0].begun })
	cancel()
	sender.Wait()
	e.Close()
}
