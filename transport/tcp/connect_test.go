package tcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// call connects to an endpoint as a program that is no rank would, and writes.
func call(t *testing.T, e *Endpoint, says []byte) net.Conn {
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

// changed returns a request with other bytes at one place.
func changed(request []byte, at int, with ...byte) []byte {
	b := bytes.Clone(request)
	copy(b[at:], with)
	return b
}

func TestConnectionsOfNoRankAreDropped(t *testing.T) {
	ends := job(t, 3)
	request := ends[1].request(0)
	numbers := requestLen - 12
	for name, says := range map[string][]byte{
		"other words":     []byte("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a scanner\r\n\r\n"),
		"another token":   changed(request, prefixLen, 1, 2, 3),
		"my own rank":     changed(request, numbers, 0),
		"no such rank":    changed(request, numbers, 3),
		"a negative rank": changed(request, numbers, 0xff, 0xff, 0xff, 0xff),
		"for another":     changed(request, numbers+4, 2),
		"another size":    changed(request, numbers+8, 4),
	} {
		c := call(t, ends[0], says)
		if reply, _ := io.ReadAll(c); len(reply) > 0 {
			t.Errorf("%s: got the reply %q", name, reply)
		}
	}
	call(t, ends[0], nil)          // sends nothing
	call(t, ends[0], request[:10]) // sends no whole request
	each(t, ends[:2], func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })

	// A second connection of a rank that has one is dropped, too.
	if reply, _ := io.ReadAll(call(t, ends[0], request)); len(reply) > 0 {
		t.Errorf("a second request: got the reply %q", reply)
	}
}

func TestAnotherVersionIsRepliedTo(t *testing.T) {
	ends := job(t, 2)
	says := changed(ends[1].request(0), len(magic), version+1)
	reply, err := io.ReadAll(call(t, ends[0], says[:prefixLen]))
	if err != nil || len(reply) != replyLen || reply[len(magic)] != version {
		t.Errorf("got %q, %v", reply, err)
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
		{"it is a second request", 1, accepting, 0, accepting},
		{"there is a connection", 0, up, 0, up},
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
		{at(strange), transport.ErrLost, "is no rank"},
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
func impostor(t *testing.T) (*Endpoint, net.Conn) {
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
	other := Endpoint{cfg: Config{Rank: 1, Size: 2}}
	c := call(t, e, other.request(0))
	b := make([]byte, replyLen)
	if _, err := io.ReadFull(c, b); err != nil || reply(b[prefixLen]) != accepted {
		t.Fatalf("got the reply %q, %v", b, err)
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
		"an unknown kind":                  frame(header{kind: creditFrame + 1}, ""),
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

// FuzzFrames plays a peer that knows the token and nothing else.
func FuzzFrames(f *testing.F) {
	f.Add(frame(header{kind: messageFrame, context: 1, sequence: 1, body: 4, total: 4}, "test"))
	f.Add(frame(header{kind: abortFrame}, "enough"))
	f.Add(append(frame(header{kind: eagerFrame, context: 1, body: 1, total: 1}, "01234567bytes"), 1))
	f.Add(frame(header{kind: rtsFrame, context: 1, sequence: 1, total: 1}, "01234567bytes"))
	f.Fuzz(func(t *testing.T, says []byte) {
		e, c := impostor(t)
		go func() {
			c.Write(says)
			c.Close()
		}()
		receive(context.Background(), e, sig, 1, make([]byte, 4))
	})
}
