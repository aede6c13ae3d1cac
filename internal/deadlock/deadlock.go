package deadlock

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A Cycle is a deadlock: each of its ranks waits for the next one, and the last one for
// the first. The calls of one communicator cannot bring it about, because
// messages of different calls are a mismatch; those of two communicators, in
// different orders, can.
type Cycle []wait

// A wait is a rank's wait for another one.
type wait struct {
	rank, peer int
	stall      transport.Stall
}

// Find returns a deadlock, or nil if there is none. Stalls are those of each
// rank that have lasted; a rank without any may make progress.
//
// A rank is in a deadlock if everything that waits there waits for a rank in a
// deadlock which is not in the same call: all of them may be in one call, and wait
// for messages that are on their way. It takes time proportional to the
// number of peers in stalls times the number of ranks with stalls, at most.
func Find(stalls [][]transport.Stall) Cycle {
	blocked := make([]bool, len(stalls))
	for rank := range stalls {
		blocked[rank] = len(stalls[rank]) > 0
	}
	peer := func(rank int, s *transport.Stall) int {
		i := slices.IndexFunc(s.Peers, func(peer int) bool {
			return peer != rank && 0 <= peer && peer < len(blocked) && blocked[peer] && !inCall(stalls[peer], s)
		})
		if i < 0 {
			return -1
		}
		return s.Peers[i]
	}
	for changed := true; changed; {
		changed = false
		for rank := range stalls {
			for i := range stalls[rank] {
				if blocked[rank] && peer(rank, &stalls[rank][i]) < 0 {
					blocked[rank], changed = false, true
				}
			}
		}
	}
	rank := slices.Index(blocked, true)
	if rank < 0 {
		return nil
	}
	// Every rank that is blocked waits for another one, so that the way from one to the
	// next comes back to a rank that it has passed.
	var way Cycle
	for {
		if i := slices.IndexFunc(way, func(w wait) bool { return w.rank == rank }); i >= 0 {
			return way[i:]
		}
		s := &stalls[rank][0]
		next := peer(rank, s)
		way = append(way, wait{rank, next, *s})
		rank = next
	}
}

// inCall reports whether one of the stalls is in the call of s.
func inCall(stalls []transport.Stall, s *transport.Stall) bool {
	return s.Signature.Call != "" && slices.ContainsFunc(stalls, func(t transport.Stall) bool { return t.Signature == s.Signature })
}

// same reports whether two lists have the same stalls.
func same(a, b []transport.Stall) bool {
	return slices.EqualFunc(a, b, func(x, y transport.Stall) bool { return reflect.DeepEqual(x, y) })
}

// longest is the number of waits that String names.
const longest = 8

func (d Cycle) String() string { return strings.Join(d.waits(), "; ") }

// waits says of each rank for which one it waits.
func (d Cycle) waits() (waits []string) {
	for _, w := range d[:min(len(d), longest)] {
		waits = append(waits, fmt.Sprintf("rank %d waits for rank %d %s", w.rank, w.peer, describe(&w.stall)))
	}
	if more := len(d) - longest; more > 0 {
		waits = append(waits, fmt.Sprintf("and so on, for %d more", more))
	}
	return waits
}

func describe(s *transport.Stall) (text string) {
	sig := &s.Signature
	message := "to send or receive a message"
	switch s.Message {
	case "send":
		message = "to take a message"
	case "recv", "probe":
		message = "to send a message"
	}
	switch {
	case sig.Call != "":
		text = fmt.Sprintf("in call %d of communicator %d, %q", sig.Sequence, transport.Communicator(sig.Context), sig.Call)
	case s.Tag == transport.Any:
		text = message + " of any tag"
	default:
		text = fmt.Sprintf("%s of tag %d", message, s.Tag)
	}
	if s.Where != "" {
		text += " (" + s.Where + ")"
	}
	return text
}

