package main

import (
	"math"
	"strings"

	"github.com/chorale-go/chorale/internal/bench"
)

// A need is the least that any algorithm needs for one of many calls in a row, whatever it
// does otherwise.
type need struct {
	crossings float64 // between processors, one after another
	sends     float64 // messages of any length
	moved     float64 // messages' lengths that get from one rank to another
	kept      float64 // messages' lengths that a rank copies from its input to its own output
	combined  float64 // messages' lengths that are combined
}

// needOf returns the need of a call among p ranks on a number of processors, and false if
// the model does not have the call.
//
// If each call has the next rank for its root, a root waits for the root before it, so the
// bytes cross once a call. If ranks outnumber the processors, roots that share a processor
// may follow each other, and it takes one crossing to each processor before all were root.
// With a fixed root nobody waits for a call's end, so that there is no such bound. Calls
// without a root cross once, because every rank waits for all.
func needOf(op, root string, ranks, processors int) (need, bool) {
	op, form, _ := strings.Cut(op, ":")
	if form == "half" {
		ranks /= 2
	}
	if ranks < 2 || processors < 2 || form == "overlap" {
		return need{}, false
	}
	p := float64(ranks)
	one := need{crossings: min(1, float64(processors)/p), sends: p - 1}
	if root != rotatingRoot {
		one.crossings, one.sends = 0, 0
	}
	all := need{crossings: 1, sends: 2 * (p - 1)} // to one rank and back
	switch op {
	case "bcast":
		one.moved = p - 1
		return one, true
	case "reduce":
		one.moved, one.combined = p-1, p-1
		return one, true
	case "scatter", "gather":
		one.moved, one.kept = p-1, 1
		return one, true
	case "allgather", "alltoall":
		all.moved, all.kept = p*(p-1), p
	case "reduce-scatter":
		all.moved, all.combined = p*(p-1), p*(p-1)
	case "allreduce":
		all.moved, all.combined = 2*(p-1), p-1
	case "barrier", "split":
	case "pingpong":
		return need{crossings: 2, sends: 2, moved: 2}, ranks == 2
	case "exchange":
		return need{crossings: 1, sends: 2, moved: 2}, ranks == 2
	case "rate": // a window of messages, and its answer
		return need{crossings: 2, sends: 2, moved: 16}, ranks == 2
	case "halo": // two neighbors, both of which are the other rank
		return need{crossings: 1, sends: 2, moved: 4}, ranks == 2
	default:
		return need{}, false
	}
	return all, true
}

// limit returns the least time of a cell on this machine, in µs: the longer one of its
// crossings, and of its copies if all processors share them evenly. Zero stands for a cell
// without a limit: one that the model does not have, and short messages from a fixed root,
// which nothing bounds but copies of a few bytes.
//
// Over memory, a crossing is that of a cache line, and what is moved is copied or combined
// once. Over TCP, a crossing is an exchange on a connection of 127.0.0.1, in which each
// processor sends and receives one message; what is moved is copied into the kernel and out
// of it, and then combined.
func limit(c cell, transport string, l bench.Limits, processors int) float64 {
	n, ok := needOf(c.collective, c.root, c.ranks, processors)
	if !ok {
		return 0
	}
	share := min(float64(c.ranks), float64(processors))
	crossings, copies := n.crossings, n.moved+n.kept
	if transport == "tcp" {
		crossings, copies = max(n.crossings, n.sends/share), 2*n.moved+n.kept+n.combined
	}
	exchange, copying := l.Exchange(transport), copies/share*copyTime(l, c.bytes)
	if crossings == 0 && copying < exchange {
		return 0
	}
	return max(crossings*exchange, copying)
}

// copyTime returns the time of one thread's copy of so many bytes, on pages of either size,
// or 0 if it was not measured.
func copyTime(l bench.Limits, bytes int) float64 {
	least := math.Inf(1)
	for _, c := range l.Copy {
		if c.Bytes == bytes {
			least = c.Time
			if c.Huge > 0 {
				least = min(least, c.Huge)
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// A limits is what the machine allowed in one run of the comparison: the least of each time
// that was measured, in µs.
type limits struct {
	CacheLine float64           `json:"cacheLine"` // one crossing between two processors
	Loopback  float64           `json:"loopback"`  // one exchange over TCP
	Copy      []bench.CopyLimit `json:"copy"`
}

// add takes the limits of another measurement into account.
func (l *limits) add(other bench.Limits) {
	l.CacheLine = leastOf(l.CacheLine, other.Exchange(""))
	l.Loopback = leastOf(l.Loopback, other.Loopback)
	for _, c := range other.Copy {
		found := false
		for i := range l.Copy {
			if mine := &l.Copy[i]; mine.Bytes == c.Bytes {
				mine.Time, mine.Huge, found = leastOf(mine.Time, c.Time), leastOf(mine.Huge, c.Huge), true
			}
		}
		if !found {
			l.Copy = append(l.Copy, c)
		}
	}
}

// leastOf returns the lesser of two times, of which 0 is none.
func leastOf(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
