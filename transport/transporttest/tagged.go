package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// taggedClaims: which tagged message a receive finds.
var taggedClaims = []claim{
	{"TaggedMessagesOfOneMatchStayInOrder", testTaggedOrder},
	{"ATaggedMessageIsReceivedByItsMatch", testTaggedMatch},
	{"TaggedMessagesOfEverySizeArrive", testTaggedSizes},
	{"AnEmptyTaggedMessageBeyondTheCreditsArrives", testEmptyBeyondCredits},
	{"ARankSendsATaggedMessageToItself", testTaggedSelf},
	{"ATaggedMessageThatDoesNotFitStaysQueued", testTaggedMisfit},
	{"ProbeLeavesTheMessageQueued", testProbe},
	{"TryRecvReceivesWhatHasArrived", testTryRecv},
	{"ACanceledRecvLeavesTheEndpointUsable", testCanceledRecv},
	{"TaggedMessagesAndStepsAreIndependent", testTaggedBesideSteps},
	{"AnUnexpectedMessageOfAStepHoldsUpNoTaggedMessage", testTaggedOvertakes},
}

// match is the match of most tagged messages.
var match = transport.Match{Context: 3, Tag: 5}

// tagged returns the data of a tagged message. It depends on n.
func tagged(n, size int) []byte {
	const period = 256
	b := make([]byte, size)
	for i := range min(size, period) {
		b[i] = byte(n + i*7)
	}
	for done := period; done < size; done *= 2 {
		copy(b[done:], b[:done])
	}
	return b
}

func sendTagged(ctx context.Context, e transport.Endpoint, to int, m transport.Match, data []byte) error {
	return e.Send(ctx, to, m, "bytes", data)
}

// recvTagged receives the next message and compares it with want.
func recvTagged(ctx context.Context, e transport.Endpoint, from int, m transport.Match, want []byte) error {
	into := make([]byte, len(want))
	info, err := e.Recv(ctx, from, m, "bytes", into)
	if err != nil {
		return err
	}
	if info.Size != len(want) || !bytes.Equal(into, want) {
		return fmt.Errorf("rank %d received the wrong message, %+v", e.Rank(), info)
	}
	return nil
}

// taggedSizes are sizes below and above those that a transport may copy.
var taggedSizes = []int{0, 1, 100, 64 << 10, 64<<10 + 1, 3 << 20}

func testTaggedOrder(t *testing.T, start Start) {
	const rounds = 20
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		for i := range rounds {
			if err := sendTagged(ctx, e, 1, match, tagged(i, taggedSizes[i%len(taggedSizes)])); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, e transport.Endpoint) error {
		for i := range rounds {
			if err := recvTagged(ctx, e, 0, match, tagged(i, taggedSizes[i%len(taggedSizes)])); err != nil {
				return err
			}
		}
		return nil
	})
}

func testTaggedMatch(t *testing.T, start Start) {
	otherContext := transport.Match{Context: match.Context + 1, Tag: match.Tag}
	otherTag := transport.Match{Context: match.Context, Tag: match.Tag + 1}
	sender := func(ctx context.Context, e transport.Endpoint) error {
		for i, m := range []transport.Match{match, otherContext, otherTag} {
			if err := sendTagged(ctx, e, 0, m, tagged(10*e.Rank()+i, 50)); err != nil {
				return err
			}
		}
		return nil
	}
	open(t, start, 3).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		anyTag := transport.Match{Context: match.Context, Tag: transport.Any}
		if err := errors.Join(
			recvTagged(ctx, e, 2, otherContext, tagged(21, 50)),
			recvTagged(ctx, e, 1, otherTag, tagged(12, 50)),
			recvTagged(ctx, e, 1, anyTag, tagged(10, 50)),
			recvTagged(ctx, e, 2, anyTag, tagged(20, 50)),
		); err != nil {
			return err
		}
		into := make([]byte, 50)
		info, err := e.Recv(ctx, transport.Any, otherContext, "bytes", into)
		if err != nil || info.From != 1 || info.Tag != match.Tag || info.Type != "bytes" {
			return fmt.Errorf("from any rank: %+v, %v", info, err)
		}
		return recvTagged(ctx, e, transport.Any, otherTag, tagged(22, 50))
	}, sender, sender)
}

