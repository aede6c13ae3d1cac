package transporttest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// stallClaims: an endpoint says what waits there, and for whom.
var stallClaims = []claim{
	{"AStallNamesTheRanksThatTheStepWaitsFor", testStallNamesPeers},
	{"ARankThatDoesNotWaitHasNoStall", testNoStall},
	{"AStallNamesTheReceiverThatDoesNotCome", testStallOfSender},
	{"AStallNamesWhomATaggedMessageIsAwaitedFrom", testStallOfTagged},
	{"AWaitForAnotherMessageIsAnotherStall", testStallOfNextTagged},
}

// awaitStalls waits until an endpoint has exactly the stalls wanted, but for the numbers
// of their waits and the lines of the program.
func (j *job) awaitStalls(e transport.Endpoint, want ...transport.Stall) {
	j.Helper()
	for {
		got := e.Stalls()
		for i := range got {
			got[i].Wait, got[i].Where, got[i].Operation = 0, "", 0
			if i < len(want) && got[i].Message == "" { // the endpoint does not say it
				got[i].Message = want[i].Message
			}
		}
		if len(got) == len(want) && (len(want) == 0 || reflect.DeepEqual(got, want)) {
			return
		}
		select {
		case <-j.ctx.Done():
			j.Errorf("rank %d: stalls %+v, want %+v", e.Rank(), got, want)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func testStallNamesPeers(t *testing.T, start Start) {
	j := open(t, start, 4)
	seen := make(chan bool)
	send := func(ctx context.Context, e transport.Endpoint) error {
		return e.Exchange(ctx, transport.Step{Signature: callA, Sends: []transport.Send{{To: []int{0}, Data: []byte("abcd")}}})
	}
	late := func(ctx context.Context, e transport.Endpoint) error {
		<-seen
		return send(ctx, e)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(seen)
		j.awaitStalls(j.ends[0], transport.Stall{Signature: callA, Peers: []int{1, 3}})
	}()
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		step := transport.Step{Signature: callA}
		for from := 1; from < 4; from++ {
			step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: make([]byte, 4)})
		}
		return e.Exchange(ctx, step)
	}, late, send, late)
	<-done
	j.awaitStalls(j.ends[0])
}

func testNoStall(t *testing.T, start Start) {
	j := open(t, start, 2)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		peer := 1 - e.Rank()
		return e.Exchange(ctx, transport.Step{Signature: callA,
			Sends: []transport.Send{{To: []int{peer}, Data: make([]byte, 8)}},
			Recvs: []transport.Recv{{From: peer, Into: make([]byte, 8)}}})
	})
	for _, e := range j.ends {
		j.awaitStalls(e)
	}
}

// A message of 16 MiB fits into no transport's buffers.
func testStallOfSender(t *testing.T, start Start) {
	const size = 16 << 20
	j := open(t, start, 2)
	seen := make(chan bool)
	go func() {
		defer close(seen)
		j.awaitStalls(j.ends[0], transport.Stall{Signature: callA, Peers: []int{1}})
	}()
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return e.Exchange(ctx, transport.Step{Signature: callA, Sends: []transport.Send{{To: []int{1}, Data: make([]byte, size)}}})
	}, func(ctx context.Context, e transport.Endpoint) error {
		<-seen
		return e.Exchange(ctx, transport.Step{Signature: callA, Recvs: []transport.Recv{{From: 0, Into: make([]byte, size)}}})
	})
}

// Long messages wait for their receivers.
func testStallOfTagged(t *testing.T, start Start) {
	const size = 16 << 20
	m := transport.Match{Context: 5, Tag: 7}
	stall := transport.Stall{Signature: transport.Signature{Context: 5}, Message: "recv", Tag: 7}
	j := open(t, start, 2)
	received, sending := make(chan bool), make(chan bool)
	go func() {
		defer close(received)
		stall.Peers = []int{1}
		j.awaitStalls(j.ends[0], stall)
	}()
	go func() {
		defer close(sending)
		<-received
		stall.Peers, stall.Message = []int{0}, "send"
		j.awaitStalls(j.ends[1], stall)
	}()
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		if _, err := e.Recv(ctx, 1, m, "byte", make([]byte, 1)); err != nil {
			return err
		}
		<-sending
		_, err := e.Recv(ctx, 1, m, "byte", make([]byte, size))
		return err
	}, func(ctx context.Context, e transport.Endpoint) error {
		<-received
		if err := e.Send(ctx, 0, m, "byte", make([]byte, 1)); err != nil {
			return err
		}
		return e.Send(ctx, 0, m, "byte", make([]byte, size))
	})
}

// A rank that waits again and again for messages of one tag makes progress.
func testStallOfNextTagged(t *testing.T, start Start) {
	m := transport.Match{Context: 5, Tag: 7}
	stall := transport.Stall{Signature: transport.Signature{Context: 5}, Message: "recv", Tag: 7, Peers: []int{1}}
	j := open(t, start, 2)
	seen, over, done := make(chan bool, 2), make(chan bool, 2), make(chan bool)
	go func() {
		defer close(done)
		var waits [2]uint64
		for i := range waits {
			j.awaitStalls(j.ends[0], stall)
			if s := j.ends[0].Stalls(); len(s) == 1 {
				waits[i] = s[0].Wait
			}
			if s := j.ends[0].Stalls(); len(s) != 1 || s[0].Wait != waits[i] {
				t.Errorf("stalls %+v of wait %d", s, waits[i])
			}
			seen <- true
			j.awaitStalls(j.ends[0])
			over <- true
		}
		if waits[0] == waits[1] {
			t.Errorf("both waits are number %d", waits[0])
		}
	}()
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		for range 2 {
			if _, err := e.Recv(ctx, 1, m, "byte", make([]byte, 1)); err != nil {
				return err
			}
			<-over
		}
		return nil
	}, func(ctx context.Context, e transport.Endpoint) error {
		for range 2 {
			<-seen
			if err := e.Send(ctx, 0, m, "byte", make([]byte, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	<-done
}
