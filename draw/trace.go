package draw

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/chorale-go/chorale/internal/traceevent"
	"github.com/chorale-go/chorale/sim"
)

// Trace writes a timeline in Chrome's Trace Event Format, which Perfetto opens. The
// ranks are one process, and the links that carry messages another. A rank has a
// track for each message that it sends at the same time, and for each that it
// receives; the tracks also show waiting and combining. A flow leads from a
// message's sender to its receiver.
//
// One unit of the model's time is a microsecond, or another power of ten if the
// viewer's nanoseconds could not represent the total time. The field "one
// microsecond" of the trace's other data has the scale.
//
// Trace returns an error if the scene has no log, or if w fails.
func Trace(w io.Writer, s Scene) error {
	if err := checkRecorded(s); err != nil {
		return err
	}
	scale := nanoseconds(s.Result.Time)
	out := traceevent.NewWriter(w,
		traceevent.Pair{Name: "title", Value: s.Title},
		traceevent.Pair{Name: "one microsecond", Value: shortNumber(1000/scale) + " in the unit of ts"},
		traceevent.Pair{Name: "time", Value: s.Result.Time})
	t := &trace{Writer: out, scale: scale, tracksOf: make([]endpoints, len(s.Result.Log))}
	t.ranks(s)
	t.links(s)
	t.flows(s.Result.Log)
	return out.Close()
}

// nanoseconds returns the number of nanoseconds in one unit of the model's time:
// 1000, or another power of 1000 so that the total is at least 1 µs and at most
// 1e17 ns.
func nanoseconds(total float64) float64 {
	scale := 1000.0
	for total > 0 && total*scale < 1e3 {
		scale *= 1000
	}
	for total*scale > 1e17 {
		scale /= 1000
	}
	return scale
}

// A trace is a trace while it is written.
type trace struct {
	*traceevent.Writer
	scale    float64     // nanoseconds in a unit of the model's time
	tracksOf []endpoints // by message
}

// The processes of a trace.
const (
	rankProcess = 1
	linkProcess = 2
)

func (t *trace) ranks(s Scene) {
	t.Process(rankProcess, "ranks")
	for rank, r := range newRankTracks(s) {
		for k, tracks := range [][]track{r.out, r.in} {
			name := fmt.Sprintf("rank %d %s", rank, [...]string{"sends", "receives"}[k])
			for i, track := range tracks {
				tid := t.Track(rankProcess, name, i)
				for _, b := range track {
					switch b.activity {
					case sending:
						t.tracksOf[b.message].send = tid
					case receiving:
						t.tracksOf[b.message].recv = tid
					}
					t.slice(rankProcess, tid, b, s.Result.Log)
				}
			}
		}
	}
}

// links writes the messages that cross each link. A link that messages share has
// several tracks.
func (t *trace) links(s Scene) {
	t.Process(linkProcess, "links")
	for _, l := range linkActivities(s) {
		for i, track := range l.tracks {
			tid := t.Track(linkProcess, "link "+s.Result.Name(l.link), i)
			for _, b := range track {
				t.slice(linkProcess, tid, b, s.Result.Log)
			}
		}
	}
}

// flows writes a flow for each message, between its two slices.
func (t *trace) flows(log []sim.Message) {
	for i, m := range log {
		start, end := t.ns(m.Start), t.ns(m.End)
		t.Flow(i+1, "message",
			traceevent.End{Process: rankProcess, Track: t.tracksOf[i].send, Time: start},
			traceevent.End{Process: rankProcess, Track: t.tracksOf[i].recv, Time: start + (end-start)/2})
	}
}

// slice writes a bar on a track.
func (t *trace) slice(pid, tid int, b bar, log []sim.Message) {
	name, args := "combines", []traceevent.Pair(nil)
	if b.message >= 0 {
		m := log[b.message]
		step := traceevent.Pair{Name: "step", Value: m.Step + 1}
		message := fmt.Sprintf("%d→%d", m.From, m.To)
		args = []traceevent.Pair{step, {Name: "message", Value: message}, {Name: "words", Value: m.Words}, {Name: "hops", Value: m.Hops}}
		switch b.activity {
		case sending, receiving, crossing:
			name = message
		case waiting:
			name = "waits"
		case combining:
			args = []traceevent.Pair{step}
		}
	}
	t.Slice(pid, tid, t.ns(b.start), t.ns(b.end), name, b.activity.String(), args...)
}

// ns returns a time in whole nanoseconds of the trace. Equal times stay equal.
func (t *trace) ns(time float64) int64 { return int64(math.Round(time * t.scale)) }

// A linkActivity is a link with the messages that cross it.
type linkActivity struct {
	link   int
	tracks []track
}

// linkActivities returns the links that messages cross, ordered by id.
func linkActivities(s Scene) []linkActivity {
	c := s.Result.Config
	tracks := make(map[int32][]track)
	var route []int32
	for _, i := range orderByStart(s.Result.Log) {
		m := s.Result.Log[i]
		route = c.Topology.AppendRoute(route[:0], processorOf(s.Result, m.From), processorOf(s.Result, m.To))
		for _, link := range route {
			tracks[link] = addBar(tracks[link], bar{crossing, m.Start, m.End, i}, m.Start)
		}
	}
	links := make([]linkActivity, 0, len(tracks))
	for link, t := range tracks {
		links = append(links, linkActivity{int(link), t})
	}
	slices.SortFunc(links, func(a, b linkActivity) int { return a.link - b.link })
	return links
}