// Remedy says how a program avoids such a deadlock.
func (d Cycle) Remedy() string {
	calls := slices.ContainsFunc(d, func(w wait) bool { return w.stall.Signature.Call != "" })
	messages := slices.ContainsFunc(d, func(w wait) bool { return w.stall.Signature.Call == "" })
	var remedies []string
	if messages {
		remedies = append(remedies, "A rank that waits for a message sends its own before, or uses SendRecv, StartSend or StartRecv")
	}
	if calls {
		remedies = append(remedies, "All ranks must make the calls of all communicators in one order")
	}
	return strings.Join(remedies, ". ")
}

// Lines says what an error message would say, with a line for each rank.
func (d Cycle) Lines(patience time.Duration) string {
	return fmt.Sprintf("ranks have waited for each other for %v or longer, and cannot go on unless other goroutines of theirs make calls:\n  %s\n%s.",
		(patience * 2 / 3).Round(time.Millisecond), strings.Join(d.waits(), "\n  "), d.Remedy())
}

// A Finder is told again and again what the ranks wait for, and says when
// ranks have come to wait for each other. Its methods may be called concurrently.
type Finder struct {
	patience time.Duration // the ranks report three times within it

	mu     sync.Mutex
	stalls [][]transport.Stall // of each rank, if it has reported them twice
	last   [][]transport.Stall // as each rank has last reported them
	heard  []time.Time         // when it did
	said   string              // the last deadlock found,
	saidAt time.Time           // and when: ranks that report nonsense make no flood
}

func NewFinder(size int, patience time.Duration) *Finder {
	return &Finder{
		patience: patience,
		stalls:   make([][]transport.Stall, size),
		last:     make([][]transport.Stall, size),
		heard:    make([]time.Time, size),
	}
}

// Record takes the report of a rank, and returns a deadlock that it did not return
// before, or nil.
func (f *Finder) Record(rank int, stalls []transport.Stall) Cycle {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stalls[rank] = nil
	if same(stalls, f.last[rank]) {
		f.stalls[rank] = stalls
	}
	f.last[rank], f.heard[rank] = stalls, time.Now()
	f.forget()
	d := Find(f.stalls)
	if d == nil || d.String() == f.said || time.Since(f.saidAt) < f.patience/3 {
		return nil
	}
	f.said, f.saidAt = d.String(), time.Now()
	return d
}

// forget strikes out what ranks have reported that report no more. They may have been
// stopped, and what they waited for may have come. The others need two thirds of the
// patience to report that they wait for such a rank; a rank that waits reports after
// each third.
func (f *Finder) forget() {
	for rank, heard := range f.heard {
		if f.last[rank] != nil && time.Since(heard) > f.patience/2 {
			f.stalls[rank], f.last[rank] = nil, nil
		}
	}
}

// A Watch looks at an endpoint three times within the patience.
type Watch struct {
	before   []transport.Stall
	reported bool
}

// Look takes what waits at the endpoint now. It returns what has been waiting since
// the last look, and whether that is to be reported: it is while something waits, and
// once more when it does not any longer. Where there are more than MaxStalls, the rank
// counts as one that makes progress.
func (w *Watch) Look(now []transport.Stall) (stalls []transport.Stall, report bool) {
	lasting := len(now) > 0 && len(now) <= MaxStalls && same(now, w.before)
	report = lasting || w.reported
	w.before, w.reported = now, lasting
	if lasting {
		stalls = Shorten(now)
	}
	return stalls, report
}

// Poll calls f three times within the patience, until done is closed.
func Poll(done <-chan struct{}, patience time.Duration, f func()) {
	tick := time.NewTicker(max(patience/3, 1))
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			f()
		}
	}
}

// The bounds of a report.
const (
	MaxStalls = 8   // stalls of a report
	MaxPeers  = 32  // peers of a stall: each is one for which the operation waits
	MaxCall   = 200 // bytes of the text of a call
)

// Shorten returns stalls within the bounds of a report.
func Shorten(stalls []transport.Stall) []transport.Stall {
	short := slices.Clone(stalls)
	for i := range short {
		s := &short[i]
		s.Peers = s.Peers[:min(len(s.Peers), MaxPeers)]
		s.Signature.Call = s.Signature.Call[:min(len(s.Signature.Call), MaxCall)]
	}
	return short
}
