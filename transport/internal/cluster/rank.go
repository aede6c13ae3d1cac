package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A Rank runs patterns over one endpoint. It keeps its buffers from one run to the
// next.
type Rank struct {
	transport.Endpoint
	Best      time.Duration // the shortest mean time per round of 50 consecutive rounds
	out, into []byte
	calls     uint32 // Exchanges so far
	patterns  map[string]Pattern
}

// A Pattern does rounds of some communication.
type Pattern func(r *Rank, rounds int) error

// Run does rounds of a pattern with messages of the given length. Beside those of
// the [Setup], the patterns are:
//
//	swap       the messages of an allreduce by recursive doubling
//	direct     every rank sends to every other
//	bcast      rank 0 sends to all others, which acknowledge the last message
//	bandwidth  rank 0 sends to rank 1, which acknowledges the last message
//	wait       every rank waits for a message of rank 0
//	pingpong   a tagged message goes from rank 0 to rank 1 and back
//	tagged     rank 0 sends tagged messages to rank 1, which replies to the last
func (r *Rank) Run(pattern string, bytes, rounds int) error {
	rank, size := r.Rank(), r.Size()
	if cap(r.out) < bytes {
		r.out, r.into = make([]byte, bytes), make([]byte, bytes*size)
	}
	out, into := r.out[:bytes], r.into[:bytes]
	var steps []transport.Step
	switch pattern {
	case "swap":
		for d := 1; d < size; d *= 2 {
			steps = append(steps, transport.Step{
				Sends: []transport.Send{{To: []int{rank ^ d}, Data: out}},
				Recvs: []transport.Recv{{From: rank ^ d, Into: into}},
			})
		}
	case "direct":
		step := transport.Step{Sends: []transport.Send{{Data: out}}}
		for d := 1; d < size; d++ {
			from := (rank + d) % size
			step.Sends[0].To = append(step.Sends[0].To, from)
			step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: r.into[from*bytes : (from+1)*bytes]})
		}
		steps = []transport.Step{step}
	case "bcast":
		return r.multicast(pattern, size, rounds, out, into)
	case "bandwidth":
		return r.multicast(pattern, 2, rounds, out, into)
	case "wait":
		return r.Await(0)
	case "pingpong", "tagged":
		return r.tagged(pattern == "pingpong", rounds, out, into)
	default:
		other, ok := r.patterns[pattern]
		if !ok {
			return fmt.Errorf("no pattern %q", pattern)
		}
		return other(r, rounds)
	}
	return r.exchange(pattern, steps, rounds)
}

// multicast has rank 0 send to ranks 1 to n-1, which acknowledge the last message.
func (r *Rank) multicast(pattern string, n, rounds int, out, into []byte) error {
	var step, ack transport.Step
	for d := 1; d < n; d++ {
		switch r.Rank() {
		case 0:
			if step.Sends == nil {
				step.Sends = []transport.Send{{Data: out}}
			}
			step.Sends[0].To = append(step.Sends[0].To, d)
			ack.Recvs = append(ack.Recvs, transport.Recv{From: d})
		case d:
			step.Recvs = []transport.Recv{{From: 0, Into: into}}
			ack.Sends = []transport.Send{{To: []int{0}}}
		}
	}
	if err := r.exchange(pattern, []transport.Step{step}, rounds); err != nil {
		return err
	}
	return r.exchange(pattern, []transport.Step{ack}, 1)
}

// Await waits for an empty message of a rank.
func (r *Rank) Await(rank int) error {
	return r.exchange("wait", []transport.Step{{Recvs: []transport.Recv{{From: rank}}}}, 1)
}

func (r *Rank) exchange(pattern string, steps []transport.Step, rounds int) error {
	call := transport.Signature{Call: "allreduce sum float64 count=1 algorithm=" + pattern}
	return r.Repeat(rounds, func() error {
		r.calls++
		call.Sequence = r.calls
		for _, step := range steps {
			step.Signature = call
			if err := r.Exchange(context.Background(), step); err != nil {
				return err
			}
		}
		return nil
	})
}

// batch is how many rounds are timed together: few enough to take less time than
// a process runs undisturbed on a busy machine.
const batch = 50

// Repeat does rounds and sets Best.
func (r *Rank) Repeat(rounds int, round func() error) error {
	for done := 0; done < rounds; {
		start, n := time.Now(), min(batch, rounds-done)
		for range n {
			if err := round(); err != nil {
				return err
			}
		}
		if d := time.Since(start) / batch; n == batch && (r.Best == 0 || d < r.Best) {
			r.Best = d
		}
		done += n
	}
	return nil
}

// tagged does rounds of tagged messages between two ranks: there and back, or only
// there with a reply to the last.
func (r *Rank) tagged(back bool, rounds int, out, into []byte) error {
	ctx := context.Background()
	e, peer := r.Endpoint, 1-r.Rank()
	match := transport.Match{Context: 1, Tag: 1}
	first := func() error { return e.Send(ctx, peer, match, "uint8", out) }
	second := func() error {
		_, err := e.Recv(ctx, peer, match, "uint8", into)
		return err
	}
	if r.Rank() == 1 {
		first, second = second, first
	}
	err := r.Repeat(rounds, func() error {
		err := first()
		if err == nil && back {
			err = second()
		}
		return err
	})
	if err != nil || back {
		return err
	}
	return second()
}
