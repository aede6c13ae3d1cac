package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/chorale-go/chorale/topo"
)

// A Result is the outcome of a simulation. Times are in the unit of
// Config.Model and start at 0. Steps are those of [sched.Schedule.Timeline],
// counted from 0: a message belongs to the first step in which both its ends
// have finished their earlier steps, whatever the time.
type Result struct {
	Config   Config
	Ranks    int
	Steps    int
	Messages int
	Words    int     // of all messages
	Time     float64 // when the last rank is done

	MaxLinkLoad int // the most messages that one link is asked to carry in one direction in one step

	PerStep []Step // one per step
	PerRank []Rank // one per rank
	Path    []Leg  // the critical path, first to last

	Log   []Message // with Config.Record: every message, by step, sender, and place in its program
	Links []Link    // with Config.Record: every directed link that carries a message, by id
}

// A Step sums up one step of the timeline. If a step of a rank's own program has
// messages of several of them, what the rank combines belongs to the last.
type Step struct {
	Messages    int
	Words       int
	Start, End  float64 // its first message starts; the last has arrived and been combined
	LinksInUse  int     // directed links that its messages cross
	MaxLinkLoad int
	Congested   []Load // the links that are asked to carry more than one message, by id
}

// A Load is the number of messages that one directed link is asked to carry in
// one step.
type Load struct {
	Link     int // see topo.LinkName
	Messages int
}

// A Rank is the totals of one rank.
type Rank struct {
	Sent, Received           int     // messages
	SentWords, ReceivedWords int     // words
	Sending, Receiving       float64 // time for which a message of its own is under way; messages at once count each
	Combining                float64 // time
	End                      float64 // when it is done
}

// A Message is one message of the simulation.
type Message struct {
	Step     int
	From, To int // ranks
	Words    int
	Hops     int     // links on its route
	Combine  bool    // the receiver combines it with what it holds
	Ready    float64 // when both its ends have reached the step that sends or receives it; of an eager message of a Machine, when its sender has
	Start    float64 // when the ports and links, or the processor, that it needs are free, too
	End      float64 // when it has arrived

	// The steps of its ends' own programs: the steps that send or receive,
	// counted from 0 through all parts that a rank has a part in. Steps of copies
	// alone count with Config.Sync only.
	SendStep, RecvStep int
}

// A Leg is a message of the critical path. It became ready, or started, as soon
// as the leg before it allowed: that is a message of one of its ends, or the
// message that held what it waited for. Where messages are work of the processors of a
// [Machine], its times are those of the parts of the message that are on the path: the
// sending part, the receiving part, or both with the way between them. It then waits for
// nothing: a part that had a processor before it is a leg of its own.
type Leg struct {
	Message
	Waited       float64 // from Ready to Start
	WaitedFor    string  // "link 1→2", "rank 3 to send" or "rank 3 to receive"; "" if it did not wait
	ComputeAfter float64 // time from End until the next leg is ready or starts, for combining, and on a Machine for the next step; the last leg's until the end
}

// A Link is the totals of one directed link.
type Link struct {
	Link     int // see topo.LinkName
	Messages int
	Words    int
	Busy     float64 // the time for which it carries at least one message
}

// Name returns the name of a directed link in reports, such as "1→2".
func (r *Result) Name(link int) string { return topo.LinkName(r.Config.Topology, link) }

// result puts together the steps that contentionFree found, and when they
// happened.
func (e *contentionFree) result(t *times) *Result {
	out := &Result{
		Config: e.config, Ranks: len(t.ranks), Steps: len(e.perStep), Messages: len(e.messages),
		PerStep: e.perStep, PerRank: t.totals(e.programTable),
	}
	for i := range out.PerStep {
		s := &out.PerStep[i]
		out.Words += s.Words
		out.MaxLinkLoad = max(out.MaxLinkLoad, s.MaxLinkLoad)
		if i < len(t.spans) && !math.IsInf(t.spans[i].start, 1) {
			s.Start, s.End = t.spans[i].start, t.spans[i].end
		}
	}
	for i := range t.ranks {
		out.Time = max(out.Time, t.ranks[i].end)
	}
	p := solved{programTable: e.programTable, network: e.network, times: t, names: make(map[int32]string)}
	out.Path = p.criticalPath()
	if e.config.Record {
		out.Log = p.log(out.Steps)
		out.Links = p.linkUse(out.Log)
	}
	return out
}

// linkUse returns the totals of every directed link that carries a message.
func (p *solved) linkUse(log []Message) []Link {
	type use struct {
		Link
		busy []interval
	}
	uses := make(map[int32]*use)
	for i := range log {
		m := &log[i]
		for _, link := range p.route(int32(m.From), int32(m.To)) {
			u := uses[link]
			if u == nil {
				u = &use{Link: Link{Link: int(link)}}
				uses[link] = u
			}
			u.Messages++
			u.Words += m.Words
			u.busy = append(u.busy, interval{m.Start, m.End})
		}
	}
	links := make([]Link, 0, len(uses))
	for _, link := range slices.Sorted(maps.Keys(uses)) {
		u := uses[link]
		u.Busy = covered(u.busy)
		links = append(links, u.Link)
	}
	return links
}

type interval struct{ start, end float64 }

// covered returns the length of the union of intervals.
func covered(all []interval) (time float64) {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	until := 0.0
	for _, i := range all {
		if i.end > until {
			time += i.end - max(i.start, until)
			until = i.end
		}
	}
	return time
}
