package transporttest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// aside has rank 0 send messages of one context and then, when they lie before
// rank 1, one of another, which that takes first. Sent is what came of the step
// with the messages.
func aside(t *testing.T, start Start, messages ...string) (j *job, sent <-chan error) {
	t.Helper()
	j = open(t, start, 2)
	step := transport.Step{Signature: sig}
	for _, m := range messages {
		step.Sends = append(step.Sends, transport.Send{To: []int{1}, Data: []byte(m)})
	}
	done := make(chan error, 1)
	go func() { done <- j.ends[0].Exchange(j.ctx, step) }()
	j.until(func() bool { return j.ends[1].CheckUnreceived() != nil })
	other := sig
	other.Context++
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return send(ctx, e, other, 1, nil)
	}, func(ctx context.Context, e transport.Endpoint) error {
		return recv(ctx, e, other, 0, nil)
	})
	return j, done
}

func testAsideOrder(t *testing.T, start Start) {
	j, sent := aside(t, start, "do", "re", "mi")
	for _, want := range []string{"do", "re"} {
		into := make([]byte, 2)
		if err := recv(j.ctx, j.ends[1], sig, 0, into); err != nil || string(into) != want {
			t.Errorf("got %q, %v, want %q", into, err, want)
		}
	}
	// One message put aside is left; the next comes from where the others came.
	if err := errors.Join(<-sent, send(j.ctx, j.ends[0], sig, 1, []byte("fa"))); err != nil {
		t.Fatal(err)
	}
	held, into, want := []byte("sol la"), make([]byte, 6), make([]byte, 6)
	mix(want[:4], held[:4], []byte("mifa"))
	err := j.ends[1].Exchange(j.ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
		{From: 0, Into: into[:2], Held: held[:2], Combine: mix, Elem: 1},
		{From: 0, Into: into[2:4], Held: held[2:4], Combine: mix, Elem: 1, Ordered: true},
	}})
	if err != nil || !bytes.Equal(into, want) {
		t.Errorf("got %q, %v, want %q", into, err, want)
	}
}

func testAsideCompared(t *testing.T, start Start) {
	another := sig
	another.Call = "another"
	j, _ := aside(t, start, "do")
	err := recv(j.ctx, j.ends[1], another, 0, make([]byte, 2))
	checkDiffers(t, err, transport.MismatchError{Rank: 1, Peer: 0, Mine: another, Theirs: sig})
	j, _ = aside(t, start, "do")
	err = recv(j.ctx, j.ends[1], sig, 0, make([]byte, 3))
	var size *transport.SizeError
	if want := (transport.SizeError{Peer: 0, Got: 2, Want: 3}); !errors.As(err, &size) || *size != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// checkDiffers tests that err is this mismatch.
func checkDiffers(t *testing.T, err error, want transport.MismatchError) {
	t.Helper()
	var got *transport.MismatchError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// turns are calls of which the second is later.
var turns = [][2]uint32{{1, 3}, {0, 1}, {1<<32 - 1, 0}, {1<<32 - 5, 7}, {1<<31 - 1, 1 << 31}}

func testLeftOver(t *testing.T, start Start) {
	for _, numbers := range turns {
		j := open(t, start, 2)
		early, late := sig, sig
		early.Sequence, late.Sequence = numbers[0], numbers[1]
		if err := send(j.ctx, j.ends[0], early, 1, nil); err != nil {
			t.Fatal(err)
		}
		// Rank 1 expects nothing from rank 0 in the later call, only to be rid
		// of a message that rank 0 never takes.
		var err error
		for err == nil {
			err = send(j.ctx, j.ends[1], late, 0, make([]byte, 1<<20))
		}
		checkDiffers(t, err, transport.MismatchError{Rank: 1, Peer: 0, Mine: late, Theirs: early})
		// The other end is told the same story.
		err = nil
		for err == nil {
			err = recv(j.ctx, j.ends[0], early, 1, nil)
		}
		checkDiffers(t, err, transport.MismatchError{Rank: 0, Peer: 1, Mine: early, Theirs: late})
	}
}

// testWrapAround has rank 1 find a message of a later call while it is rid of one
// of the earlier.
func testWrapAround(t *testing.T, start Start) {
	const size = 1 << 20
	for _, numbers := range turns {
		early, late := sig, sig
		early.Sequence, late.Sequence = numbers[0], numbers[1]
		j := open(t, start, 2)
		if err := send(j.ctx, j.ends[0], late, 1, nil); err != nil {
			t.Fatal(err)
		}
		j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
			return recv(ctx, e, early, 1, make([]byte, size))
		}, func(ctx context.Context, e transport.Endpoint) error {
			return errors.Join(send(ctx, e, early, 0, make([]byte, size)), recv(ctx, e, late, 0, nil))
		})
	}
}

func testUnread(t *testing.T, start Start) {
	mine, theirs := transport.Signature{Sequence: 1, Call: "mine"}, transport.Signature{Sequence: 2, Call: "theirs"}
	j := open(t, start, 2)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		return errors.Join(swap(ctx, e, mine, 1-e.Rank()), e.CheckUnreceived())
	})
	if err := send(j.ctx, j.ends[1], theirs, 0, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	e := j.ends[0]
	j.until(func() bool { return e.CheckUnreceived() != nil })
	want := transport.UnreceivedError{Rank: 0, Peer: 1, Mine: mine, Theirs: theirs}
	if got := new(transport.UnreceivedError); !errors.As(e.CheckUnreceived(), &got) || *got != want {
		t.Errorf("got %v, want %v", got, &want)
	}
	e.Close()
	if err := e.CheckUnreceived(); err != nil {
		t.Errorf("after Close: got %v", err)
	}
	checkReason(t, swap(j.ctx, j.ends[1], theirs, 0), 0, transport.ErrLeft, `its last call was call 1, "mine"`)
}

func testRelease(t *testing.T, start Start) {
	j, _ := aside(t, start, "do", "re")
	e := j.ends[1]
	e.Release(sig.Context + 1) // another
	var unread *transport.UnreceivedError
	if err := e.CheckUnreceived(); !errors.As(err, &unread) || unread.Theirs != sig {
		t.Errorf("got %v, want two messages unread", err)
	}
	e.Release(sig.Context)
	if err := e.CheckUnreceived(); err != nil {
		t.Errorf("after the release: %v", err)
	}
}
