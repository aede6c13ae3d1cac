package sim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chorale-go/chorale/topo"
)

// A Result is what a simulation found. Times are in the model's unit, from 0 on.
// Steps are those of [sched.Schedule.Timeline]: a message belongs to the first
// in which both its ends have finished their earlier steps, whenever that is.
// They are counted from 0.
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

// A Step is what happens in one step. If a rank's own step has messages of
// several of these, what it combines then belongs to the last of them.
type Step struct {
	Messages    int
	Words       int
	Start, End  float64 // from when its first message starts until the last has come and been combined
	LinksInUse  int     // directed links that its messages cross
	MaxLinkLoad int
	Congested   []Load // the links that are asked to carry more than one message, by id
}

// A Load is what one directed link is asked to carry in one step.
type Load struct {
	Link     int // see topo.LinkName
	Messages int
}

// A Rank is what one rank does.
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
	Ready    float64 // when both its ends have come to it
	Start    float64 // when all that it needs is free, too
	End      float64 // when it has arrived

	// The steps of its ends' own programs: the steps that send or receive,
	// counted from 0 through all parts that a rank has a part in.
	SendStep, RecvStep int
}

// A Leg is a message of the critical path. It began as soon as the leg before
// it let it: a message of one of its ends, or one whose place it took.
type Leg struct {
	Message
	Waited float64 // from Ready to Start
	For    string  // what it waited for: "link 1→2", "rank 3 to send" or "rank 3 to receive"; "" if it did not
	After  float64 // time from Message.End until the next leg's ready or start, for combining; the last leg's until the end
}

// A Link is what one directed link carries in all.
type Link struct {
	Link     int // see topo.LinkName
	Messages int
	Words    int
	Busy     float64 // the time for which it carries at least one message
}

// Name returns what a report calls a directed link, such as "1→2".
func (r *Result) Name(link int) string { return topo.LinkName(r.Config.Topology, link) }

// result puts together what is known of the rounds, and of when they happened.
func (r *rounds) result(t *times) *Result {
	out := &Result{
		Config: r.config, Ranks: len(t.stands), Steps: len(r.perStep), Messages: len(r.messages),
		PerStep: r.perStep, PerRank: make([]Rank, len(t.stands)),
	}
	for i := range out.PerStep {
		s := &out.PerStep[i]
		out.Words += s.Words
		out.MaxLinkLoad = max(out.MaxLinkLoad, s.MaxLinkLoad)
		if i < len(t.spans) {
			s.Start, s.End = t.spans[i].start, t.spans[i].end
		}
	}
	for i := range t.stands {
		out.PerRank[i] = t.stands[i].did
		out.Time = max(out.Time, out.PerRank[i].End)
	}
	p := played{score: r.score, network: r.network, times: t, sync: r.config.Sync, meet: make([]int32, len(r.messages))}
	for recv, message := range r.meets {
		p.meet[message] = int32(recv)
	}
	out.Path = p.path()
	if r.config.Record {
		out.Log = p.log()
		out.Links = p.linkUse(out.Log)
	}
	return out
}

// log returns every message, by step, sender, and place in its program.
func (p *played) log() []Message {
	log := make([]Message, len(p.messages))
	for i := range log {
		log[i], _ = p.message(int32(i))
	}
	slices.SortStableFunc(log, func(a, b Message) int { return a.Step - b.Step })
	return log
}

// linkUse returns what each directed link carries in all.
func (p *played) linkUse(log []Message) []Link {
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

// covered returns the time that intervals cover together.
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