func testTaggedSizes(t *testing.T, start Start) {
	j := open(t, start, 2)
	for _, size := range taggedSizes {
		errs := j.all(func(ctx context.Context, e transport.Endpoint) error {
			data := tagged(1, size)
			err := sendTagged(ctx, e, 1, match, data)
			clear(data) // Send has returned, so this is allowed
			return err
		}, func(ctx context.Context, e transport.Endpoint) error {
			return recvTagged(ctx, e, 0, match, tagged(1, size))
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
}

// testEmptyBeyondCredits has rank 0 send all that it may before rank 1 receives, and
// then an empty message.
func testEmptyBeyondCredits(t *testing.T, start Start) {
	const size = 64<<10 - transport.MessageCost
	const messages = transport.TaggedMax / (size + transport.MessageCost)
	last := transport.Match{Context: match.Context, Tag: match.Tag + 1}
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		for i := range messages {
			if err := sendTagged(ctx, e, 1, match, tagged(i, size)); err != nil {
				return err
			}
		}
		return sendTagged(ctx, e, 1, last, nil)
	}, func(ctx context.Context, e transport.Endpoint) error {
		if _, _, err := e.Probe(ctx, 0, last, true); err != nil {
			return err
		}
		if err := recvTagged(ctx, e, 0, last, nil); err != nil {
			return err
		}
		for i := range messages {
			if err := recvTagged(ctx, e, 0, match, tagged(i, size)); err != nil {
				return err
			}
		}
		return nil
	})
}

func testTaggedSelf(t *testing.T, start Start) {
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		if err := sendTagged(ctx, e, e.Rank(), match, tagged(1, 10)); err != nil {
			return err
		}
		if err := recvTagged(ctx, e, transport.Any, match, tagged(1, 10)); err != nil {
			return err
		}
		sent := make(chan error, 1)
		go func() { sent <- sendTagged(ctx, e, e.Rank(), match, tagged(2, 1<<20)) }()
		return errors.Join(recvTagged(ctx, e, e.Rank(), match, tagged(2, 1<<20)), <-sent)
	})
}

func testTaggedMisfit(t *testing.T, start Start) {
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return sendTagged(ctx, e, 1, match, tagged(1, 100))
	}, func(ctx context.Context, e transport.Endpoint) error {
		info, err := e.Recv(ctx, 0, match, "bytes", make([]byte, 99))
		var size *transport.SizeError
		if !errors.As(err, &size) || size.Got != 100 || size.Want != 99 || info.Size != 100 {
			return fmt.Errorf("100 bytes into 99: %+v, %v", info, err)
		}
		_, err = e.Recv(ctx, 0, match, "words", make([]byte, 100))
		var kind *transport.TypeError
		if !errors.As(err, &kind) || kind.Got != "bytes" || kind.Want != "words" {
			return fmt.Errorf("bytes for words: %v", err)
		}
		return recvTagged(ctx, e, 0, match, tagged(1, 100))
	})
}

func testProbe(t *testing.T, start Start) {
	ready := make(chan struct{})
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		<-ready
		return sendTagged(ctx, e, 1, match, tagged(1, 1<<20))
	}, func(ctx context.Context, e transport.Endpoint) error {
		info, found, err := e.Probe(ctx, 0, match, false)
		close(ready)
		if found || err != nil {
			return fmt.Errorf("before the send: %+v, %v, %v", info, found, err)
		}
		want := transport.MessageInfo{From: 0, Tag: match.Tag, Size: 1 << 20, Type: "bytes"}
		for _, wait := range []bool{true, false} {
			if info, found, err := e.Probe(ctx, transport.Any, match, wait); !found || err != nil || info != want {
				return fmt.Errorf("wait %v: %+v, %v, %v", wait, info, found, err)
			}
		}
		return recvTagged(ctx, e, 0, match, tagged(1, 1<<20))
	})
}

