package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chorale-go/chorale/internal/clock"
	"github.com/chorale-go/chorale/internal/ranklist"
)

// A Timeline is what the ranks of a job have done, by one clock. Times are in nanoseconds
// since the first event.
type Timeline struct {
	Ranks   int // of the job
	Records int // ranks that have told
	Clocks  []HostClock
	Dropped int64 // events for which ranks had no room
	Skipped int64 // short calls and messages that were not recorded

	calls    []*RankCall // by rank and beginning
	messages []*message
	flows    []flow
}

// A HostClock is how well the clock of a host is known.
type HostClock struct {
	Ranks  []int
	Offset int64 // of the launcher's clock from this one at the end, in nanoseconds
	Bound  int64 // of the error of every time, in nanoseconds; −1: the offset is unknown
}

// A RankCall is one rank's part in a call of a collective.
type RankCall struct {
	Shape
	Place
	JobRank      int
	Communicator uint64 // its number
	Sequence     uint32 // the call's number there
	Skipped      uint32 // calls of the communicator before it that were not recorded
	Start, End   int64
	Failed       bool
	Parts        []RankStep

	track int
}

// A RankStep is a step of a call. It begins when the one before it has ended.
type RankStep struct {
	Start, End int64
	Combining  int64 // nanoseconds in which operands were combined
	WaitedFor  int   // the job's rank that began its part of the step's messages last
	WaitedTo   int64 // and when, if that was later than Start
}

// A message is one rank's operation on a tagged message.
type message struct {
	Event
	Place
	jobRank int
	track   int
}

// A flow is a message, from one event to another.
type flow struct{ from, to at }

// An at is an event on a track.
type at struct {
	rank  int
	track *int
	time  int64
}

// Join makes the timeline from the records of ranks, in any order.
func Join(records []Record) *Timeline {
	t := new(Timeline)
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Rank, b.Rank) })
	clocks := t.align(records)
	origin := int64(math.MaxInt64) // if there is no event, nothing is shifted
	for i := range records {
		r := &records[i]
		if i == 0 || r.Rank != records[i-1].Rank {
			t.Records++
		}
		t.Ranks = max(t.Ranks, r.Size)
		t.Dropped += r.Dropped
		t.Skipped += r.Skipped
		t.add(r, func(ns int64) int64 {
			ns = clocks[r.Host].toLauncher(r.Begin + ns)
			origin = min(origin, ns)
			return ns
		})
	}
	t.shift(origin)
	t.matchSteps()
	t.matchMessages()
	return t
}

// A comparison is the offset of a host's clock, measured earlier and later; unknown if
// none was.
type comparison struct {
	first, last clock.Offset
	known       bool
}

func (c comparison) toLauncher(ns int64) int64 {
	if !c.known {
		return ns
	}
	return ns + clock.Between(c.first, c.last, ns).Value
}

// align finds the offsets of the hosts' clocks. Ranks of a host have one clock: the best of
// their measurements counts for all.
func (t *Timeline) align(records []Record) map[string]comparison {
	all := map[string]comparison{}
	ranks := map[string][]int{}
	var hosts []string
	for i := range records {
		r := &records[i]
		if ranks[r.Host] == nil {
			hosts = append(hosts, r.Host)
		}
		if !slices.Contains(ranks[r.Host], r.Rank) { // else two processes were the rank, one after another
			ranks[r.Host] = append(ranks[r.Host], r.Rank)
		}
		if len(r.Offsets) == 0 {
			continue
		}
		c, first, last := all[r.Host], r.Offsets[0], r.Offsets[len(r.Offsets)-1]
		if !c.known || first.Bound < c.first.Bound {
			c.first = first
		}
		if !c.known || last.Bound < c.last.Bound {
			c.last = last
		}
		c.known = true
		all[r.Host] = c
	}
	for _, host := range hosts {
		c := all[host]
		h := HostClock{Ranks: ranks[host], Offset: c.last.Value, Bound: max(c.first.Bound, c.last.Bound)}
		if !c.known && len(hosts) > 1 {
			h.Bound = -1
		}
		t.Clocks = append(t.Clocks, h)
	}
	return all
}

// Bound returns by how much the times of two ranks may be wrong with respect to each other,
// or −1 if that is unknown.
func (t *Timeline) Bound() int64 {
	bounds := make([]int64, 0, len(t.Clocks))
	for _, c := range t.Clocks {
		if c.Bound < 0 {
			return -1
		}
		bounds = append(bounds, c.Bound)
	}
	slices.Sort(bounds)
	if len(bounds) < 2 {
		return 0
	}
	return bounds[len(bounds)-1] + bounds[len(bounds)-2]
}

// add adds the events of a rank, by the clock that to converts to.
func (t *Timeline) add(r *Record, to func(int64) int64) {
	last := map[uint64]uint32{} // the number of each communicator's last call
	var call *RankCall
	for _, e := range r.Events {
		e.Start, e.End = to(e.Start), to(e.End)
		switch e.Kind {
		case Call:
			call = &RankCall{
				Shape: r.Shapes[e.Shape], Place: r.Places[e.Place], JobRank: r.Rank,
				Communicator: e.Communicator(), Sequence: e.Sequence, Start: e.Start, End: e.End, Failed: e.Failed,
			}
			if before, ok := last[call.Communicator]; ok && e.Sequence > before {
				call.Skipped = e.Sequence - before - 1
			}
			last[call.Communicator] = e.Sequence
			t.calls = append(t.calls, call)
		case Step:
			if call != nil {
				call.Parts = append(call.Parts, RankStep{Start: e.Start, End: e.End, Combining: e.Amount, WaitedFor: -1})
			}
		default:
			t.messages = append(t.messages, &message{Event: e, Place: r.Places[e.Place], jobRank: r.Rank})
		}
	}
}

