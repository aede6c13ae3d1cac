package draw

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

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
	t := &trace{out: bufio.NewWriter(w), scale: nanoseconds(s.Result.Time), tracksOf: make([]endpoints, len(s.Result.Log))}
	t.write(`{"displayTimeUnit":"ns","otherData":{"title":`, quote(s.Title),
		`,"one microsecond":`, quote(shortNumber(1000/t.scale)+" in the unit of ts"),
		`,"time":`, strconv.FormatFloat(s.Result.Time, 'g', -1, 64), `},"traceEvents":[`)
	t.ranks(s)
	t.links(s)
	t.flows(s.Result.Log)
	t.write("\n]}\n")
	return t.out.Flush()
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

// A trace is a trace while it is written. The buffer keeps the first error.
type trace struct {
	out      *bufio.Writer
	scale    float64 // nanoseconds in a unit of the model's time
	events   int
	tracks   int
	tracksOf []endpoints // by message
}

func (t *trace) write(texts ...string) {
	for _, text := range texts {
		t.out.WriteString(text)
	}
}

// The processes of a trace.
const (
	rankProcess = 1
	linkProcess = 2
)

func (t *trace) ranks(s Scene) {
	t.process(rankProcess, "ranks")
	for rank, r := range newRankTracks(s) {
		for k, tracks := range [][]track{r.out, r.in} {
			name := fmt.Sprintf("rank %d %s", rank, [...]string{"sends", "receives"}[k])
			for i, track := range tracks {
				t.track(rankProcess, name, i)
				for _, b := range track {
					switch b.activity {
					case sending:
						t.tracksOf[b.message].send = t.tracks
					case receiving:
						t.tracksOf[b.message].recv = t.tracks
					}
					t.slice(rankProcess, b, s.Result.Log)
				}
			}
		}
	}
}

// links writes the messages that cross each link. A link that messages share has
// several tracks.
func (t *trace) links(s Scene) {
	t.process(linkProcess, "links")
	for _, l := range linkActivities(s) {
		for i, track := range l.tracks {
			t.track(linkProcess, "link "+s.Result.Name(l.link), i)
			for _, b := range track {
				t.slice(linkProcess, b, s.Result.Log)
			}
		}
	}
}

// flows writes a flow for each message, between its two slices.
func (t *trace) flows(log []sim.Message) {
	for i, m := range log {
		start, end := t.ns(m.Start), t.ns(m.End)
		t.event(`{"ph":"s","id":%d,"pid":%d,"tid":%d,"ts":%s,"name":"message","cat":"message"}`,
			i+1, rankProcess, t.tracksOf[i].send, micro(start))
		t.event(`{"ph":"f","bp":"e","id":%d,"pid":%d,"tid":%d,"ts":%s,"name":"message","cat":"message"}`,
			i+1, rankProcess, t.tracksOf[i].recv, micro(start+(end-start)/2))
	}
}

func (t *trace) event(format string, args ...any) {
	if t.events > 0 {
		t.out.WriteByte(',')
	}
	t.events++
	t.out.WriteByte('\n')
	fmt.Fprintf(t.out, format, args...)
}

func (t *trace) process(pid int, name string) {
	t.event(`{"ph":"M","pid":%d,"name":"process_name","args":{"name":%s}}`, pid, quote(name))
	t.event(`{"ph":"M","pid":%d,"name":"process_sort_index","args":{"sort_index":%d}}`, pid, pid)
}

// track begins a track. Tracks with the same name are numbered from the second on.
func (t *trace) track(pid int, name string, i int) {
	t.tracks++
	if i > 0 {
		name += " " + strconv.Itoa(i+1)
	}
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}`, pid, t.tracks, quote(name))
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}`, pid, t.tracks, t.tracks)
}

// slice writes a bar on the current track.
func (t *trace) slice(pid int, b bar, log []sim.Message) {
	start, end := t.ns(b.start), t.ns(b.end)
	args, name := "{}", "combines"
	if b.message >= 0 {
		m := log[b.message]
		args = fmt.Sprintf(`{"step":%d,"message":"%d→%d","words":%d,"hops":%d}`, m.Step+1, m.From, m.To, m.Words, m.Hops)
		switch b.activity {
		case sending, receiving, crossing:
			name = fmt.Sprintf("%d→%d", m.From, m.To)
		case waiting:
			name = "waits"
		case combining:
			args = fmt.Sprintf(`{"step":%d}`, m.Step+1)
		}
	}
	t.event(`{"ph":"X","pid":%d,"tid":%d,"ts":%s,"dur":%s,"name":"%s","cat":"%s","args":%s}`,
		pid, t.tracks, micro(start), micro(end-start), name, b.activity, args)
}

// ns returns a time in whole nanoseconds of the trace. Equal times stay equal.
func (t *trace) ns(time float64) int64 { return int64(math.Round(time * t.scale)) }

// micro formats nanoseconds as microseconds.
func micro(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }

// quote returns a text as a JSON string.
func quote(text string) string {
	b, _ := json.Marshal(text) // strings cannot fail
	return string(b)
}

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
