package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// mailClaims are what a [transport.Messenger] must do. Other endpoints need not.
var mailClaims = []claim{
	{"LettersOfOneStampStayInOrder", testLetterOrder},
	{"LettersArePickedByStamp", testLetterStamps},
	{"LettersOfEverySizeArrive", testLetterSizes},
	{"EverybodyPostsFirst", testPostFirst},
	{"ARankPostsToItself", testPostToSelf},
	{"ALetterThatDoesNotFitStays", testLetterStays},
	{"PeekLeavesTheLetter", testPeek},
	{"ACancelledTakeLeavesTheEndpointWhole", testCancelledTake},
	{"ALetterIsTakenAfterItsSenderHasLeft", testLetterSurvives},
	{"WhoWaitsForALetterLearnsThatItsSenderHasLeft", testNoLetterFromLeft},
	{"LettersAndStepsGoSideBySide", testLettersBesideSteps},
	{"LettersThatNobodyTakesAreBounded", testUnreadBound},
	{"WhatIsPostedArrivesWithoutItsSender", testPostedAlone},
	{"ACancelledWaitForLettersEndsNoExchange", testCancelledWait},
	{"WhoTakesFromAnyLearnsThatAllHaveLeft", testAllHaveLeft},
	{"ManyTakeAndPostAtOnce", testManyAtOnce},
}

// RunMail tests that the endpoints that start makes keep the contract of
// [transport.Messenger].
func RunMail(t *testing.T, start Start) {
	runAll(t, start, mailClaims)
}

var stamp = transport.Match{Context: 3, Tag: 5}

// letter is the contents of a letter that tell which it is.
func letter(n, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(n + i*7)
	}
	return b
}

// take takes the next letter and compares it.
func take(ctx context.Context, e transport.Endpoint, from int, s transport.Match, want []byte) error {
	into := make([]byte, len(want))
	env, err := e.Recv(ctx, from, s, "bytes", into)
	if err != nil {
		return err
	}
	if env.Size != len(want) || !bytes.Equal(into, want) {
		return fmt.Errorf("rank %d took the wrong letter, %+v", e.Rank(), env)
	}
	return nil
}

func post(ctx context.Context, e transport.Endpoint, to int, s transport.Match, data []byte) error {
	return e.Send(ctx, to, s, "bytes", data)
}

// letterSizes are sizes on both sides of what a transport may copy.
var letterSizes = []int{0, 1, 100, 64 << 10, 64<<10 + 1, 3 << 20}

