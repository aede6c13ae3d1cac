package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/chorale-go/chorale/internal/ranklist"
	"github.com/chorale-go/chorale/internal/traceevent"
)

// format is the version of the file.
const format = "chorale 1"

// Write writes the timeline in Chrome's Trace Event Format. Each host is a process, and each
// rank a track, or several if it does several things at a time. A call contains its steps,
// and these their waiting and combining. A flow leads from the step or call that sends a
// message to the one that receives it.
func (t *Timeline) Write(w io.Writer) error {
	out := traceevent.NewWriter(w,
		traceevent.Pair{Name: "title", Value: "a real run"}, traceevent.Pair{Name: "format", Value: format},
		traceevent.Pair{Name: "ranks", Value: t.Ranks}, traceevent.Pair{Name: "dropped", Value: t.Dropped},
		traceevent.Pair{Name: "skipped", Value: t.Skipped}, traceevent.Pair{Name: "clocks", Value: t.clocks()},
		traceevent.Pair{Name: "notes", Value: t.Notes()})
	items := t.items()
	hosts := map[int]int{} // by rank
	for i, c := range t.Clocks {
		name := "ranks"
		if len(t.Clocks) > 1 {
			name = fmt.Sprintf("host of %s", ranklist.Name(c.Ranks))
		}
		out.Process(i+1, name)
		for _, rank := range c.Ranks {
			hosts[rank] = i + 1
			writeRank(out, i+1, rank, items[rank])
		}
	}
	for i, f := range t.flows {
		end := func(a at) traceevent.End {
			return traceevent.End{Process: hosts[a.rank], Track: *a.track, Time: a.time}
		}
		out.Flow(i+1, "message", end(f.from), end(f.to))
	}
	return out.Close()
}

// clocks returns how well each host's clock is known, as the file has it.
func (t *Timeline) clocks() any {
	type hostClock struct {
		Ranks  string `json:"ranks"`
		Offset int64  `json:"offsetNs"`
		Bound  *int64 `json:"boundNs"`
	}
	all := []hostClock{}
	for _, c := range t.Clocks {
		h := hostClock{ranklist.Name(c.Ranks), c.Offset, &c.Bound}
		if c.Bound < 0 {
			h.Bound = nil
		}
		all = append(all, h)
	}
	return all
}

// An item is a call or a message.
type item struct {
	start, end int64
	call       *RankCall
	message    *message
}

// items returns what each rank has done, in the order of the beginnings.
func (t *Timeline) items() map[int][]item {
	all := map[int][]item{}
	for _, c := range t.calls {
		all[c.JobRank] = append(all[c.JobRank], item{start: c.Start, end: c.End, call: c})
	}
	for _, m := range t.messages {
		all[m.jobRank] = append(all[m.jobRank], item{start: m.Start, end: m.End, message: m})
	}
	for _, items := range all {
		slices.SortStableFunc(items, func(a, b item) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	}
	return all
}

// writeRank writes the tracks of a rank: an item goes to the first that is free.
func writeRank(out *traceevent.Writer, pid, rank int, items []item) {
	tracks := [][]item{nil}
	for _, it := range items {
		free := func(track []item) bool { return len(track) == 0 || track[len(track)-1].end <= it.start }
		i := slices.IndexFunc(tracks, free)
		if i < 0 {
			i, tracks = len(tracks), append(tracks, nil)
		}
		tracks[i] = append(tracks[i], it)
	}
	for i, items := range tracks {
		tid := out.Track(pid, fmt.Sprintf("rank %d", rank), i)
		for _, it := range items {
			if it.call != nil {
				it.call.track = tid
				writeCall(out, pid, it.call)
			} else {
				it.message.track = tid
				writeMessage(out, pid, it.message)
			}
		}
	}
}

func writeCall(out *traceevent.Writer, pid int, c *RankCall) {
	out.Slice(pid, c.track, c.Start, c.End, c.Collective, "call", c.args()...)
	for i := range c.Parts {
		s, x := &c.Parts[i], c.exchange(i)
		args := []traceevent.Pair{{Name: "step", Value: i + 1}}
		for _, side := range []struct {
			name string
			ends []Message
		}{{"sends", x.Sends}, {"receives", x.Recvs}} {
			texts := make([]string, len(side.ends))
			for k, m := range side.ends {
				texts[k] = fmt.Sprintf("%d: %d B", m.Peer, m.Bytes)
			}
			args = append(args, traceevent.Pair{Name: side.name, Value: texts})
		}
		moving := s.End - s.Start - s.Waiting() - s.Combining
		args = append(args, traceevent.Pair{Name: "waitingNs", Value: s.Waiting()},
			traceevent.Pair{Name: "combiningNs", Value: s.Combining}, traceevent.Pair{Name: "otherNs", Value: max(0, moving)})
		out.Slice(pid, c.track, s.Start, s.End, fmt.Sprintf("step %d", i+1), "step", args...)
		if s.Waiting() > 0 {
			out.Slice(pid, c.track, s.Start, s.WaitedTo, fmt.Sprintf("waits for rank %d", s.WaitedFor), "wait")
		}
		if from := max(s.End-s.Combining, s.Start+s.Waiting()); s.Combining > 0 && from < s.End {
			out.Slice(pid, c.track, from, s.End, "combines", "combine")
		}
	}
}

// args returns what the file says of a call, which Read reads.
func (c *RankCall) args() []traceevent.Pair {
	args := []traceevent.Pair{
		{Name: "line", Value: c.Place.String()}, {Name: "algorithm", Value: c.Algorithm}, {Name: "collective", Value: c.Collective},
		{Name: "type", Value: c.Type}, {Name: "elementBytes", Value: c.Size}, {Name: "count", Value: c.Count},
		{Name: "bytesSent", Value: c.Bytes}, {Name: "root", Value: c.Root}, {Name: "p", Value: c.P},
		{Name: "rank", Value: c.Rank}, {Name: "jobRank", Value: c.JobRank}, {Name: "jobRankOf0", Value: c.First},
		{Name: "communicator", Value: c.Communicator}, {Name: "number", Value: c.Sequence},
	}
	if c.Uneven {
		args = append(args, traceevent.Pair{Name: "uneven", Value: true})
	}
	if c.Skipped > 0 {
		args = append(args, traceevent.Pair{Name: "callsNotRecordedBefore", Value: c.Skipped})
	}
	if c.Failed {
		args = append(args, traceevent.Pair{Name: "failed", Value: true})
	}
	return args
}

// String returns the line as errors have it.
func (p Place) String() string {
	if p.File == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

func writeMessage(out *traceevent.Writer, pid int, m *message) {
	category, peer := "receive", "from"
	switch m.Kind {
	case Send, StartSend:
		category, peer = "send", "to"
	case Wait:
		category = "wait"
	}
	args := []traceevent.Pair{{Name: "line", Value: m.Place.String()}, {Name: "communicator", Value: m.Communicator()}}
	if m.Peer >= 0 {
		args = append(args, traceevent.Pair{Name: peer, Value: m.Peer}, traceevent.Pair{Name: "tag", Value: m.Tag}, traceevent.Pair{Name: "bytes", Value: m.Amount})
	}
	if m.Failed {
		args = append(args, traceevent.Pair{Name: "failed", Value: true})
	}
	out.Slice(pid, m.track, m.Start, m.End, m.Kind.String(), category, args...)
}
