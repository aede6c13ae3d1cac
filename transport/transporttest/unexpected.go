package transporttest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// unexpectedClaims: messages of steps that arrive before their receive is posted.
var unexpectedClaims = []claim{
	{"UnexpectedMessagesKeepTheirOrder", testUnexpectedOrder},
	{"AnUnexpectedMessageIsComparedWithItsReceive", testUnexpectedCompared},
	{"AMessageOfAnEarlierCallIsAMismatch", testEarlierCall},
	{"AMessageOfAnEarlierCallThatHasArrivedIsAMismatch", testEarlierCallArrived},
	{"AnUnexpectedMessageOfAnEarlierCallIsAMismatch", testEarlierCallUnexpected},
	{"SequenceNumbersMayWrapAround", testWrapAround},
	{"CheckUnreceivedReportsAnUnexpectedMessage", testCheckUnreceived},
	{"CheckUnreceivedReportsATaggedMessage", testCheckUnreceivedTagged},
	{"ReleaseDropsTheMessagesOfItsContext", testRelease},
}

// enqueueUnexpected has rank 0 send messages of one context in one step and, when
// they have arrived at rank 1, a message of another context, which rank 1 receives
// first. Sent yields the error of the step.
func enqueueUnexpected(t *testing.T, start Start, messages ...string) (j *job, sent <-chan error) {
	t.Helper()
	j = open(t, start, 2)
	step := transport.Step{Signature: sig}
	for _, m := range messages {
		step.Sends = append(step.Sends, transport.Send{To: []int{1}, Data: []byte(m)})
	}
	done := make(chan error, 1)
	go func() { done <- j.ends[0].Exchange(j.ctx, step) }()
	j.untilArrived(j.ends[1])
	other := sig
	other.Context++
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return send(ctx, e, other, 1, nil)
	}, func(ctx context.Context, e transport.Endpoint) error {
		return recv(ctx, e, other, 0, nil)
	})
	return j, done
}

// testUnexpectedOrder leaves one message in the unexpected queue, so that the step
// that receives it receives the next one from the link.
func testUnexpectedOrder(t *testing.T, start Start) {
	j, sent := enqueueUnexpected(t, start, "do", "re", "mi")
	for _, want := range []string{"do", "re"} {
		into := make([]byte, 2)
		if err := recv(j.ctx, j.ends[1], sig, 0, into); err != nil || string(into) != want {
			t.Errorf("got %q, %v, want %q", into, err, want)
		}
	}
	held, into, want := []byte("sol la"), make([]byte, 6), make([]byte, 6)
	mix(want[:4], held[:4], []byte("mifa"))
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return errors.Join(<-sent, send(ctx, e, sig, 1, []byte("fa")))
	}, func(ctx context.Context, e transport.Endpoint) error {
		return e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
			{From: 0, Into: into[:2], Held: held[:2], Combine: mix, Elem: 1},
			{From: 0, Into: into[2:4], Held: held[2:4], Combine: mix, Elem: 1, Ordered: true},
		}})
	})
	if !bytes.Equal(into, want) {
		t.Errorf("got %q, want %q", into, want)
	}
}

