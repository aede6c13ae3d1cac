package trace

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/clock"
)

// records are of a message from rank 0 to rank 1 in a call of two ranks, on hosts whose
// clocks differ, and of a tagged message back.
func records() []Record {
	shape := func(rank int, x Exchange) []Shape {
		return []Shape{{Collective: "bcast", Algorithm: "binomial", P: 2, Rank: rank, Count: 1, Size: 8, Steps: []Exchange{x}}}
	}
	places := []Place{{}, {"main.go", 7}}
	return []Record{
		{
			Rank: 1, Size: 2, Host: "b", Begin: 5_000_000, Places: places,
			Offsets: []clock.Offset{{At: 0, Value: -4_000_000, Bound: 900}, {At: 9_000_000, Value: -4_000_000, Bound: 40}},
			Shapes:  shape(1, Exchange{Recvs: []Message{{0, 8}}}),
			Events: []Event{
				{Kind: Call, Place: 1, Sequence: 3, Start: 100, End: 900},
				{Kind: Step, Start: 100, End: 800, Amount: 50},
				{Kind: Send, Place: 1, Peer: 0, Tag: 4, Start: 1000, End: 1100, Amount: 16, Number: 1},
			},
		},
		{
			Rank: 0, Size: 2, Host: "a", Begin: 1_000_000, Places: places, Offsets: []clock.Offset{{At: 0}},
			Shapes: shape(0, Exchange{Sends: []Message{{1, 8}}}),
			Events: []Event{
				{Kind: Call, Place: 1, Sequence: 3, Start: 600, End: 700},
				{Kind: Step, Start: 600, End: 690},
				{Kind: Call, Place: 1, Sequence: 8, Start: 720, End: 730, Failed: true},
				{Kind: Recv, Place: 1, Peer: 1, Tag: 4, Start: 900, End: 1200, Amount: 16, Number: 1},
			},
		},
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	for _, want := range records() {
		got, err := Decode(want.Encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, error %v: want %+v", got, err, want)
		}
	}
}

func TestARecordThatIsWrongIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"rank":  func(r *Record) { r.Rank = 2 },
		"place": func(r *Record) { r.Events[0].Place = 2 },
		"shape": func(r *Record) { r.Events[0].Shape = -1 },
		"kind":  func(r *Record) { r.Events[0].Kind = kinds },
	} {
		r := records()[0]
		change(&r)
		if _, err := Decode(r.Encode()); err == nil {
			t.Errorf("a wrong %s is accepted", name)
		}
	}
	if _, err := Decode([]byte("nothing")); err == nil {
		t.Error("a text is accepted")
	}
}

func TestARingKeepsTheLastCallsWithTheirSteps(t *testing.T) {
	r := NewRing(5 * EventBytes)
	for call := range int64(4) {
		r.Add(Event{Kind: Call, Start: call})
		r.Add(Event{Kind: Step, Start: call})
	}
	kept, dropped := r.Events()
	want := []Event{{Kind: Call, Start: 2}, {Kind: Step, Start: 2}, {Kind: Call, Start: 3}, {Kind: Step, Start: 3}}
	if !reflect.DeepEqual(kept, want) || dropped != 4 {
		t.Errorf("%+v, %d dropped: want the last two calls, and 4 dropped", kept, dropped)
	}
}

func TestATimelineHasOneClockAndSaysHowExactItIs(t *testing.T) {
	tl := Join(records())
	if tl.Bound() != 900 || len(tl.Clocks) != 2 || tl.Clocks[1].Offset != -4_000_000 {
		t.Errorf("clocks %+v, bound %d: want the second 4 ms ahead, within 900 ns", tl.Clocks, tl.Bound())
	}
	if notes := strings.Join(tl.Notes(), "; "); notes != "the clock of rank 1 is right within 900ns" {
		t.Errorf("notes %q", notes)
	}
	var s RankStep
	for _, c := range tl.calls {
		if c.JobRank == 1 {
			s = c.Parts[0]
		}
	}
	if s.Start != 0 || s.Waiting() != 500 || s.WaitedFor != 0 || s.Combining != 50 {
		t.Errorf("step %+v: want it to begin at 0, and to wait 500 ns for rank 0", s)
	}
	unknown := records()
	unknown[0].Offsets = nil
	if tl := Join(unknown); tl.Bound() != -1 || !strings.Contains(strings.Join(tl.Notes(), ""), "rank 1 was not compared") {
		t.Errorf("bound %d, notes %q: want the offset of rank 1 to be unknown", tl.Bound(), tl.Notes())
	}
	if tl := Join(records()[1:]); len(tl.Notes()) != 1 || tl.Notes()[0] != "1 of 2 ranks have told what they did" {
		t.Errorf("notes %q: want one that a rank has told nothing", tl.Notes())
	}
}

