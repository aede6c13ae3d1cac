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

// call connects to an endpoint as a stranger would, and writes.
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

// changed returns a hello with other bytes at one place.
func changed(hello []byte, at int, with ...byte) []byte {
	b := bytes.Clone(hello)
	copy(b[at:], with)
	return b
}

func TestStrangersAreDropped(t *testing.T) {
	ends := job(t, 3)
	hello := ends[1].hello(0)
	numbers := helloLen - 12
	for name, says := range map[string][]byte{
		"other words":     []byte("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a scanner\r\n\r\n"),
		"another token":   changed(hello, prefixLen, 1, 2, 3),
		"my own rank":     changed(hello, numbers, 0),
		"no such rank":    changed(hello, numbers, 3),
		"a negative rank": changed(hello, numbers, 0xff, 0xff, 0xff, 0xff),
		"for another":     changed(hello, numbers+4, 2),
		"another size":    changed(hello, numbers+8, 4),
	} {
		c := call(t, ends[0], says)
		if answer, _ := io.ReadAll(c); len(answer) > 0 {
			t.Errorf("%s: got the answer %q", name, answer)
		}
	}
	call(t, ends[0], nil)        // never says a word
	call(t, ends[0], hello[:10]) // nor does this one end
	each(t, ends[:2], func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })

	// A second connection of a rank that has one is a stranger, too.
	if answer, _ := io.ReadAll(call(t, ends[0], hello)); len(answer) > 0 {
		t.Errorf("a second hello: got the answer %q", answer)
	}
}

func TestAnotherVersionIsToldMine(t *testing.T) {
	ends := job(t, 2)
	says := changed(ends[1].hello(0), len(magic), version+1)
	answer, err := io.ReadAll(call(t, ends[0], says[:prefixLen]))
	if err != nil || len(answer) != answerLen || answer[len(magic)] != version {
		t.Errorf("got %q, %v", answer, err)
	}
}

// SPEC of the handshake: of two hellos, one connection comes.
func TestOfTwoHellosTheLowerRanksWins(t *testing.T) {
	for _, c := range []struct {
		name   string
		me     int
		phase  phase
		want   verdict
		become phase
	}{
		{"nobody has dialled", 0, idle, welcome, accepting},
		{"I am the lower and have said hello", 0, greeting, mine, greeting},
		{"I am the higher and have said hello", 1, greeting, welcome, accepting},
		{"I am the lower and have not said hello", 0, dialling, welcome, accepting},
		{"I was told to wait", 1, expecting, welcome, accepting},
		{"it is a second hello", 1, accepting, 0, accepting},
		{"there is a connection", 0, up, 0, up},
	} {
		e := job(t, 2)[c.me]
		e.link(1 - c.me).phase = c.phase
		l, v, _ := e.judge(1 - c.me)
		if v != c.want || l.phase != c.become {
			t.Errorf("%s: the answer is %d and the phase %d, want %d and %d", c.name, v, l.phase, c.want, c.become)
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

func TestNobodyWaitsForALookupLongerThanItsContext(t *testing.T) {
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
	c := call(t, e, other.hello(0))
	answer := make([]byte, answerLen)
	if _, err := io.ReadFull(c, answer); err != nil || verdict(answer[prefixLen]) != welcome {
		t.Fatalf("got the answer %q, %v", answer, err)
	}
	return e, c
}

// frame is a header with a text.
func frame(h header, text string) []byte {
	h.text = len(text)
	return append(h.append(nil), text...)
}

func TestNonsenseEndsAConnectionAndNothingElse(t *testing.T) {
	message := frame(header{kind: data, context: 1, sequence: 1, body: 4, total: 8}, "test")
	huge := frame(header{kind: data, total: 8}, "test")
	binary.LittleEndian.PutUint64(huge[16:], 1<<63+8)
	for name, says := range map[string][]byte{
		"no frame":                bytes.Repeat([]byte{0xff}, 100),
		"no kind":                 frame(header{}, ""),
		"an unknown kind":         frame(header{kind: taken + 1}, ""),
		"too long a text":         append(header{kind: data, text: textMax + 1}.append(nil), make([]byte, textMax+1)...),
		"too long a frame":        frame(header{kind: data, body: bodyMax + 1, total: bodyMax + 1}, "test"),
		"a frame beyond its end":  frame(header{kind: data, body: 9, total: 8}, "test"),
		"too long a message":      huge,
		"more of nothing":         frame(header{kind: more, context: 1, body: 1}, ""),
		"more of another":         append(append(bytes.Clone(message), 1, 2, 3, 4), frame(header{kind: more, context: 2, body: 4}, "")...),
		"more than there is":      append(append(bytes.Clone(message), 1, 2, 3, 4), frame(header{kind: more, context: 1, body: 5}, "")...),
		"a message in a message":  append(append(bytes.Clone(message), 1, 2, 3, 4), message...),
		"a last word with a body": frame(header{kind: bye, body: 1}, ""),
		"half a mismatch":         frame(header{kind: mismatch}, "1234567"),
		"a mismatch of no length": frame(header{kind: mismatch}, "1234\xff\xff\xff\xff"),
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
		"its connection ended inside a message": frame(header{kind: data, context: 1, sequence: 1, body: 8, total: 8}, "test"),
	} {
		e, c := impostor(t)
		c.Write(says)
		c.Close()
		checkPeer(t, receive(context.Background(), e, sig, 1, make([]byte, 8)), 1, transport.ErrLost, name)
	}
}

// A peer that does not read keeps neither a cancelled Exchange nor Close.
func TestAPeerThatHangsHoldsNobody(t *testing.T) {
	e, _ := impostor(t)
	ctx, cancel := context.WithCancel(context.Background())
	var sender sync.WaitGroup
	sender.Go(func() {
		err := e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1}, Data: make([]byte, 64<<20)}}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
	until(e, func() bool { l := e.links[1]; return len(l.queue) > 0 && l.queue[0].begun })
	cancel()
	sender.Wait()
	e.Close()
}

// FuzzFrames plays a peer that knows the token and nothing else.
func FuzzFrames(f *testing.F) {
	f.Add(frame(header{kind: data, context: 1, sequence: 1, body: 4, total: 4}, "test"))
	f.Add(frame(header{kind: abort}, "enough"))
	f.Add(append(frame(header{kind: post, context: 1, body: 1, total: 1}, "01234567bytes"), 1))
	f.Add(frame(header{kind: offer, context: 1, sequence: 1, total: 1}, "01234567bytes"))
	f.Fuzz(func(t *testing.T, says []byte) {
		e, c := impostor(t)
		go func() {
			c.Write(says)
			c.Close()
		}()
		receive(context.Background(), e, sig, 1, make([]byte, 4))
	})
}
