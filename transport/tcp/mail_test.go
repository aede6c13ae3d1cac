package tcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/mailbox"
	"github.com/chorale-go/chorale/transport/transporttest"
)

func TestLettersKeepTheirContract(t *testing.T) {
	transporttest.RunMail(t, start(newPoller))
}

func TestPumpsCarryLettersToo(t *testing.T) {
	transporttest.RunMail(t, start(newPumps))
}

// stamp is that of most letters.
var stamp = transport.Match{Context: 1, Tag: 7}

// takeLetter takes a letter and compares it.
func takeLetter(e *Endpoint, from int, want []byte) error {
	into := make([]byte, len(want))
	env, err := e.Recv(context.Background(), from, stamp, "bytes", into)
	if err != nil {
		return err
	}
	if env.Size != len(want) || !bytes.Equal(into, want) {
		return fmt.Errorf("rank %d took %+v, not the letter that it wants", e.Rank(), env)
	}
	return nil
}

// The peer withdraws a letter after this rank has granted it, and before it
// knows.
func TestWhoTakesALetterThatIsWithdrawnTakesTheNext(t *testing.T) {
	e, c := impostor(t)
	tag := string([]byte{7, 0, 0, 0, 0, 0, 0, 0}) + "bytes"
	if _, err := c.Write(frame(header{kind: offer, context: 1, sequence: 9, total: 2}, tag)); err != nil {
		t.Fatal(err)
	}
	took := make(chan error)
	go func() { took <- takeLetter(e, 1, []byte("ok")) }()
	granted := make([]byte, headerLen)
	if _, err := io.ReadFull(c, granted); err != nil || !bytes.Equal(granted, frame(header{kind: grant, sequence: 9}, "")) {
		t.Fatalf("got %q, %v", granted, err)
	}
	next := append(frame(header{kind: post, context: 1, body: 2, total: 2}, tag), "ok"...)
	if _, err := c.Write(append(frame(header{kind: withdraw, sequence: 9}, ""), next...)); err != nil {
		t.Fatal(err)
	}
	if err := <-took; err != nil {
		t.Fatal(err)
	}
}

func TestLettersThatAreNoneEndTheConnection(t *testing.T) {
	tag := string(make([]byte, tagLen)) + "bytes"
	for name, says := range map[string][]byte{
		"no tag":                    frame(header{kind: post}, "bytes"),
		"too long a letter":         frame(header{kind: post, body: mailbox.ShortMost + 1, total: mailbox.ShortMost + 1}, tag),
		"half a letter":             frame(header{kind: post, body: 1, total: 2}, tag),
		"part of nothing":           frame(header{kind: part, body: 1, total: 1}, ""),
		"an offer with contents":    frame(header{kind: offer, body: 1, total: 1}, tag),
		"a letter inside a message": append(append(frame(header{kind: data, context: 1, sequence: 1, body: 4, total: 8}, "test"), 1, 2, 3, 4), frame(header{kind: post}, tag)...),
	} {
		t.Run(name, func(t *testing.T) {
			e, c := impostor(t)
			if _, err := c.Write(says); err != nil {
				t.Fatal(err)
			}
			checkPeer(t, takeLetter(e, 1, nil), 1, transport.ErrLost, "its connection carries")
		})
	}
}