// shift has the timeline begin at 0.
func (t *Timeline) shift(origin int64) {
	for _, c := range t.calls {
		c.Start, c.End = c.Start-origin, c.End-origin
		for i := range c.Parts {
			c.Parts[i].Start, c.Parts[i].End = c.Parts[i].Start-origin, c.Parts[i].End-origin
		}
	}
	for _, m := range t.messages {
		m.Start, m.End = m.Start-origin, m.End-origin
	}
}

// A callKey tells the calls of a job apart: groups of different ranks may have one context.
type callKey struct {
	communicator uint64
	sequence     uint32
	p, first     int
}

func (c *RankCall) key() callKey { return callKey{c.Communicator, c.Sequence, c.P, c.First} }

// groups returns the ranks' parts of each call, in the order of the first beginnings.
func (t *Timeline) groups() [][]*RankCall {
	index := map[callKey]int{}
	var all [][]*RankCall
	for _, c := range t.calls {
		i, known := index[c.key()]
		if !known {
			i = len(all)
			index[c.key()] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], c)
	}
	slices.SortStableFunc(all, func(a, b []*RankCall) int { return cmp.Compare(a[0].Start, b[0].Start) })
	return all
}

// matchSteps finds the ends of the messages of steps: of the k-th from one rank to another
// in a call, the k-th send there and the k-th receive here.
func (t *Timeline) matchSteps() {
	for _, group := range t.groups() {
		sends := map[[2]int][]part{}
		for _, c := range group {
			for i := range c.Parts {
				for _, m := range c.exchange(i).Sends {
					pair := [2]int{c.JobRank, m.Peer}
					sends[pair] = append(sends[pair], part{c, i})
				}
			}
		}
		for _, c := range group {
			for i := range c.Parts {
				for _, m := range c.exchange(i).Recvs {
					pair := [2]int{m.Peer, c.JobRank}
					if len(sends[pair]) > 0 {
						t.meet(sends[pair][0], part{c, i})
						sends[pair] = sends[pair][1:]
					}
				}
			}
		}
	}
}

// exchange returns the messages of a step, as far as they are known.
func (c *RankCall) exchange(step int) Exchange {
	if step >= len(c.Steps) {
		return Exchange{}
	}
	return c.Steps[step]
}

// A part is a step of a rank's part in a call.
type part struct {
	call *RankCall
	step int
}

// meet notes a message from one step to another. The receiver waits until the sender's step
// has begun. A sender whose step goes on when the receiver's begins has waited for that.
func (t *Timeline) meet(from, to part) {
	s, r := &from.call.Parts[from.step], &to.call.Parts[to.step]
	r.waitsFor(from.call.JobRank, s.Start)
	if s.End >= r.Start {
		s.waitsFor(to.call.JobRank, r.Start)
	}
	t.flows = append(t.flows, flow{at{from.call.JobRank, &from.call.track, s.Start}, at{to.call.JobRank, &to.call.track, r.End}})
}

func (s *RankStep) waitsFor(rank int, until int64) {
	if until = min(until, s.End); until > max(s.Start, s.WaitedTo) {
		s.WaitedFor, s.WaitedTo = rank, until
	}
}

// Waiting returns for how long the step has waited for another rank to begin its part.
func (s *RankStep) Waiting() int64 { return max(0, s.WaitedTo-s.Start) }

// matchMessages finds the ends of tagged messages, by their numbers.
func (t *Timeline) matchMessages() {
	type stream struct {
		from, to     int
		communicator uint64
		tag, number  int64
	}
	sent := map[stream]*message{}
	for _, m := range t.messages {
		if m.Number > 0 && (m.Kind == Send || m.Kind == StartSend) {
			sent[stream{m.jobRank, int(m.Peer), m.Communicator(), m.Tag, m.Number}] = m
		}
	}
	for _, m := range t.messages {
		if m.Number == 0 || m.Kind != Recv && m.Kind != Wait {
			continue
		}
		if s := sent[stream{int(m.Peer), m.jobRank, m.Communicator(), m.Tag, m.Number}]; s != nil {
			t.flows = append(t.flows, flow{at{s.jobRank, &s.track, s.Start}, at{m.jobRank, &m.track, m.End}})
		}
	}
}

// Notes say what the timeline lacks, and how exact it is.
func (t *Timeline) Notes() []string {
	notes := []string{}
	if t.Records < t.Ranks {
		notes = append(notes, fmt.Sprintf("%d of %d ranks have told what they did", t.Records, t.Ranks))
	}
	if t.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("the oldest %d events were dropped: --trace-buffer keeps more", t.Dropped))
	}
	if t.Skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d short calls and messages between the others were not recorded", t.Skipped))
	}
	for _, c := range t.Clocks {
		who := "the clock of " + ranklist.Name(c.Ranks)
		switch {
		case c.Bound < 0:
			notes = append(notes, who+" was not compared with others: times of different hosts do not fit")
		case c.Bound > 0:
			notes = append(notes, fmt.Sprintf("%s is right within %v", who, time.Duration(c.Bound)))
		}
	}
	return notes
}
