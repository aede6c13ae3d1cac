package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// heldClaims: how an endpoint counts what it holds.
var heldClaims = []claim{
	{"WhatSendersAndReceiversHoldOfTaggedMessagesIsBounded", testTaggedHeld},
	{"AnnouncementsWaitBeyondABoundAndKeepTheirOrder", testAnnouncementsHeld},
	{"HeldMayBeCalledAtAnyTime", testHeldAtAnyTime},
}

// testTaggedHeld has rank 0 send to a rank that receives nothing, until a Send waits.
func testTaggedHeld(t *testing.T, start Start) {
	sizes := []int{30, 60 << 10}
	if !UnderRace {
		sizes = append(sizes, 0, 1000)
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			j := open(t, start, 2)
			sent := 0
			for {
				ctx, cancel := context.WithTimeout(j.ctx, 20*time.Millisecond)
				err := sendTagged(ctx, j.ends[0], 1, match, tagged(sent, size))
				cancel()
				if errors.Is(err, context.DeadlineExceeded) && j.ctx.Err() == nil {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				sent++
				if n := j.ends[0].Held().Unsent; n > transport.UnsentMax {
					t.Fatalf("after %d messages, the sender holds %d bytes", sent, n)
				}
			}
			for n, most := sent, 0; ; n-- {
				if most = max(most, j.ends[1].Held().Tagged); most > transport.TaggedMax {
					t.Fatalf("the receiver holds %d bytes", most)
				}
				if n == 0 {
					break
				}
				if err := recvTagged(j.ctx, j.ends[1], 0, match, tagged(sent-n, size)); err != nil {
					t.Fatal(err)
				}
			}
			j.until(func() bool { return j.ends[0].Held().Unsent == 0 })
			if n := j.ends[1].Held().Tagged; n > transport.MessageCost { // that of the Send that was canceled
				t.Errorf("everything is received, and the receiver holds %d bytes", n)
			}
		})
	}
}

// testHeldAtAnyTime asks during an Exchange, and after Close.
func testHeldAtAnyTime(t *testing.T, start Start) {
	j := open(t, start, 2)
	received := cluster.Begin(j.ctx, func(ctx context.Context) error { return recv(ctx, j.ends[0], sig, 1, nil) })
	for _, e := range j.ends {
		if h := e.Held(); h != (transport.Held{}) {
			t.Errorf("rank %d, which has got nothing, holds %+v", e.Rank(), h)
		}
	}
	if err := send(j.ctx, j.ends[1], sig, 0, nil); err != nil {
		t.Fatal(err)
	}
	j.noErrors([]error{<-received, j.ends[1].Close()})
	for _, e := range j.ends {
		if h := e.Held(); h != (transport.Held{}) {
			t.Errorf("rank %d holds %+v in the end", e.Rank(), h)
		}
	}
}

// testAnnouncementsHeld starts many sends that find no credits to a rank that receives
// nothing: all but those that are kept back are announced there. They arrive in order,
// also those that are started while the others are received.
func testAnnouncementsHeld(t *testing.T, start Start) {
	const size, least, most = 100, transport.TaggedMax * 3 / 2, transport.TaggedMax * 2
	n := 60_000
	if UnderRace || testing.Short() {
		n = 45_000
	}
	j := open(t, start, 2)
	data := tagged(0, size)
	sends := make([]transport.Request, n)
	startUntil := func(from, to int) {
		for i := from; i < to; i++ {
			j.ends[0].StartSend(j.ctx, &sends[i], 1, transport.Match{Context: match.Context, Tag: i}, "bytes", data)
		}
	}
	startUntil(0, n*2/3)
	var held int
	for rounds := 0; rounds < 100 || held < least; rounds++ { // both ranks poll
		j.ends[0].Progress()
		if held = j.ends[1].Held().Tagged; held > most {
			t.Fatalf("the receiver holds %d bytes", held)
		}
		if _, _, err := j.ends[1].Probe(j.ctx, 0, transport.Match{Context: match.Context + 1}, false); err != nil {
			t.Fatal(err)
		}
	}
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		startUntil(n*2/3, n)
		for i := range sends {
			if e.Wait(&sends[i]); sends[i].Err != nil {
				return fmt.Errorf("message %d: %w", i, sends[i].Err)
			}
		}
		return nil
	}, func(ctx context.Context, e transport.Endpoint) error {
		const window = 500 // receives in progress
		var recvs [window]startedMessage
		for first := 0; first < n; first += window {
			for i := range recvs {
				recvs[i] = startedMessage{buf: make([]byte, size)}
				e.StartRecv(ctx, &recvs[i].Request, 0, transport.Match{Context: match.Context, Tag: transport.Any}, "bytes", recvs[i].buf)
			}
			for i := range recvs {
				e.Wait(&recvs[i].Request)
				if info, err := recvs[i].Info, recvs[i].Err; err != nil || info.Tag != first+i {
					return fmt.Errorf("receive %d: message %d, %w", first+i, info.Tag, err)
				}
			}
			if held := e.Held().Tagged; held > most {
				return fmt.Errorf("with %d messages received, the receiver holds %d bytes", first+window, held)
			}
		}
		return nil
	})
}
