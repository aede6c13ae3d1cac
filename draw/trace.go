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

// Trace writes a timeline in the Trace Event Format of Chrome, which Perfetto
// opens. The ranks are one process and the links that carry messages another.
// A rank has a track for each message that it can send at once and for each that
// it can receive; what it waits for and combines is there as well. A flow leads
// from a message's sender to its receiver.
//
// One unit of the model's time is a microsecond, unless that makes the whole too
// short or too long for the viewer's nanoseconds. The trace says what it is, as
// "one microsecond" among its other data.
//
// An error says that there is nothing to write, or is the writer's.
func Trace(w io.Writer, s Scene) error {
	if err := recorded(s); err != nil {
		return err
	}
	t := &trace{out: bufio.NewWriter(w), scale: nanoseconds(s.Result.Time), on: make([]place, len(s.Result.Log))}
	t.write(`{"displayTimeUnit":"ns","otherData":{"title":`, quote(s.Title),
		`,"one microsecond":`, quote(shortNumber(1000/t.scale)+" in the unit of ts"),
		`,"time":`, strconv.FormatFloat(s.Result.Time, 'g', -1, 64), `},"traceEvents":[`)
	t.ranks(s)
	t.links(s)
	t.flows(s.Result.Log)
	t.write("\n]}\n")
	return t.out.Flush()
}

// nanoseconds returns how many of them are one unit of the model's time: 1000,
// or another power of ten if the whole would be less than a microsecond or more
// than can be counted.
func nanoseconds(whole float64) float64 {
	scale := 1000.0
	for whole > 0 && whole*scale < 1e3 {
		scale *= 1000
	}
	for whole*scale > 1e17 {
		scale /= 1000
	}
	return scale
}

// A trace is one under way. An error in writing is kept by the buffer.
type trace struct {
	out    *bufio.Writer
	scale  float64 // nanoseconds in a unit of the model's time
	events int
	tracks int
	on     []place // per message, its tracks at its sender and receiver
}

func (t *trace) write(words ...string) {
	for _, word := range words {
		t.out.WriteString(word)
	}
}

// The processes of a trace.
const (
	rankProcess = 1
	linkProcess = 2
)

func (t *trace) ranks(s Scene) {
	t.process(rankProcess, "ranks")
	for rank, l := range newLanes(s) {
		for way, all := range [][]lane{l.out, l.in} {
			name := fmt.Sprintf("rank %d %s", rank, [...]string{"sends", "receives"}[way])
			for i, lane := range all {
				t.track(rankProcess, name, i)
				for _, b := range lane {
					switch b.deed {
					case sends:
						t.on[b.message].send = t.tracks
					case receives:
						t.on[b.message].recv = t.tracks
					}
					t.slice(rankProcess, b, s.Result.Log)
				}
			}
		}
	}
}

// links writes for each link the messages that cross it. It has several tracks
// where messages share it.
func (t *trace) links(s Scene) {
	t.process(linkProcess, "links")
	for _, used := range traffic(s) {
		for i, lane := range used.lanes {
			t.track(linkProcess, "link "+s.Result.Name(used.link), i)
			for _, b := range lane {
				t.slice(linkProcess, b, s.Result.Log)
			}
		}
	}
}

// flows writes an arrow for each message, between its two slices.
func (t *trace) flows(log []sim.Message) {
	for i, m := range log {
		start, end := t.ns(m.Start), t.ns(m.End)
		t.event(`{"ph":"s","id":%d,"pid":%d,"tid":%d,"ts":%s,"name":"message","cat":"message"}`,
			i+1, rankProcess, t.on[i].send, micro(start))
		t.event(`{"ph":"f","bp":"e","id":%d,"pid":%d,"tid":%d,"ts":%s,"name":"message","cat":"message"}`,
			i+1, rankProcess, t.on[i].recv, micro(start+(end-start)/2))
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

// track begins a track. Those of a name after the first are numbered.
func (t *trace) track(pid int, name string, i int) {
	t.tracks++
	if i > 0 {
		name += " " + strconv.Itoa(i+1)
	}
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}`, pid, t.tracks, quote(name))
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}`, pid, t.tracks, t.tracks)
}

// slice writes a bar on the track that began last.
func (t *trace) slice(pid int, b bar, log []sim.Message) {
	start, end := t.ns(b.start), t.ns(b.end)
	args, name := "{}", "combines"
	if b.message >= 0 {
		m := log[b.message]
		args = fmt.Sprintf(`{"step":%d,"message":"%d→%d","words":%d,"hops":%d}`, m.Step+1, m.From, m.To, m.Words, m.Hops)
		switch b.deed {
		case sends, receives, crosses:
			name = fmt.Sprintf("%d→%d", m.From, m.To)
		case waits:
			name = "waits"
		case combines:
			args = fmt.Sprintf(`{"step":%d}`, m.Step+1)
		}
	}
	t.event(`{"ph":"X","pid":%d,"tid":%d,"ts":%s,"dur":%s,"name":"%s","cat":"%s","args":%s}`,
		pid, t.tracks, micro(start), micro(end-start), name, b.deed, args)
}

// ns is a time in whole nanoseconds of the trace. What ends when something else
// starts does so in the trace, too.
func (t *trace) ns(time float64) int64 { return int64(math.Round(time * t.scale)) }

// micro writes nanoseconds as microseconds.
func micro(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }

// quote makes a JSON string of any text.
func quote(text string) string {
	b, _ := json.Marshal(text) // no string fails
	return string(b)
}

// A used link is what crosses it.
type usedLink struct {
	link  int
	lanes []lane
}

// traffic returns the links that messages cross, by id.
func traffic(s Scene) []usedLink {
	c := s.Result.Config
	seat := func(rank int) int {
		if c.Placement == nil {
			return rank
		}
		return c.Placement[rank]
	}
	on := make(map[int32][]lane)
	var route []int32
	for _, i := range byStart(s.Result.Log) {
		m := s.Result.Log[i]
		route = c.Topology.AppendRoute(route[:0], seat(m.From), seat(m.To))
		for _, link := range route {
			on[link] = settle(on[link], bar{crosses, m.Start, m.End, i}, m.Start)
		}
	}
	all := make([]usedLink, 0, len(on))
	for link, lanes := range on {
		all = append(all, usedLink{int(link), lanes})
	}
	slices.SortFunc(all, func(a, b usedLink) int { return a.link - b.link })
	return all
}
