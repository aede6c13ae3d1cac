package tcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// tag is that of most messages.
var tag = transport.Match{Context: 1, Tag: 7}

// receiveTagged receives a tagged message and compares it.
func receiveTagged(e *Endpoint, from int, want []byte) error {
	into := make([]byte, len(want))
	info, err := e.Recv(context.Background(), from, tag, "bytes", into)
	if err != nil {
		return err
	}
	if info.Size != len(want) || !bytes.Equal(into, want) {
		return fmt.Errorf("rank %d received %+v, another message than it wants", e.Rank(), info)
	}
	return nil
}

// The peer withdraws a message after this rank has asked for its contents, and before
// the peer knows.
func TestAReceiveOfAMessageThatIsWithdrawnReceivesTheNext(t *testing.T) {
	e, c := impostor(t)
	text := string([]byte{7, 0, 0, 0, 0, 0, 0, 0}) + "bytes"
	if _, err := c.Write(frame(header{kind: rtsFrame, context: 1, sequence: 9, total: 2}, text)); err != nil {
		t.Fatal(err)
	}
	received := make(chan error)
	go func() { received <- receiveTagged(e, 1, []byte("ok")) }()
	cts := make([]byte, headerLen)
	if _, err := io.ReadFull(c, cts); err != nil || !bytes.Equal(cts, frame(header{kind: ctsFrame, sequence: 9}, "")) {
		t.Fatalf("got %q, %v", cts, err)
	}
	next := append(frame(header{kind: eagerFrame, context: 1, body: 2, total: 2}, text), "ok"...)
	if _, err := c.Write(append(frame(header{kind: withdrawFrame, sequence: 9}, ""), next...)); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
}

func TestInvalidTaggedMessagesEndTheConnection(t *testing.T) {
	text := string(make([]byte, tagLen)) + "bytes"
	for name, says := range map[string][]byte{
		"no tag":                        frame(header{kind: eagerFrame}, "bytes"),
		"too long an eager message":     frame(header{kind: eagerFrame, body: match.EagerMax + 1, total: match.EagerMax + 1}, text),
		"half an eager message":         frame(header{kind: eagerFrame, body: 1, total: 2}, text),
		"a fragment of nothing":         frame(header{kind: fragmentFrame, body: 1, total: 1}, ""),
		"an announcement with contents": frame(header{kind: rtsFrame, body: 1, total: 1}, text),
	} {
		t.Run(name, func(t *testing.T) {
			e, c := impostor(t)
			if _, err := c.Write(says); err != nil {
				t.Fatal(err)
			}
			checkPeer(t, receiveTagged(e, 1, nil), 1, transport.ErrLost, "its connection carries")
		})
	}
}

// The sender has looked at what its receiver says a moment ago, which it does not do
// before each message.
func TestCreditsThatHaveComeAreUsedAtOnce(t *testing.T) {
	ends := job(t, 2)
	ctx := context.Background()
	message := make([]byte, match.EagerMax)
	sent := transport.TaggedMax / (len(message) + transport.MessageCost)
	received := make(chan error)
	go func() {
		for range sent {
			if err := receiveTagged(ends[1], 0, message); err != nil {
				received <- err
				return
			}
		}
		received <- ends[1].Send(ctx, 0, transport.Match{Context: 1, Tag: 8}, "bytes", nil)
	}()
	for range sent {
		if err := ends[0].Send(ctx, 1, tag, "bytes", message); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-received; err != nil { // the receiver's message has come behind the credits
		t.Fatal(err)
	}
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); { // the system may still be about to deliver them
		ends[0].engine.Lock()
		l := ends[0].links[1]
		l.in.looked, l.in.fresh = time.Now().Add(time.Hour), false
		ends[0].engine.Unlock()
		var r transport.Request
		ends[0].StartSend(ctx, &r, 1, tag, "bytes", message)
		if r.Done() {
			return
		}
		ends[0].Cancel(&r, context.Canceled)
		time.Sleep(time.Millisecond)
	}
	t.Error("a message waits for its receiver although the credits for it have come")
}
