package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// fillCommunicator has both ranks send each other messages of steps and tagged ones, which
// nobody receives, until no more is taken. It returns the errors of the sends that wait, and
// how many tagged messages were sent.
func (j *job) fillCommunicator(number uint32) (waiting []<-chan error, sent int) {
	j.Helper()
	const size = 60 << 10
	for _, e := range j.ends {
		waiting = append(waiting, cluster.Begin(j.ctx, func(ctx context.Context) (err error) {
			for err == nil {
				err = send(ctx, e, inCommunicator(number), 1-e.Rank(), make([]byte, 1<<20))
			}
			return err
		}))
		n, all := 0, make(chan error, 1)
		progress := make(chan struct{}, 1000)
		go func() {
			for {
				if err := sendTagged(j.ctx, e, 1-e.Rank(), matchIn(number), tagged(1, size)); err != nil {
					all <- err
					return
				}
				progress <- struct{}{}
			}
		}()
		idle := 20 * time.Millisecond
		if UnderRace {
			idle *= 10
		}
		for full := false; !full; {
			select {
			case <-progress:
				n++
			case <-time.After(idle):
				full = n >= 8 // about half of the bound
			case <-j.ctx.Done():
				j.Fatalf("after %d messages, no more are taken", n)
			}
		}
		if cost := n * (size + transport.MessageCost); cost > transport.TaggedMax {
			j.Fatalf("%d tagged messages of %d bytes are taken", n, size)
		}
		waiting, sent = append(waiting, all), sent+n
	}
	return waiting, sent
}

func testRevokeCredits(t *testing.T, start Start) {
	j := open(t, start, 2)
	j.connect()
	for round := range uint32(4) {
		number, why := revoked+round, revocation(int(round%2))
		waiting, _ := j.fillCommunicator(number)
		j.ends[round%2].Revoke(number, why)
		for _, err := range waiting {
			checkSame(t, fmt.Sprint("round ", round), <-err, why)
		}
		for _, e := range j.ends {
			j.until(func() bool {
				_, _, err := e.Probe(j.ctx, 1-e.Rank(), matchIn(sound), false) // polls
				h := e.Held()
				return err != nil || h.Unexpected+h.Tagged+h.Unsent == 0
			})
		}
		j.each(func(ctx context.Context, e transport.Endpoint) error {
			return errors.Join(
				swapAll(ctx, e, inCommunicator(sound<<8), 3<<20),
				swapTagged(ctx, e, matchIn(sound<<8), 3<<20))
		})
	}
}

// testManyRevocations uses each communicator, has messages left in it, and revokes it.
func testManyRevocations(t *testing.T, start Start) {
	rounds := 200
	if UnderRace {
		rounds = 40
	}
	j := open(t, start, 3)
	for round := range uint32(rounds) {
		number := revoked + round
		for _, e := range j.ends {
			e.SetMembers(number, []int{0, 1, 2})
		}
		why := revocation(int(round % 3))
		errs := j.all(slices.Repeat([]rankFunc{func(ctx context.Context, e transport.Endpoint) error {
			if err := swapAll(ctx, e, inCommunicator(number), 100); err != nil {
				return err
			}
			if err := sendTagged(ctx, e, (e.Rank()+1)%3, matchIn(number), tagged(1, 2000)); err != nil && e.Rank() == why.Peer {
				return err
			}
			if e.Rank() == why.Peer {
				e.Revoke(number, why)
			}
			return recv(ctx, e, inCommunicator(number), (e.Rank()+1)%3, nil)
		}}, 3)...)
		for _, err := range errs {
			checkSame(t, fmt.Sprint("round ", round), err, why)
		}
		if t.Failed() {
			return
		}
	}
	j.each(func(ctx context.Context, e transport.Endpoint) error { return swapAll(ctx, e, sig, 100) })
	for _, e := range j.ends {
		j.until(func() bool {
			_, _, _ = e.Probe(j.ctx, transport.Any, match, false) // polls
			return e.Held() == transport.Held{}
		})
	}
}
