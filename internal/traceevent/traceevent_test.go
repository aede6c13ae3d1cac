package traceevent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestATraceIsJSONWithEachEventInALine(t *testing.T) {
	var out strings.Builder
	w := NewWriter(&out, Pair{"title", `a "title"`}, Pair{"n", 3})
	w.Process(1, "ranks")
	first, second := w.Track(1, "rank 0", 0), w.Track(1, "rank 0", 1)
	w.Slice(1, first, 1234, 5678, "call", "x", Pair{"step", 1})
	w.Slice(1, second, -50, 0, "early", "x")
	w.Flow(7, "message", End{1, first, 1234}, End{1, second, 0})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var all struct {
		OtherData   map[string]any
		TraceEvents []map[string]any
	}
	if err := json.Unmarshal([]byte(out.String()), &all); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if all.OtherData["title"] != `a "title"` || all.OtherData["n"] != 3.0 || len(all.TraceEvents) != 10 {
		t.Errorf("%+v: want a title, a number, and 10 events", all)
	}
	for _, want := range []string{`"name":"rank 0 2"`, `"ts":1.234,"dur":4.444`, `"ts":-0.050,"dur":0.050`, `"args":{"step":1}`, `"ph":"f","bp":"e","id":7`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %s in\n%s", want, &out)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestAWriteErrorIsReturnedInTheEnd(t *testing.T) {
	w := NewWriter(full{})
	w.Process(1, "ranks")
	if err := w.Close(); err == nil {
		t.Error("no error")
	}
}
