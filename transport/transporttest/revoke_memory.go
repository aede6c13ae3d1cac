package transporttest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// testCanceledMemory cancels a long send in the middle, after which its caller writes to
// the memory. The receiver gets the message as it was, or an error.
func testCanceledMemory(t *testing.T, start Start) {
	size, rounds := 32<<20, 12
	if testing.Short() || UnderRace {
		size, rounds = 4<<20, 6
	}
	data, into := make([]byte, size), make([]byte, size)
	want := pattern(make([]byte, size), 1)
	j := open(t, start, 2)
	j.connect()
	for round := range uint32(rounds) {
		s := inCommunicator(revoked + round)
		copy(data, want)
		ctx, cancel := context.WithCancel(j.ctx)
		sent, received := make(chan error, 1), make(chan error, 1)
		go func() {
			err := send(ctx, j.ends[0], s, 1, data)
			for i := range data {
				data[i] = 0xA5
			}
			sent <- err
		}()
		clear(into)
		late := round%3 == 2 // the receiver comes when the sender has given up
		receive := func() { received <- recv(j.ctx, j.ends[1], s, 0, into) }
		if !late {
			go receive()
		}
		time.Sleep(time.Duration(round) * time.Duration(size) / 64 * time.Nanosecond)
		cancel()
		err := <-sent
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("round %d: the sender got %v", round, err)
		}
		if late {
			go receive()
		}
		switch err := <-received; {
		case err == nil && !bytes.Equal(into, want):
			t.Fatalf("round %d: the message arrived changed", round)
		case err != nil:
			checkPeer(t, err, 0, transport.ErrAborted)
		}
		j.each(func(ctx context.Context, e transport.Endpoint) error {
			return swapAll(ctx, e, inCommunicator(sound<<8+round), 100_000)
		})
	}
}

// testCanceledInto cancels a long receive in the middle, after which its caller writes to
// the memory.
func testCanceledInto(t *testing.T, start Start) {
	size, rounds := 32<<20, 12
	if testing.Short() || UnderRace {
		size, rounds = 4<<20, 6
	}
	into, written := make([]byte, size), bytes.Repeat([]byte{0x5A}, size)
	data := pattern(make([]byte, size), 1)
	j := open(t, start, 2)
	j.connect()
	for round := range uint32(rounds) {
		s := inCommunicator(revoked + round)
		ctx, cancel := context.WithCancel(j.ctx)
		sent, received := make(chan error, 1), make(chan error, 1)
		go func() { sent <- send(j.ctx, j.ends[0], s, 1, data) }()
		go func() {
			err := recv(ctx, j.ends[1], s, 0, into)
			if err == nil && !bytes.Equal(into, data) {
				t.Errorf("round %d: the message arrived changed", round)
			}
			copy(into, written)
			received <- err
		}()
		time.Sleep(time.Duration(round) * time.Duration(size) / 64 * time.Nanosecond)
		cancel()
		if err := <-received; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("round %d: the receiver got %v", round, err)
		}
		if err := <-sent; err != nil {
			checkPeer(t, err, 1, transport.ErrAborted)
		}
		j.each(func(ctx context.Context, e transport.Endpoint) error {
			return swapAll(ctx, e, inCommunicator(sound<<8+round), 100_000)
		})
		if !bytes.Equal(into, written) {
			t.Fatalf("round %d: the memory was written after its Exchange had returned", round)
		}
	}
}