func TestATimelineIsReadAsItWasWritten(t *testing.T) {
	var out bytes.Buffer
	if err := Join(records()).Write(&out); err != nil {
		t.Fatal(err)
	}
	f, err := Read(bytes.NewReader(out.Bytes()))
	if err != nil || len(f.Calls) != 3 || f.Ranks != 2 {
		t.Fatalf("%+v, error %v: want three parts in calls of 2 ranks", f, err)
	}
	want := FileCall{
		Collective: "bcast", Algorithm: "binomial", Line: "main.go:7", Size: 8, Count: 1, P: 2, Rank: 1, JobRank: 1, Number: 3,
		Start: 0, End: 800, Steps: []int64{700},
	}
	if got := f.Calls[2]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !f.Calls[1].Failed {
		t.Errorf("%+v: want the call to have failed", f.Calls[1])
	}
	text := out.String()
	for _, want := range []string{`"callsNotRecordedBefore":4`, `"name":"waits for rank 0"`, `"name":"combines"`, `"ph":"s","id":2`, `"name":"host of rank 1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in\n%s", want, text)
		}
	}
	notes, err := ReadNotes(strings.NewReader(text))
	if err != nil || !reflect.DeepEqual(notes, f.Notes) || len(notes) != 1 {
		t.Errorf("notes %q, error %v: want %q", notes, err, f.Notes)
	}
	for _, bad := range []string{
		"", "{}", `{"otherData":{"format":"chorale 9"}}`, text[:len(text)/2],
		strings.Replace(text, `"p":2`, `"p":0`, 1), strings.Replace(text, `"p":2`, `"p":"two"`, 1),
	} {
		if f, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%.80s is accepted: %+v", bad, f)
		}
	}
}

func TestStepsAreMatchedInTheOrderOfTheirMessages(t *testing.T) {
	r := records()
	r[0].Shapes[0].Steps = []Exchange{{Recvs: []Message{{0, 8}}}, {Recvs: []Message{{0, 8}}}}
	r[1].Shapes[0].Steps = []Exchange{{Sends: []Message{{1, 8}, {1, 8}}}}
	r[0].Events = []Event{
		{Kind: Call, Sequence: 3, Start: 100, End: 900},
		{Kind: Step, Start: 100, End: 750}, {Kind: Step, Start: 750, End: 800},
	}
	tl := Join(r)
	if len(tl.flows) != 2 || tl.flows[0].to.time >= tl.flows[1].to.time {
		t.Errorf("%+v: want two arrows, to one step after the other", tl.flows)
	}
	if len(tl.calls) == 0 || tl.calls[0].Start == math.MaxInt64 {
		t.Error("no calls")
	}
}

func TestCallsOfTwoEndpointsOfARankAreDifferent(t *testing.T) {
	call := func(group uint16, number uint32, start int64) Event {
		return Event{Kind: Call, Group: group, Sequence: number, Start: start, End: start + 10}
	}
	shapes := []Shape{{Collective: "barrier", P: 2}}
	var all []Record
	for rank := range 2 {
		all = append(all, Record{Rank: rank, Size: 2, Places: []Place{{}}, Shapes: shapes, Events: []Event{call(0, 0, 0), call(0, 1, 20), call(1, 1, 40)}})
	}
	timeline := Join(all)
	if groups := timeline.groups(); len(groups) != 3 {
		t.Errorf("%d calls, want 3", len(groups))
	}
	for _, c := range timeline.calls {
		if c.Skipped != 0 {
			t.Errorf("%d calls are missing before %+v, want none: it is the first of its endpoint", c.Skipped, c)
		}
	}
}

func TestTwoProcessesMayBeARankAfterEachOther(t *testing.T) {
	all := records()
	all = append(all, all[0])
	timeline := Join(all)
	if timeline.Records != 2 || !reflect.DeepEqual(timeline.Clocks, Join(records()).Clocks) {
		t.Errorf("%d ranks with the clocks %+v, want 2, each once", timeline.Records, timeline.Clocks)
	}
}