func testLetterOrder(t *testing.T, start Start) {
	j := open(t, start, 2)
	const rounds = 20
	errs := j.all(func(ctx context.Context, e transport.Endpoint) error {
		for i := range rounds {
			if err := post(ctx, e, 1, stamp, letter(i, letterSizes[i%len(letterSizes)])); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, e transport.Endpoint) error {
		for i := range rounds {
			if err := take(ctx, e, 0, stamp, letter(i, letterSizes[i%len(letterSizes)])); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func testLetterStamps(t *testing.T, start Start) {
	j := open(t, start, 3)
	other := transport.Match{Context: stamp.Context + 1, Tag: stamp.Tag}
	third := transport.Match{Context: stamp.Context, Tag: stamp.Tag + 1}
	sender := func(ctx context.Context, e transport.Endpoint) error {
		for i, s := range []transport.Match{stamp, other, third} {
			if err := post(ctx, e, 0, s, letter(10*e.Rank()+i, 50)); err != nil {
				return err
			}
		}
		return nil
	}
	errs := j.all(func(ctx context.Context, e transport.Endpoint) error {
		any := transport.Match{Context: stamp.Context, Tag: transport.Any}
		if err := errors.Join(
			take(ctx, e, 2, other, letter(21, 50)),
			take(ctx, e, 1, third, letter(12, 50)),
			take(ctx, e, 1, any, letter(10, 50)),
			take(ctx, e, 2, any, letter(20, 50)),
		); err != nil {
			return err
		}
		into := make([]byte, 50)
		env, err := e.Recv(ctx, transport.Any, other, "bytes", into)
		if err != nil || env.From != 1 || env.Tag != stamp.Tag || env.Type != "bytes" {
			return fmt.Errorf("any: %+v, %v", env, err)
		}
		return take(ctx, e, transport.Any, third, letter(22, 50))
	}, sender, sender)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func testLetterSizes(t *testing.T, start Start) {
	j := open(t, start, 2)
	for _, size := range letterSizes {
		errs := j.all(func(ctx context.Context, e transport.Endpoint) error {
			data := letter(1, size)
			err := post(ctx, e, 1, stamp, data)
			clear(data) // it is the sender's again
			return err
		}, func(ctx context.Context, e transport.Endpoint) error {
			return take(ctx, e, 0, stamp, letter(1, size))
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
}

// Short letters need no receiver: all ranks may post before any takes.
func testPostFirst(t *testing.T, start Start) {
	j := open(t, start, 4)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		for to := range e.Size() {
			if to != e.Rank() {
				if err := post(ctx, e, to, stamp, letter(e.Rank(), 4000)); err != nil {
					return err
				}
			}
		}
		for from := range e.Size() {
			if from != e.Rank() {
				if err := take(ctx, e, from, stamp, letter(from, 4000)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func testPostToSelf(t *testing.T, start Start) {
	j := open(t, start, 2)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		if err := post(ctx, e, e.Rank(), stamp, letter(1, 10)); err != nil {
			return err
		}
		if err := take(ctx, e, transport.Any, stamp, letter(1, 10)); err != nil {
			return err
		}
		long := make(chan error, 1)
		go func() { long <- post(ctx, e, e.Rank(), stamp, letter(2, 1<<20)) }()
		return errors.Join(take(ctx, e, e.Rank(), stamp, letter(2, 1<<20)), <-long)
	})
}

func testLetterStays(t *testing.T, start Start) {
	j := open(t, start, 2)
	errs := j.all(func(ctx context.Context, e transport.Endpoint) error {
		return post(ctx, e, 1, stamp, letter(1, 100))
	}, func(ctx context.Context, e transport.Endpoint) error {
		m := e
		env, err := m.Recv(ctx, 0, stamp, "bytes", make([]byte, 99))
		var size *transport.SizeError
		if !errors.As(err, &size) || size.Got != 100 || size.Want != 99 || env.Size != 100 {
			return fmt.Errorf("a letter of 100 bytes into 99: %+v, %v", env, err)
		}
		_, err = m.Recv(ctx, 0, stamp, "words", make([]byte, 100))
		var kind *transport.TypeError
		if !errors.As(err, &kind) || kind.Got != "bytes" || kind.Want != "words" {
			return fmt.Errorf("bytes for words: %v", err)
		}
		return take(ctx, e, 0, stamp, letter(1, 100))
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func testPeek(t *testing.T, start Start) {
	j := open(t, start, 2)
	ready := make(chan struct{})
	errs := j.all(func(ctx context.Context, e transport.Endpoint) error {
		<-ready
		return post(ctx, e, 1, stamp, letter(1, 1<<20))
	}, func(ctx context.Context, e transport.Endpoint) error {
		m := e
		if env, found, err := m.Probe(ctx, 0, stamp, false); found || err != nil {
			return fmt.Errorf("before there is one: %+v, %v, %v", env, found, err)
		}
		close(ready)
		want := transport.MessageInfo{From: 0, Tag: stamp.Tag, Size: 1 << 20, Type: "bytes"}
		for _, wait := range []bool{true, false} {
			if env, found, err := m.Probe(ctx, transport.Any, stamp, wait); !found || err != nil || env != want {
				return fmt.Errorf("wait %v: %+v, %v, %v", wait, env, found, err)
			}
		}
		return take(ctx, e, 0, stamp, letter(1, 1<<20))
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func testCancelledTake(t *testing.T, start Start) {
	j := open(t, start, 2)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		never := transport.Match{Context: stamp.Context, Tag: stamp.Tag + 1}
		if _, err := e.Recv(short, transport.Any, never, "bytes", nil); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("got %v", err)
		}
		peer := 1 - e.Rank()
		return errors.Join(post(ctx, e, peer, stamp, letter(1, 10)), take(ctx, e, peer, stamp, letter(1, 10)))
	})
}

func testLetterSurvives(t *testing.T, start Start) {
	j := open(t, start, 2)
	left := make(chan struct{})
	errs := j.all(func(ctx context.Context, e transport.Endpoint) error {
		defer close(left)
		return errors.Join(post(ctx, e, 1, stamp, letter(1, 1000)), e.Close())
	}, func(ctx context.Context, e transport.Endpoint) error {
		<-left
		return take(ctx, e, 0, stamp, letter(1, 1000))
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func testNoLetterFromLeft(t *testing.T, start Start) {
	j := open(t, start, 3)
	errs := j.all(func(ctx context.Context, e transport.Endpoint) error {
		return e.Close()
	}, func(ctx context.Context, e transport.Endpoint) error {
		return take(ctx, e, 0, stamp, nil)
	}, func(ctx context.Context, e transport.Endpoint) error {
		return post(ctx, e, 0, stamp, letter(1, 1<<20))
	})
	checkPeer(t, errs[1], 0, transport.ErrLeft, transport.ErrLost)
	checkPeer(t, errs[2], 0, transport.ErrLeft, transport.ErrLost)
}

// Letters that nobody takes yet hold up no step, and steps no letters.
func testLettersBesideSteps(t *testing.T, start Start) {
	j := open(t, start, 2)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		peer := 1 - e.Rank()
		long := make(chan error, 1)
		go func() { long <- post(ctx, e, peer, stamp, letter(3, 2<<20)) }()
		for i := range 50 {
			if err := post(ctx, e, peer, stamp, letter(i, 200)); err != nil {
				return err
			}
			into := make([]byte, 300)
			s := transport.Signature{Context: 1, Sequence: uint32(i), Call: "test"}
			if err := e.Exchange(ctx, transport.Step{
				Signature: s,
				Sends:     []transport.Send{{To: []int{peer}, Data: letter(i, 300)}},
				Recvs:     []transport.Recv{{From: peer, Into: into}},
			}); err != nil {
				return err
			}
			if !bytes.Equal(into, letter(i, 300)) {
				return fmt.Errorf("step %d brought something else", i)
			}
		}
		seen := 0
		for range 51 {
			into := make([]byte, 2<<20)
			env, err := e.Recv(ctx, peer, stamp, "bytes", into)
			if err != nil {
				return err
			}
			if want := letter(seen, 200); env.Size == 200 {
				if !bytes.Equal(into[:200], want) {
					return fmt.Errorf("letter %d is another", seen)
				}
				seen++
			} else if !bytes.Equal(into, letter(3, 2<<20)) {
				return errors.New("the long letter is another")
			}
		}
		return <-long
	})
}
