package draw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// An event is an event of a trace. Numbers are exact.
type event struct {
	Ph   string
	Pid  int
	Tid  int
	ID   json.Number
	Ts   json.Number
	Dur  json.Number
	Name string
	Cat  string
	BP   string
	Args map[string]any
}

// ns converts microseconds to nanoseconds. The result must be an integer.
func ns(t *testing.T, n json.Number) int64 {
	t.Helper()
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		t.Fatalf("%q is no time", n)
	}
	r.Mul(r, big.NewRat(1000, 1))
	if !r.IsInt() {
		t.Fatalf("%v microseconds are no whole number of nanoseconds", n)
	}
	return r.Num().Int64()
}

type trackID struct{ pid, tid int }

// readTrace returns the events of each kind, and the names of tracks.
func readTrace(t *testing.T, text []byte) (kinds map[string][]event, names map[trackID]string) {
	t.Helper()
	var doc struct {
		OtherData   map[string]any
		TraceEvents []event
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(fmt.Sprint(doc.OtherData["one microsecond"]), " in the unit of ts") {
		t.Errorf("the trace does not say what a microsecond is: %v", doc.OtherData)
	}
	kinds, names = make(map[string][]event), make(map[trackID]string)
	for _, e := range doc.TraceEvents {
		if e.Name == "thread_name" {
			at := trackID{e.Pid, e.Tid}
			if names[at] != "" {
				t.Errorf("track %v has two names", at)
			}
			names[at] = e.Args["name"].(string)
		}
		kinds[e.Ph] = append(kinds[e.Ph], e)
	}
	return kinds, names
}

func TestATraceIsWhatPerfettoReads(t *testing.T) {
	for _, s := range timelineScenes(t) {
		t.Run(s.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Trace(&b, s.Scene); err != nil {
				t.Fatal(err)
			}
			kinds, names := readTrace(t, b.Bytes())
			slices := slicesNest(t, kinds["X"], names)
			flowsHaveTwoEnds(t, kinds, slices)
			if got, want := len(kinds["s"]), len(s.Result.Log); got != want {
				t.Errorf("%d flows: want %d, one for each message", got, want)
			}
			linksAreBusy(t, s.Scene, kinds["X"], names)
		})
	}
}

