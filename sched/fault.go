package sched

import "fmt"

// A Fault is an error in a schedule: what is wrong, and where. Check and Timeline
// return it; use errors.As to get at its fields.
type Fault struct {
	Rank  int    // the rank, or -1 if the fault belongs to no rank
	Step  int    // the step of the rank's program, counted from 0, or -1 at its end; Error counts from 1
	Peer  int    // the rank at the other end of the message, or -1
	Block int    // the block, or -1
	What  string // what is wrong, in one line
}

// Error names the rank, step, peer and block, as far as known, and what is wrong.
func (f *Fault) Error() string {
	if f.Rank < 0 {
		return f.What
	}
	text := rankInStep(f.Rank, f.Step)
	if f.Peer >= 0 {
		text += fmt.Sprintf(", peer %d", f.Peer)
	}
	if f.Block >= 0 {
		text += fmt.Sprintf(", block %d", f.Block)
	}
	return text + ": " + f.What
}

func rankInStep(rank, step int) string {
	if step < 0 {
		return fmt.Sprintf("rank %d at the end", rank)
	}
	return fmt.Sprintf("rank %d in step %d", rank, step+1)
}

func faultf(rank, step, peer, block int, format string, args ...any) *Fault {
	return &Fault{rank, step, peer, block, fmt.Sprintf(format, args...)}
}