func testTryRecv(t *testing.T, start Start) {
	j := open(t, start, 2)
	for _, size := range []int{0, 100, 1 << 20} {
		for _, from := range []int{0, transport.Any} {
			into := make([]byte, size)
			try := func(typeName string, into []byte) (transport.MessageInfo, bool, error) {
				return j.ends[1].TryRecv(j.ctx, from, match, typeName, into)
			}
			if info, found, err := try("bytes", into); found || err != nil {
				t.Fatalf("before the send: %+v, %v, %v", info, found, err)
			}
			sent := cluster.Begin(j.ctx, func(ctx context.Context) error {
				return sendTagged(ctx, j.ends[0], 1, match, tagged(1, size))
			})
			if _, _, err := j.ends[1].Probe(j.ctx, from, match, true); err != nil {
				t.Fatal(err)
			}
			want := transport.MessageInfo{From: 0, Tag: match.Tag, Size: size, Type: "bytes"}
			var wrongType *transport.TypeError
			if info, found, err := try("words", into); info != want || !found || !errors.As(err, &wrongType) {
				t.Errorf("bytes for words: %+v, %v, %v", info, found, err)
			}
			if size > 0 {
				var wrongSize *transport.SizeError
				if info, found, err := try("bytes", into[1:]); info != want || !found || !errors.As(err, &wrongSize) {
					t.Errorf("%d bytes into one fewer: %+v, %v, %v", size, info, found, err)
				}
			}
			if info, found, err := try("bytes", into); info != want || !found || err != nil || !bytes.Equal(into, tagged(1, size)) {
				t.Errorf("%d bytes: %+v, %v, %v", size, info, found, err)
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
			if info, found, err := try("bytes", into); found || err != nil {
				t.Errorf("a message is received twice: %+v, %v, %v", info, found, err)
			}
		}
	}
}

func testCanceledRecv(t *testing.T, start Start) {
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		never := transport.Match{Context: match.Context, Tag: match.Tag + 1}
		if _, err := e.Recv(short, transport.Any, never, "bytes", nil); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		peer := 1 - e.Rank()
		return errors.Join(sendTagged(ctx, e, peer, match, tagged(1, 10)), recvTagged(ctx, e, peer, match, tagged(1, 10)))
	})
}

// testTaggedBesideSteps sends tagged messages and steps by turns, and receives the
// tagged messages only after all steps.
func testTaggedBesideSteps(t *testing.T, start Start) {
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		const steps, short, long = 50, 200, 2 << 20
		peer := 1 - e.Rank()
		sent := make(chan error, 1)
		go func() { sent <- sendTagged(ctx, e, peer, match, tagged(3, long)) }()
		for i := range steps {
			if err := sendTagged(ctx, e, peer, match, tagged(i, short)); err != nil {
				return err
			}
			into := make([]byte, 300)
			if err := e.Exchange(ctx, transport.Step{
				Signature: transport.Signature{Context: 1, Sequence: uint32(i), Call: "test"},
				Sends:     []transport.Send{{To: []int{peer}, Data: tagged(i, 300)}},
				Recvs:     []transport.Recv{{From: peer, Into: into}},
			}); err != nil {
				return err
			}
			if !bytes.Equal(into, tagged(i, 300)) {
				return fmt.Errorf("step %d received another message", i)
			}
		}
		next, into := 0, make([]byte, long)
		for range steps + 1 {
			info, err := e.Recv(ctx, peer, match, "bytes", into)
			switch {
			case err != nil:
				return err
			case info.Size == short && bytes.Equal(into[:short], tagged(next, short)):
				next++
			case info.Size != long || !bytes.Equal(into, tagged(3, long)):
				return fmt.Errorf("the message received after %d short ones, %+v, was not sent", next, info)
			}
		}
		return <-sent
	})
}

// testTaggedOvertakes has a message of a step arrive first, which rank 1 receives
// last.
func testTaggedOvertakes(t *testing.T, start Start) {
	for _, size := range []int{0, 8, 20 << 20} {
		for _, from := range []int{0, transport.Any} {
			t.Run(fmt.Sprintf("bytes=%d/from=%d", size, from), func(t *testing.T) {
				message := tagged(3, size)
				arrived := make(chan struct{})
				j := open(t, start, 2)
				j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
					sent := make(chan error, 1)
					go func() { sent <- send(ctx, e, sig, 1, message) }()
					<-arrived
					return errors.Join(
						sendTagged(ctx, e, 1, match, tagged(1, 100)),
						sendTagged(ctx, e, 1, match, tagged(2, 1<<20)),
						<-sent)
				}, func(ctx context.Context, e transport.Endpoint) error {
					j.untilArrived(e)
					close(arrived)
					err := errors.Join(
						recvTagged(ctx, e, from, match, tagged(1, 100)),
						recvTagged(ctx, e, from, match, tagged(2, 1<<20)))
					into := make([]byte, size)
					err = errors.Join(err, recv(ctx, e, sig, 0, into))
					if err == nil && !bytes.Equal(into, message) {
						err = errors.New("the message of the step arrived changed")
					}
					return err
				})
			})
		}
	}
}