// slicesNest checks that slices on a track are disjoint or nested, and that the
// track has a name. It returns the slices by track.
func slicesNest(t *testing.T, all []event, names map[trackID]string) map[trackID][]event {
	t.Helper()
	tracks := make(map[trackID][]event)
	for _, e := range all {
		at := trackID{e.Pid, e.Tid}
		if names[at] == "" {
			t.Errorf("a slice on track %v, which has no name", at)
		}
		tracks[at] = append(tracks[at], e)
	}
	for at, list := range tracks {
		var open []int64 // ends of the slices that have begun
		last := int64(0)
		for _, e := range list {
			start := ns(t, e.Ts)
			end := start + ns(t, e.Dur)
			if start < last || end < start {
				t.Errorf("%s: a slice from %d to %d, after one at %d", names[at], start, end, last)
			}
			last = start
			for len(open) > 0 && open[len(open)-1] <= start {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && end > open[len(open)-1] {
				t.Errorf("%s: a slice from %d to %d does not nest in one until %d", names[at], start, end, open[len(open)-1])
			}
			open = append(open, end)
		}
	}
	return tracks
}

// flowsHaveTwoEnds checks that each flow begins and ends once, in that order,
// within slices of one message, at its sender and at its receiver. Messages
// that take no time cannot be distinguished.
func flowsHaveTwoEnds(t *testing.T, kinds map[string][]event, tracks map[trackID][]event) {
	t.Helper()
	if len(kinds["s"]) != len(kinds["f"]) {
		t.Errorf("%d flows begin and %d end", len(kinds["s"]), len(kinds["f"]))
	}
	seen := make(map[int64]bool)
	for i, s := range kinds["s"] {
		f := kinds["f"][i]
		id, err := s.ID.Int64()
		if err != nil || s.ID != f.ID || seen[id] || f.BP != "e" {
			t.Errorf("a flow from id %v to id %v, bound to %q: %v", s.ID, f.ID, f.BP, err)
		}
		seen[id] = true
		from, to := enclosing(t, tracks, s), enclosing(t, tracks, f)
		if from.Cat != "send" || to.Cat != "receive" || from.Name != to.Name && from.Dur != "0.000" || ns(t, f.Ts) < ns(t, s.Ts) {
			t.Errorf("flow %d leads from %s %s at %v to %s %s at %v", id, from.Cat, from.Name, s.Ts, to.Cat, to.Name, f.Ts)
		}
	}
}

// enclosing returns the last slice of an event's track that holds its time.
func enclosing(t *testing.T, tracks map[trackID][]event, e event) (found event) {
	t.Helper()
	at := ns(t, e.Ts)
	for _, slice := range tracks[trackID{e.Pid, e.Tid}] {
		start := ns(t, slice.Ts)
		if start <= at && at <= start+ns(t, slice.Dur) && slice.Cat == map[string]string{"s": "send", "f": "receive"}[e.Ph] {
			if at < start+ns(t, slice.Dur) || slice.Dur == "0.000" {
				found = slice
			}
		}
	}
	return found
}

// linksAreBusy checks that the tracks of links have as many messages as in the
// simulation.
func linksAreBusy(t *testing.T, s Scene, all []event, names map[trackID]string) {
	t.Helper()
	messages := make(map[string]int)
	for _, e := range all {
		if e.Pid == linkProcess {
			link := strings.Fields(names[trackID{e.Pid, e.Tid}])
			messages[link[1]]++
		}
	}
	if len(messages) != len(s.Result.Links) {
		t.Errorf("%d links: want %d", len(messages), len(s.Result.Links))
	}
	for _, l := range s.Result.Links {
		if name := s.Result.Name(l.Link); messages[name] != l.Messages {
			t.Errorf("link %s carries %d messages: want %d", name, messages[name], l.Messages)
		}
	}
}

func TestATraceHasTheSameBytesEachTime(t *testing.T) {
	for _, c := range timelineCases {
		s := c.scene(t)
		var one, other bytes.Buffer
		if err := Trace(&one, s); err != nil {
			t.Fatal(err)
		}
		if err := Trace(&other, s); err != nil || !bytes.Equal(one.Bytes(), other.Bytes()) {
			t.Errorf("%s: the second trace differs from the first (%v)", c.name, err)
		}
		if c.name == "butterfly-7" {
			golden(t, "trace-butterfly-7.json", one.Bytes())
		}
	}
}

func TestATraceKeepsBriefTimesApart(t *testing.T) {
	for whole, want := range map[float64]float64{0: 1e3, 33: 1e3, 1: 1e3, 0.5: 1e6, 1e-5: 1e9, 1e12: 1e3, 1e17: 1} {
		if got := nanoseconds(whole); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%v units of time: %v ns each, want %v", whole, got, want)
		}
	}
}

func TestAllPortsHaveATrackForEachMessageAtOnce(t *testing.T) {
	for _, c := range timelineCases {
		if c.name != "scatter-all-ports" {
			continue
		}
		var b bytes.Buffer
		if err := Trace(&b, c.scene(t)); err != nil {
			t.Fatal(err)
		}
		_, names := readTrace(t, b.Bytes())
		var sends []string
		for _, name := range names {
			if strings.HasPrefix(name, "rank 0 sends") {
				sends = append(sends, name)
			}
		}
		slices.Sort(sends)
		if want := []string{"rank 0 sends", "rank 0 sends 2", "rank 0 sends 3"}; !slices.Equal(sends, want) {
			t.Errorf("tracks %q: want %q", sends, want)
		}
	}
}

// The error of a full disk is returned.
func TestATraceReportsTheWritersError(t *testing.T) {
	if err := Trace(failingWriter{}, timelineCases[1].scene(t)); err == nil {
		t.Error("want an error")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, fmt.Errorf("no room") }
