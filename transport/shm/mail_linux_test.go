package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// stamp is that of most letters.
var stamp = transport.Stamp{Context: 1, Tag: 7}

func postLetter(e *Endpoint, to int, data []byte) error {
	return e.Post(context.Background(), to, stamp, "bytes", data)
}

// takeLetter takes a letter and compares it.
func takeLetter(e *Endpoint, from int, want []byte) error {
	into := make([]byte, len(want))
	env, err := e.Take(context.Background(), from, stamp, "bytes", into)
	if err != nil {
		return err
	}
	if env.Size != len(want) || !bytes.Equal(into, want) {
		return fmt.Errorf("rank %d took %+v, not the letter that it wants", e.Rank(), env)
	}
	return nil
}

// numbered is a letter that differs from others.
func numbered(n, size int) []byte { return bytes.Repeat([]byte{byte(n), byte(n >> 8)}, size/2) }

// lends reports whether a long letter to rank 1 awaits its taker.
func lends(e *Endpoint) func() bool {
	return func() bool { return len(e.links[1].offered) > 0 }
}

func TestLettersThatNobodyTakesAreBounded(t *testing.T) {
	ends := job(t, 2)
	const size = letterMost - letterCost // so that a whole number of them is the bound
	for i := range unreadMost / letterMost {
		if err := postLetter(ends[0], 1, numbered(i, size)); err != nil {
			t.Fatal(err)
		}
	}
	next := unreadMost / letterMost
	posted := make(chan error)
	go func() { posted <- postLetter(ends[0], 1, numbered(next, size)) }()
	until(ends[0], lends(ends[0]))
	for i := range next + 1 {
		if err := takeLetter(ends[1], 0, numbered(i, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-posted; err != nil {
		t.Fatal(err)
	}
	if err := postLetter(ends[0], 1, numbered(1, size)); err != nil {
		t.Fatal(err)
	}
	if err := takeLetter(ends[1], 0, numbered(1, size)); err != nil {
		t.Fatal(err)
	}
	until(ends[0], func() bool { return ends[0].links[1].untaken <= creditStep+letterMost })
}

// More is posted than a lane holds, and then its sender does something else.
func TestWhatIsPostedArrivesWithoutItsSender(t *testing.T) {
	ends := job(t, 2)
	const letters = 400
	for i := range letters {
		if err := postLetter(ends[0], 1, numbered(i, 500+i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range letters {
		if err := takeLetter(ends[1], 0, numbered(i, 500+i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsPostedArrivesAfterItsSenderHasLeft(t *testing.T) {
	ends := job(t, 2)
	const size = 60 << 10
	for i := range unreadMost / letterMost {
		if err := postLetter(ends[0], 1, numbered(i, size)); err != nil {
			t.Fatal(err)
		}
	}
	var leaving sync.WaitGroup
	leaving.Go(func() { ends[0].Close() })
	for i := range unreadMost / letterMost {
		if err := takeLetter(ends[1], 0, numbered(i, size)); err != nil {
			t.Fatal(err)
		}
	}
	leaving.Wait()
	checkPeer(t, takeLetter(ends[1], 0, nil), 0, transport.ErrLeft, "")
}

func TestAMessageThatNobodyExpectsHoldsUpNoLetter(t *testing.T) {
	for _, size := range []int{0, 8, 20 << 20} {
		for _, from := range []int{0, transport.Any} {
			t.Run(fmt.Sprintf("bytes=%d/from=%d", size, from), func(t *testing.T) {
				ends := job(t, 2)
				message := numbered(3, size)
				sent := make(chan error)
				go func() { sent <- send(ends[0], sig, 1, message) }()
				until(ends[1], func() bool {
					l := &ends[1].links[0]
					l.listen()
					return l.blocked
				})
				for _, n := range []int{100, 1 << 20} {
					posted := make(chan error)
					go func() { posted <- postLetter(ends[0], 1, numbered(n, n)) }()
					if err := errors.Join(takeLetter(ends[1], from, numbered(n, n)), <-posted); err != nil {
						t.Fatal(err)
					}
				}
				into := make([]byte, size)
				if err := receive(context.Background(), ends[1], sig, 0, into); err != nil || !bytes.Equal(into, message) {
					t.Fatalf("the message is not what was sent: %v", err)
				}
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func TestALetterWhosePostIsCancelledIsWithdrawn(t *testing.T) {
	ends := job(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	posted := make(chan error)
	go func() { posted <- ends[0].Post(ctx, 1, stamp, "bytes", numbered(1, 1<<20)) }()
	if env, _, err := ends[1].Peek(context.Background(), 0, stamp, true); err != nil || env.Size != 1<<20 {
		t.Fatalf("got %+v, %v", env, err)
	}
	cancel()
	if err := <-posted; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	if err := postLetter(ends[0], 1, numbered(2, 100)); err != nil {
		t.Fatal(err)
	}
	// The word of it comes before the letter that was posted after it.
	until(ends[1], func() bool {
		ends[1].links[0].listen()
		return len(ends[1].mail.letters) == 1
	})
	if err := takeLetter(ends[1], 0, numbered(2, 100)); err != nil {
		t.Fatal(err)
	}
}

func TestWhoTakesFromAnyLearnsThatAllHaveLeft(t *testing.T) {
	ends := job(t, 4)
	took := make(chan error)
	go func() { took <- takeLetter(ends[2], transport.Any, nil) }()
	for _, i := range []int{0, 3, 1} { // most of them have never talked to rank 2
		ends[i].Close()
	}
	checkPeer(t, <-took, 3, transport.ErrLeft, "so have all others")
}

func TestWhoWaitsForALetterLearnsThatARankIsLost(t *testing.T) {
	for name, wait := range map[string]func(e *Endpoint) error{
		"from":     func(e *Endpoint) error { return takeLetter(e, 2, nil) },
		"from any": func(e *Endpoint) error { return takeLetter(e, transport.Any, nil) },
		"to":       func(e *Endpoint) error { return postLetter(e, 2, make([]byte, 1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			ends := job(t, 3)
			ended := make(chan error)
			go func() { ended <- wait(ends[0]) }()
			until(ends[0], func() bool { return len(ends[0].ops) > 0 })
			ends[0].Lost(2, "it was killed")
			checkPeer(t, <-ended, 2, transport.ErrLost, "it was killed")
			// Only rank 2 is lost.
			if err := errors.Join(postLetter(ends[1], 0, []byte("ok")), takeLetter(ends[0], 1, []byte("ok"))); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAKilledRankPostsNoMore(t *testing.T) {
	job := processes(t, 2)
	job.perform(t, "swap", 8, 1)
	e := job.Endpoint.(*Endpoint)
	took, posted := make(chan error), make(chan error)
	go func() { took <- takeLetter(e, 1, nil) }()
	go func() { posted <- postLetter(e, 1, make([]byte, 1<<20)) }()
	until(e, lends(e))
	job.ranks[0].Process.Kill()
	checkPeer(t, <-took, 1, transport.ErrLost, "")
	checkPeer(t, <-posted, 1, transport.ErrLost, "")
}

func TestManyTakeAndPostAtOnce(t *testing.T) {
	const each, takers = 40, 4
	ends := job(t, 3)
	var sum sync.Map
	var ranks sync.WaitGroup
	for _, e := range ends {
		for peer := range ends {
			ranks.Go(func() {
				for i := range each {
					if err := postLetter(e, peer, numbered(i, []int{2, 8 << 10, 100 << 10}[i%3])); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range takers {
			ranks.Go(func() {
				into := make([]byte, 100<<10)
				for range len(ends) * each / takers {
					env, err := e.Take(context.Background(), transport.Any, stamp, "bytes", into)
					if err != nil {
						t.Error(err)
						return
					}
					n := int(into[0])
					if !bytes.Equal(into[:env.Size], numbered(n, env.Size)) {
						t.Errorf("rank %d: letter %d of rank %d is torn", e.Rank(), n, env.From)
					}
					if _, twice := sum.LoadOrStore([3]int{env.From, e.Rank(), n}, true); twice {
						t.Errorf("rank %d: letter %d of rank %d came twice", e.Rank(), n, env.From)
					}
				}
			})
		}
	}
	ranks.Wait()
	for _, e := range ends {
		if n := len(e.mail.letters); n > 0 {
			t.Errorf("rank %d holds %d letters more than were posted", e.Rank(), n)
		}
	}
}

func TestACancelledWaitForLettersEndsNoExchange(t *testing.T) {
	ends := job(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for _, from := range []int{0, 1, transport.Any} {
		waiting.Go(func() {
			if _, err := ends[0].Take(ctx, from, stamp, "bytes", nil); !errors.Is(err, context.Canceled) {
				t.Errorf("from %d: got %v, want %v", from, err, context.Canceled)
			}
		})
	}
	swapped := make(chan error, 2)
	until(ends[0], func() bool { return len(ends[0].ops) == 3 })
	go func() { swapped <- swap(context.Background(), ends[0], sig, 1) }()
	until(ends[0], func() bool { return len(ends[0].ops) == 4 })
	cancel()
	waiting.Wait()
	swapped <- swap(context.Background(), ends[1], sig, 0)
	if err := errors.Join(<-swapped, <-swapped); err != nil {
		t.Fatal(err)
	}
}
