package draw

import (
	"cmp"
	"slices"

	"github.com/chorale-go/chorale/sim"
)

// An activity is something that a rank or a link does for some time.
type activity uint8

const (
	sending activity = iota
	receiving
	waiting   // for a link or a port, with a message that is ready to start
	combining // received data
	crossing  // of a link: carrying a message
)

var activityNames = [...]string{"send", "receive", "wait", "combine", "cross"}

func (a activity) String() string { return activityNames[a] }

// A bar is one activity on a track.
type bar struct {
	activity   activity
	start, end float64
	message    int // an index in Result.Log; for combining, one of the messages combined, or -1
}

// A track is a sequence of bars that do not overlap.
type track []bar

func (t track) end() float64 {
	if len(t) == 0 {
		return 0
	}
	return t[len(t)-1].end
}

// rankTracks are the tracks of one rank: one per direction with a single port, as
// many as messages at the same time with all ports.
type rankTracks struct{ out, in []track }

// newRankTracks assigns the activities of all ranks to tracks.
func newRankTracks(sc Scene) []rankTracks {
	log := sc.Result.Log
	tracks := make([]rankTracks, sc.Result.Ranks)
	for _, i := range orderByStart(log) {
		m := log[i]
		out, in := &tracks[m.From].out, &tracks[m.To].in
		*out = addBar(*out, bar{sending, m.Start, m.End, i}, m.Ready)
		*in = addBar(*in, bar{receiving, m.Start, m.End, i}, m.Ready)
	}
	for rank := range tracks {
		t := &tracks[rank]
		t.out, t.in = atLeastOne(t.out), atLeastOne(t.in)
	}
	for rank, bars := range combiningBars(sc) {
		t := &tracks[rank].in[0]
		*t = append(*t, bars...)
		slices.SortStableFunc(*t, func(a, b bar) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
		*t = trimWaits(*t)
	}
	return tracks
}

// orderByStart returns the indices of messages in the order of their starts.
func orderByStart(log []sim.Message) []int {
	order := make([]int, len(log))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(log[a].Start, log[b].Start), cmp.Compare(log[a].End, log[b].End))
	})
	return order
}

// addBar adds a bar to the first track that is free at its start. If the message
// was ready earlier, a waiting bar fills the free time before it.
func addBar(tracks []track, b bar, ready float64) []track {
	i := slices.IndexFunc(tracks, func(t track) bool { return t.end() <= b.start })
	if i < 0 {
		i, tracks = len(tracks), append(tracks, nil)
	}
	if from := max(ready, tracks[i].end()); from < b.start {
		tracks[i] = append(tracks[i], bar{waiting, from, b.start, b.message})
	}
	tracks[i] = append(tracks[i], b)
	return tracks
}

func atLeastOne(tracks []track) []track {
	if len(tracks) == 0 {
		return []track{nil}
	}
	return tracks
}

// trimWaits shortens waiting bars that overlap combining bars. The combining bars
// are added after the waiting bars.
func trimWaits(t track) track {
	out := t[:0]
	for i, b := range t {
		if i+1 < len(t) && b.activity == waiting {
			b.end = min(b.end, t[i+1].start)
		}
		if b.activity == waiting && len(out) > 0 {
			b.start = max(b.start, out[len(out)-1].end)
		}
		if b.activity != waiting || b.start < b.end {
			out = append(out, b)
		}
	}
	return out
}

// A programStep is a step of a rank's program. The programs of all parts count as
// one.
type programStep struct {
	end     float64 // of its last message, sent or received
	words   int     // combined at the end
	message int     // one of the combined messages, an index in Result.Log
}

// combiningBars returns one track for each rank with its combining. A rank
// combines the data of a step after the step's last message, and at the end the
// data of its local copies.
func combiningBars(sc Scene) []track {
	res := sc.Result
	bars := make([]track, res.Ranks)
	if res.Config.Model.Top == 0 {
		return bars
	}
	steps := newProgramSteps(sc)
	for rank := range bars {
		done, drawn := 0.0, 0.0
		for _, s := range steps[rank] {
			done = max(done, s.end)
			if s.words > 0 {
				until := s.end + float64(s.words)*res.Config.Model.Top
				bars[rank] = append(bars[rank], bar{combining, s.end, until, s.message})
				done = max(done, until)
				drawn += until - s.end
			}
		}
		if end, rest := res.PerRank[rank].End, res.PerRank[rank].Combining-drawn; end > done && rest > 0 {
			bars[rank] = append(bars[rank], bar{combining, max(done, end-rest), end, -1})
		}
	}
	return bars
}

// newProgramSteps collects the messages of each step of each rank's program.
func newProgramSteps(sc Scene) [][]programStep {
	steps := make([][]programStep, sc.Result.Ranks)
	at := func(rank, step int) *programStep {
		for len(steps[rank]) <= step {
			steps[rank] = append(steps[rank], programStep{})
		}
		return &steps[rank][step]
	}
	for i, m := range sc.Result.Log {
		send, recv := at(m.From, m.SendStep), at(m.To, m.RecvStep)
		send.end, recv.end = max(send.end, m.End), max(recv.end, m.End)
		if m.Combine {
			recv.words += m.Words
			recv.message = i
		}
	}
	return steps
}

// endpoints are the indices of a message's tracks at its sender and receiver.
type endpoints struct{ send, recv int }
