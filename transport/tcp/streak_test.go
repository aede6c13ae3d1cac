package tcp

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// inStreak has rank 0 defer the messages of steps to rank 1, however long it computes between
// them. They are not written before the rank waits, unless delay is set.
func inStreak(ends []*Endpoint, delay time.Duration) {
	e := ends[0]
	e.engine.Lock()
	defer e.engine.Unlock()
	b, l := &e.bursts, e.links[1]
	b.time, b.gap, b.delay = time.Hour, time.Hour, cmp.Or(delay, time.Hour)
	l.in.looked, l.in.fresh = time.Now().Add(time.Hour), false
	l.streak.length = streakMin
}

// numbered is the call in which rank 0 sends a number.
func numbered(i int) transport.Signature {
	s := sig
	s.Sequence += uint32(i) + 1
	return s
}

// sendNumbers sends n numbers to a rank, in a step each.
func sendNumbers(t *testing.T, e *Endpoint, to, n int) {
	t.Helper()
	for i := range n {
		b := binary.LittleEndian.AppendUint64(nil, uint64(i))
		step := transport.Step{Signature: numbered(i), Sends: []transport.Send{{To: []int{to}, Data: b}}}
		if err := e.Exchange(context.Background(), step); err != nil {
			t.Fatal(err)
		}
		clear(b) // it is the caller's again
	}
}

// receiveNumbers receives what sendNumbers has sent.
func receiveNumbers(t *testing.T, e *Endpoint, from, n int) {
	t.Helper()
	for i := range n {
		b := make([]byte, 8)
		step := transport.Step{Signature: numbered(i), Recvs: []transport.Recv{{From: from, Into: b}}}
		if err := e.Exchange(context.Background(), step); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint64(b); got != uint64(i) {
			t.Fatalf("message %d is %d", i, got)
		}
	}
}

func isDeferred(e *Endpoint, to int) bool {
	e.engine.Lock()
	defer e.engine.Unlock()
	return e.links[to].burst.deferred
}

func TestStepsOfAStreakAreWrittenWhenTheirRankWaits(t *testing.T) {
	ends := linked(t)
	inStreak(ends, 0)
	sendNumbers(t, ends[0], 1, 5)
	if !isDeferred(ends[0], 1) {
		t.Fatal("the messages of a streak are not deferred")
	}
	answered := make(chan error, 1)
	go func() {
		step := transport.Step{Signature: numbered(5), Recvs: []transport.Recv{{From: 1}}}
		answered <- ends[0].Exchange(context.Background(), step)
	}()
	receiveNumbers(t, ends[1], 0, 5)
	step := transport.Step{Signature: numbered(5), Sends: []transport.Send{{To: []int{0}}}}
	if err := ends[1].Exchange(context.Background(), step); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
}

// The sender calls nothing any more.
func TestStepsOfAStreakArriveWhileTheirRankComputes(t *testing.T) {
	ends := linked(t)
	inStreak(ends, burstDelay)
	sendNumbers(t, ends[0], 1, 5)
	receiveNumbers(t, ends[1], 0, 5)
	until(ends[0], func() bool { return ends[0].links[1].streak.least == 2*streakMin })
}

func TestStepsOfAStreakAreReceivedAfterTheirRankHasLeft(t *testing.T) {
	ends := linked(t)
	inStreak(ends, 0)
	sendNumbers(t, ends[0], 1, 5)
	if err := ends[0].Close(); err != nil {
		t.Fatal(err)
	}
	receiveNumbers(t, ends[1], 0, 5)
}

// A long message is written where it lies, behind those that are deferred.
func TestStepsOfAStreakArriveBeforeALongMessage(t *testing.T) {
	ends := linked(t)
	inStreak(ends, 0)
	sendNumbers(t, ends[0], 1, 5)
	long := make([]byte, 2*burstMessageMax)
	step := transport.Step{Signature: numbered(5), Sends: []transport.Send{{To: []int{1}, Data: long}}}
	if err := ends[0].Exchange(context.Background(), step); err != nil {
		t.Fatal(err)
	}
	receiveNumbers(t, ends[1], 0, 5)
	step = transport.Step{Signature: numbered(5), Recvs: []transport.Recv{{From: 0, Into: long}}}
	if err := ends[1].Exchange(context.Background(), step); err != nil {
		t.Fatal(err)
	}
}

func TestAStreakBeginsAfterManyStepsThatOnlySend(t *testing.T) {
	ends := linked(t)
	inStreak(ends, 0)
	l := ends[0].links[1]
	ends[0].engine.Lock()
	l.streak.length = 0
	ends[0].engine.Unlock()
	sendNumbers(t, ends[0], 1, streakMin)
	if isDeferred(ends[0], 1) {
		t.Fatalf("one of the first %d messages is deferred", streakMin)
	}
	receiveNumbers(t, ends[1], 0, streakMin)
	send := transport.Step{Signature: numbered(streakMin), Sends: []transport.Send{{To: []int{1}}}}
	if err := ends[0].Exchange(context.Background(), send); err != nil {
		t.Fatal(err)
	}
	if !isDeferred(ends[0], 1) {
		t.Fatalf("the message after %d others is not deferred", streakMin)
	}
}

// A rank that waits after each of its messages answers its peer, or is answered.
func TestStepsBetweenWhichTheirRankWaitsAreNoStreak(t *testing.T) {
	ends := linked(t)
	inStreak(ends, 0)
	const n = 4 * streakMin
	done := make(chan error, 1)
	go func() {
		for i := range n {
			recv := transport.Step{Signature: numbered(i), Recvs: []transport.Recv{{From: 0}}}
			send := transport.Step{Signature: numbered(i), Sends: []transport.Send{{To: []int{0}}}}
			if err := errors.Join(ends[1].Exchange(context.Background(), recv), ends[1].Exchange(context.Background(), send)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	ends[0].engine.Lock()
	ends[0].links[1].streak.length = 0
	ends[0].engine.Unlock()
	for i := range n {
		send := transport.Step{Signature: numbered(i), Sends: []transport.Send{{To: []int{1}}}}
		if err := ends[0].Exchange(context.Background(), send); err != nil {
			t.Fatal(err)
		}
		if isDeferred(ends[0], 1) {
			t.Fatalf("message %d is deferred", i)
		}
		recv := transport.Step{Signature: numbered(i), Recvs: []transport.Recv{{From: 1}}}
		if err := ends[0].Exchange(context.Background(), recv); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestARankThatOnlySendsInAStreakLearnsThatItsPeerHasLeft(t *testing.T) {
	ends := linked(t)
	inStreak(ends, 0)
	sendNumbers(t, ends[0], 1, 2)
	ends[0].engine.Lock()
	ends[0].links[1].in.looked = time.Time{}
	ends[0].bursts.time = burstTime
	ends[0].engine.Unlock()
	if err := ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	for i := 2; ; i++ {
		step := transport.Step{Signature: numbered(i), Sends: []transport.Send{{To: []int{1}}}}
		if err := ends[0].Exchange(context.Background(), step); err != nil {
			checkPeer(t, err, 1, transport.ErrLeft, "")
			return
		}
	}
}