func testUnexpectedCompared(t *testing.T, start Start) {
	another := sig
	another.Call = "another"
	j, _ := enqueueUnexpected(t, start, "do")
	err := recv(j.ctx, j.ends[1], another, 0, make([]byte, 2))
	wantMismatch(t, err, transport.MismatchError{Rank: 1, Peer: 0, Mine: another, Theirs: sig})
	j, _ = enqueueUnexpected(t, start, "do")
	err = recv(j.ctx, j.ends[1], sig, 0, make([]byte, 3))
	var size *transport.SizeError
	if want := (transport.SizeError{Peer: 0, Got: 2, Want: 3}); !errors.As(err, &size) || *size != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// wantMismatch tests that err is this mismatch.
func wantMismatch(t *testing.T, err error, want transport.MismatchError) {
	t.Helper()
	var got *transport.MismatchError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// successions are pairs of sequence numbers of which the second is later.
var successions = [][2]uint32{{1, 3}, {0, 1}, {1<<32 - 1, 0}, {1<<32 - 5, 7}, {1<<31 - 1, 1 << 31}}

// earlierCall tests that a message of rank 0 for the call early is a mismatch in
// call late of rank 1, which receives nothing from rank 0: it waits for rank 0 to
// receive a message, which rank 0 never does. Sent yields the error of rank 0's
// Exchange.
func earlierCall(j *job, sent <-chan error, early, late transport.Signature) {
	j.Helper()
	var err error
	for err == nil {
		err = send(j.ctx, j.ends[1], late, 0, make([]byte, 1<<20))
	}
	wantMismatch(j.T, err, transport.MismatchError{Rank: 1, Peer: 0, Mine: late, Theirs: early})
	// Rank 0 gets both calls from rank 1.
	for err = <-sent; err == nil; {
		err = recv(j.ctx, j.ends[0], early, 1, nil)
	}
	wantMismatch(j.T, err, transport.MismatchError{Rank: 0, Peer: 1, Mine: early, Theirs: late})
}

func testEarlierCall(t *testing.T, start Start) {
	for _, numbers := range successions {
		j := open(t, start, 2)
		early, late := sig, sig
		early.Sequence, late.Sequence = numbers[0], numbers[1]
		sent := cluster.Begin(j.ctx, func(ctx context.Context) error { return send(ctx, j.ends[0], early, 1, nil) })
		earlierCall(j, sent, early, late)
	}
}

func testEarlierCallArrived(t *testing.T, start Start) {
	late := sig
	late.Sequence++
	j := open(t, start, 2)
	sent := cluster.Begin(j.ctx, func(ctx context.Context) error { return send(ctx, j.ends[0], sig, 1, nil) })
	j.untilArrived(j.ends[1])
	earlierCall(j, sent, sig, late)
}

func testEarlierCallUnexpected(t *testing.T, start Start) {
	late := sig
	late.Sequence++
	j, sent := enqueueUnexpected(t, start, "do")
	earlierCall(j, sent, sig, late)
}

// testWrapAround has rank 2 be in a later call already, while ranks 0 and 1 are in
// the earlier one.
func testWrapAround(t *testing.T, start Start) {
	const size = 1 << 20
	for _, numbers := range successions {
		early, late := sig, sig
		early.Sequence, late.Sequence = numbers[0], numbers[1]
		j := open(t, start, 3)
		j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
			return recv(ctx, e, early, 1, make([]byte, size))
		}, func(ctx context.Context, e transport.Endpoint) error {
			j.untilArrived(e)
			return errors.Join(send(ctx, e, early, 0, make([]byte, size)), recv(ctx, e, late, 2, nil))
		}, func(ctx context.Context, e transport.Endpoint) error {
			return send(ctx, e, late, 1, nil)
		})
	}
}

func testCheckUnreceived(t *testing.T, start Start) {
	mine, theirs := transport.Signature{Sequence: 1, Call: "mine"}, transport.Signature{Sequence: 2, Call: "theirs"}
	j := open(t, start, 2)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		return errors.Join(swap(ctx, e, mine, 1-e.Rank()), e.CheckUnreceived())
	})
	sent := make(chan error, 1)
	go func() { sent <- send(j.ctx, j.ends[1], theirs, 0, make([]byte, 100)) }()
	e := j.ends[0]
	j.untilArrived(e)
	want := transport.UnreceivedError{Rank: 0, Peer: 1, Mine: mine, Theirs: theirs}
	if got := new(transport.UnreceivedError); !errors.As(e.CheckUnreceived(), &got) || *got != want {
		t.Errorf("got %v, want %v", got, &want)
	}
	e.Close()
	if err := e.CheckUnreceived(); err != nil {
		t.Errorf("after Close: got %v", err)
	}
	const reason = `its last call was call 1, "mine"`
	if err := <-sent; err != nil { // not completed before the receiver has left
		checkReason(t, err, 0, transport.ErrLeft, reason)
	}
	checkReason(t, swap(j.ctx, j.ends[1], theirs, 0), 0, transport.ErrLeft, reason)
}

func testCheckUnreceivedTagged(t *testing.T, start Start) {
	for _, size := range []int{0, 24, 1000, 100000} {
		j := open(t, start, 2)
		e := j.ends[0]
		if err := e.CheckUnreceived(); err != nil {
			t.Errorf("before any message: %v", err)
		}
		sent := make(chan error, 1)
		go func() { sent <- sendTagged(j.ctx, j.ends[1], 0, match, tagged(1, size)) }()
		var got *transport.UnreceivedError
		j.until(func() bool { return errors.As(e.CheckUnreceived(), &got) })
		want := transport.MessageInfo{From: 1, Tag: match.Tag, Size: size, Type: "bytes"}
		if got.Rank != 0 || got.Peer != 1 || got.Tagged == nil || *got.Tagged != want {
			t.Errorf("got %v, want %+v", got, want)
		}
		err := errors.Join(recvTagged(j.ctx, e, 1, match, tagged(1, size)), e.CheckUnreceived(), <-sent)
		if err != nil {
			t.Errorf("once it was received: %v", err)
		}
	}
}

func testRelease(t *testing.T, start Start) {
	j, _ := enqueueUnexpected(t, start, "do", "re")
	e := j.ends[1]
	e.Release(sig.Context + 1) // another
	var unreceived *transport.UnreceivedError
	if err := e.CheckUnreceived(); !errors.As(err, &unreceived) || unreceived.Theirs != sig {
		t.Errorf("got %v, want two unreceived messages", err)
	}
	e.Release(sig.Context)
	if err := e.CheckUnreceived(); err != nil {
		t.Errorf("after the release: %v", err)
	}
}
