package draw

import (
	"cmp"
	"slices"

	"github.com/chorale-go/chorale/sim"
)

// A deed is what a rank does, or waits for, for a while.
type deed uint8

const (
	sends deed = iota
	receives
	waits    // a message of its own could start, were a link or a port free
	combines // what has come
	crosses  // of a link: a message that is on it
)

var deedNames = [...]string{"send", "receive", "wait", "combine", "cross"}

func (d deed) String() string { return deedNames[d] }

// A bar is one deed on a lane. Bars of a lane do not overlap.
type bar struct {
	deed       deed
	start, end float64
	message    int // in Result.Log; of a rank's combining, one that it combines, or -1
}

// A lane is bars one after another.
type lane []bar

func (l lane) end() float64 {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].end
}

// lanes are those of one rank. There is one each way with single ports, and as
// many as there are messages at once with all ports.
type lanes struct{ out, in []lane }

// newLanes lays out all that ranks do.
func newLanes(sc Scene) []lanes {
	log := sc.Result.Log
	all := make([]lanes, sc.Result.Ranks)
	for _, i := range byStart(log) {
		m := log[i]
		out, in := &all[m.From].out, &all[m.To].in
		*out = settle(*out, bar{sends, m.Start, m.End, i}, m.Ready)
		*in = settle(*in, bar{receives, m.Start, m.End, i}, m.Ready)
	}
	for rank := range all {
		l := &all[rank]
		l.out, l.in = atLeastOne(l.out), atLeastOne(l.in)
	}
	for rank, done := range combining(sc) {
		l := &all[rank].in[0]
		*l = append(*l, done...)
		slices.SortStableFunc(*l, func(a, b bar) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
		*l = apart(*l)
	}
	return all
}

// byStart returns the indices of messages in the order in which they start.
func byStart(log []sim.Message) []int {
	order := make([]int, len(log))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(log[a].Start, log[b].Start), cmp.Compare(log[a].End, log[b].End))
	})
	return order
}

// settle puts a bar on the first lane that is free, with the wait before it as
// far as the lane shows nothing else.
func settle(all []lane, b bar, ready float64) []lane {
	i := slices.IndexFunc(all, func(l lane) bool { return l.end() <= b.start })
	if i < 0 {
		i, all = len(all), append(all, nil)
	}
	if from := max(ready, all[i].end()); from < b.start {
		all[i] = append(all[i], bar{waits, from, b.start, b.message})
	}
	all[i] = append(all[i], b)
	return all
}

func atLeastOne(all []lane) []lane {
	if len(all) == 0 {
		return []lane{nil}
	}
	return all
}

// apart cuts waits short where a rank combines what else has come, which is
// known only after the waits are laid out.
func apart(l lane) lane {
	out := l[:0]
	for i, b := range l {
		if i+1 < len(l) && b.deed == waits {
			b.end = min(b.end, l[i+1].start)
		}
		if b.deed == waits && len(out) > 0 {
			b.start = max(b.start, out[len(out)-1].end)
		}
		if b.deed != waits || b.start < b.end {
			out = append(out, b)
		}
	}
	return out
}

// A round is a step of a rank's program, counted over all parts.
type round struct {
	end     float64 // when its last message has come or gone
	words   int     // that it combines then
	message int     // one that it combines
}

// combining returns when each rank combines: after the last message of a step
// of its program, what it has received in it; and in the end, what its copies
// do.
func combining(sc Scene) []lane {
	res := sc.Result
	all := make([]lane, res.Ranks)
	if res.Config.Model.Top == 0 {
		return all
	}
	rounds := newRounds(sc)
	for rank := range all {
		done := 0.0
		for _, r := range rounds[rank] {
			done = max(done, r.end)
			if r.words > 0 {
				until := r.end + float64(r.words)*res.Config.Model.Top
				all[rank] = append(all[rank], bar{combines, r.end, until, r.message})
				done = max(done, until)
			}
		}
		if own := res.PerRank[rank].End; own > done && own-done <= res.PerRank[rank].Combining {
			all[rank] = append(all[rank], bar{combines, done, own, -1})
		}
	}
	return all
}

// newRounds gathers the messages of each step of each rank's program.
func newRounds(sc Scene) [][]round {
	rounds := make([][]round, sc.Result.Ranks)
	at := func(rank, step int) *round {
		for len(rounds[rank]) <= step {
			rounds[rank] = append(rounds[rank], round{})
		}
		return &rounds[rank][step]
	}
	for i, m := range sc.Result.Log {
		send, recv := at(m.From, m.SendStep), at(m.To, m.RecvStep)
		send.end, recv.end = max(send.end, m.End), max(recv.end, m.End)
		if m.Combine {
			recv.words += m.Words
			recv.message = i
		}
	}
	return rounds
}

// A place is where a message is drawn at its two ends.
type place struct{ send, recv int }
