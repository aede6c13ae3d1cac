package stage

import (
	"context"
	"fmt"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A Player is a rank with memory that it keeps.
type Player struct {
	transport.Endpoint
	Best      time.Duration // that some rounds in a row took, on average
	out, into []byte
	calls     uint32 // Exchanges so far
	own       map[string]Pattern
}

// A Pattern is what a player does, so many times.
type Pattern func(p *Player, rounds int) error

// Play does rounds of one pattern: "swap" is what an allreduce by recursive
// doubling does, without the adding, and "direct" what one does in which
// everybody sends to everybody; "bcast" is rank 0 sending to all, which
// acknowledge the last message; "pour" is rank 0 sending to rank 1, which does so;
// "wait" is every rank waiting for rank 0; "ping" is a letter there and back
// between two ranks, and "letters" rank 0 posting to rank 1, which answers the
// last.
func (p *Player) Play(what string, bytes, rounds int) error {
	rank, size := p.Rank(), p.Size()
	if cap(p.out) < bytes {
		p.out, p.into = make([]byte, bytes), make([]byte, bytes*size)
	}
	out, into := p.out[:bytes], p.into[:bytes]
	var steps []transport.Step
	switch what {
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
			step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: p.into[from*bytes : (from+1)*bytes]})
		}
		steps = []transport.Step{step}
	case "bcast":
		return p.spread(what, size, rounds, out, into)
	case "pour":
		return p.spread(what, 2, rounds, out, into)
	case "wait":
		return p.Await(0)
	case "ping", "letters":
		return p.playLetters(what == "ping", rounds, out, into)
	default:
		own, ok := p.own[what]
		if !ok {
			return fmt.Errorf("no pattern %q", what)
		}
		return own(p, rounds)
	}
	return p.repeat(what, steps, rounds)
}

// spread has rank 0 send to the others of the first so many ranks, which
// acknowledge the last message.
func (p *Player) spread(what string, ranks, rounds int, out, into []byte) error {
	var step, ack transport.Step
	for d := 1; d < ranks; d++ {
		switch p.Rank() {
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
	if err := p.repeat(what, []transport.Step{step}, rounds); err != nil {
		return err
	}
	return p.repeat(what, []transport.Step{ack}, 1)
}

// Await waits for a message of a rank.
func (p *Player) Await(rank int) error {
	return p.repeat("wait", []transport.Step{{Recvs: []transport.Recv{{From: rank}}}}, 1)
}

func (p *Player) repeat(what string, steps []transport.Step, rounds int) error {
	call := transport.Signature{Call: "allreduce sum float64 count=1 algorithm=" + what}
	return p.Repeat(rounds, func() error {
		p.calls++
		call.Sequence = p.calls
		for _, step := range steps {
			step.Signature = call
			if err := p.Exchange(context.Background(), step); err != nil {
				return err
			}
		}
		return nil
	})
}

// batch is how many rounds are timed together: they take less than a process
// is left alone on a busy machine.
const batch = 50

// Repeat does rounds and notes how long the best of them take.
func (p *Player) Repeat(rounds int, round func() error) error {
	for done := 0; done < rounds; {
		start, n := time.Now(), min(batch, rounds-done)
		for range n {
			if err := round(); err != nil {
				return err
			}
		}
		if d := time.Since(start) / batch; n == batch && (p.Best == 0 || d < p.Best) {
			p.Best = d
		}
		done += n
	}
	return nil
}

// playLetters does rounds of letters between two ranks, each there and back or
// only there.
func (p *Player) playLetters(back bool, rounds int, out, into []byte) error {
	ctx := context.Background()
	e, peer := p.Endpoint, 1-p.Rank()
	stamp := transport.Match{Context: 1, Tag: 1}
	first := func() error { return e.Send(ctx, peer, stamp, "uint8", out) }
	second := func() error {
		_, err := e.Recv(ctx, peer, stamp, "uint8", into)
		return err
	}
	if p.Rank() == 1 {
		first, second = second, first
	}
	err := p.Repeat(rounds, func() error {
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
