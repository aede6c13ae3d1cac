package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/chorale-go/chorale"
)

// Patterns are the exchanges of tagged messages that can be measured, by name.
//
// In a pingpong, an exchange and a rate, ranks 0 and 1 are a pair, ranks 2 and 3 the
// next one, and so on; the last of an odd number of ranks has nothing to do. In a halo,
// the ranks are a grid that is as square as possible and periodic in both directions. A
// split makes communicators of the lower and the upper half of the ranks, and frees them;
// it has no bytes. The overheads are of messages of a step: see measureOverhead.
func Patterns() []string { return slices.Clone(patterns) }

var patterns = []string{"pingpong", "exchange", rate, "halo", "split", sendOverhead, receiveOverhead}

// rate is the pattern of a window of messages.
const rate = "rate"

// Window is how many messages are on their way at a time in a rate.
const Window = 16

// calls are the calls that a pattern is made of.
var calls = map[string]string{
	"pingpong": "Send Recv",
	"exchange": "SendRecv",
	rate:       "StartSend StartRecv",
	"halo":     "StartSend StartRecv",
	"split":    "Split Free",

	sendOverhead:    "Bcast, late",
	receiveOverhead: "Bcast, late",
}

// A grid is the ranks of a halo.
type grid struct{ rows, columns int }

func gridOf(p int) grid {
	rows := 1
	for r := 1; r*r <= p; r++ {
		if p%r == 0 {
			rows = r
		}
	}
	return grid{rows, p / rows}
}

// neighbors returns the ranks above, below, left and right of a rank.
func (g grid) neighbors(rank int) [4]int {
	row, column := rank/g.columns, rank%g.columns
	at := func(r, c int) int { return (r+g.rows)%g.rows*g.columns + (c+g.columns)%g.columns }
	return [4]int{at(row-1, column), at(row+1, column), at(row, column-1), at(row, column+1)}
}

// A transfer is a message of a pattern to or from a rank.
type transfer struct {
	peer, tag int
	slot      int // of the buffer: a multiple of the message's length
}

// An exchangePattern is one rank's part of a pattern.
type exchangePattern struct {
	name     string
	comm     *chorale.Comm
	bytes    int
	in, out  []byte
	sends    []transfer
	receives []transfer
	replies  bool // a rate: the receiver of a window answers with an empty message
	pending  []*chorale.Request
	_        [64]byte // of another rank's pattern: the rest of its cache line
}

// slots returns how many messages the buffers of a pattern hold.
func slots(pattern string) (in, out int) {
	switch pattern {
	case rate:
		return 1, Window
	case "halo":
		return 4, 4
	}
	return 1, 1
}

func newPattern(c *chorale.Comm, cell Cell, m *memory) *exchangePattern {
	in, out := slots(cell.Pattern)
	w := &exchangePattern{name: cell.Pattern, comm: c, bytes: cell.Bytes, in: m.in[:in*cell.Bytes], out: m.out[:out*cell.Bytes]}
	peer, first := c.Rank()^1, c.Rank()%2 == 0
	switch {
	case w.name == "halo":
		for i, neighbor := range gridOf(c.Size()).neighbors(c.Rank()) {
			if neighbor != c.Rank() { // what it sends up, comes from below
				w.sends = append(w.sends, transfer{neighbor, i, i})
				w.receives = append(w.receives, transfer{neighbor, i ^ 1, i})
			}
		}
	case w.name == "split", peer >= c.Size():
	case w.name == rate:
		w.replies = true
		for i := range Window {
			if first {
				w.sends = append(w.sends, transfer{peer, 0, 0})
			} else {
				w.receives = append(w.receives, transfer{peer, 0, i})
			}
		}
	default:
		w.sends = []transfer{{peer, 0, 0}}
		w.receives = []transfer{{peer, 0, 0}}
	}
	return w
}

// run does the pattern once.
func (w *exchangePattern) run(ctx context.Context) error {
	switch {
	case w.name == "split":
		half, err := splitHalf(ctx, w.comm)
		half.Free()
		return err
	case len(w.sends)+len(w.receives) == 0:
		return nil
	case w.name == "exchange":
		peer := w.sends[0].peer
		_, err := chorale.SendRecv(ctx, w.comm, w.out, peer, w.in, peer, 0)
		return err
	case w.name == "pingpong":
		return w.pingpong(ctx)
	}
	w.pending = w.pending[:0]
	for _, r := range w.receives {
		w.pending = append(w.pending, chorale.StartRecv(ctx, w.comm, w.slot(w.out, r), r.peer, r.tag).Request)
	}
	for _, s := range w.sends {
		w.pending = append(w.pending, chorale.StartSend(ctx, w.comm, w.slot(w.in, s), s.peer, s.tag))
	}
	err := chorale.WaitAll(w.pending...)
	switch {
	case err != nil || !w.replies:
	case len(w.sends) > 0:
		_, err = chorale.Recv[byte](ctx, w.comm, nil, w.sends[0].peer, 1)
	default:
		err = chorale.Send[byte](ctx, w.comm, nil, w.receives[0].peer, 1)
	}
	return err
}

func (w *exchangePattern) first() int { return 1 }

func (w *exchangePattern) algorithm(context.Context) (ran, selected string, err error) {
	return calls[w.name], calls[w.name], nil
}

func (w *exchangePattern) pingpong(ctx context.Context) error {
	peer := w.sends[0].peer
	if w.comm.Rank() < peer {
		if err := chorale.Send(ctx, w.comm, w.in, peer, 0); err != nil {
			return err
		}
		_, err := chorale.Recv(ctx, w.comm, w.out, peer, 0)
		return err
	}
	if _, err := chorale.Recv(ctx, w.comm, w.out, peer, 0); err != nil {
		return err
	}
	return chorale.Send(ctx, w.comm, w.in, peer, 0)
}

func (w *exchangePattern) slot(buf []byte, t transfer) []byte {
	return buf[t.slot*w.bytes:][:w.bytes]
}

// verify does the pattern once, and compares every byte that it has received.
func (w *exchangePattern) verify(ctx context.Context) error {
	for i := range w.out {
		w.out[i] = poison[byte]()
	}
	for slot := range len(w.in) / max(1, w.bytes) {
		for i := range w.bytes {
			w.in[slot*w.bytes+i] = byte(value(w.comm.Rank(), i+slot))
		}
	}
	if err := w.run(ctx); err != nil {
		return err
	}
	for _, r := range w.receives {
		sent := 0 // the slot of the sender
		if w.name == "halo" {
			sent = r.tag
		}
		for i, got := range w.slot(w.out, r) {
			if want := byte(value(r.peer, i+sent)); got != want {
				return fmt.Errorf("%s on rank %d: byte %d from rank %d is %d: want %d", w.name, w.comm.Rank(), i, r.peer, got, want)
			}
		}
	}
	return nil
}
