// Package traceevent writes Chrome's Trace Event Format, which Perfetto opens: slices on
// tracks of processes, and flows between slices.
package traceevent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// A Writer writes one trace. Times are in whole nanoseconds. What is written to it comes
// in the order of the calls; an error of the underlying writer is returned by Close.
type Writer struct {
	out    *bufio.Writer
	events int
	tracks int
}

// A Pair is a name and a value that marshals to JSON.
type Pair struct {
	Name  string
	Value any
}

// NewWriter begins a trace. Other is what it says of itself beside its events.
func NewWriter(w io.Writer, other ...Pair) *Writer {
	t := &Writer{out: bufio.NewWriter(w)}
	t.out.WriteString(`{"displayTimeUnit":"ns","otherData":`)
	t.out.Write(object(other))
	t.out.WriteString(`,"traceEvents":[`)
	return t
}

// Close ends the trace.
func (t *Writer) Close() error {
	t.out.WriteString("\n]}\n")
	return t.out.Flush()
}

func (t *Writer) event(format string, args ...any) {
	if t.events > 0 {
		t.out.WriteByte(',')
	}
	t.events++
	t.out.WriteByte('\n')
	fmt.Fprintf(t.out, format, args...)
}

// Process names a process. Processes are shown in the order of their numbers.
func (t *Writer) Process(pid int, name string) {
	t.event(`{"ph":"M","pid":%d,"name":"process_name","args":{"name":%s}}`, pid, marshal(name))
	t.event(`{"ph":"M","pid":%d,"name":"process_sort_index","args":{"sort_index":%d}}`, pid, pid)
}

// Track begins the i-th track of a name, and returns its number. The second and later ones
// of a name are numbered.
func (t *Writer) Track(pid int, name string, i int) int {
	t.tracks++
	if i > 0 {
		name += " " + strconv.Itoa(i+1)
	}
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}`, pid, t.tracks, marshal(name))
	t.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}`, pid, t.tracks, t.tracks)
	return t.tracks
}

// Slice writes a slice. The slices of a track follow or contain each other.
func (t *Writer) Slice(pid, track int, start, end int64, name, category string, args ...Pair) {
	t.event(`{"ph":"X","pid":%d,"tid":%d,"ts":%s,"dur":%s,"name":%s,"cat":%s,"args":%s}`,
		pid, track, micro(start), micro(end-start), marshal(name), marshal(category), object(args))
}

// An End is where a flow begins or ends: at a time within a slice.
type End struct {
	Process, Track int
	Time           int64
}

// Flow writes a flow from one slice to another. Flows have different numbers.
func (t *Writer) Flow(id int, name string, from, to End) {
	t.event(`{"ph":"s","id":%d,"pid":%d,"tid":%d,"ts":%s,"name":%s,"cat":%[5]s}`, id, from.Process, from.Track, micro(from.Time), marshal(name))
	t.event(`{"ph":"f","bp":"e","id":%d,"pid":%d,"tid":%d,"ts":%s,"name":%s,"cat":%[5]s}`, id, to.Process, to.Track, micro(to.Time), marshal(name))
}

// micro formats nanoseconds as microseconds.
func micro(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return fmt.Sprintf("%s%d.%03d", sign, ns/1000, ns%1000)
}

// object returns pairs as a JSON object.
func object(pairs []Pair) []byte {
	b := []byte{'{'}
	for i, p := range pairs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, marshal(p.Name)...), ':'), marshal(p.Value)...)
	}
	return append(b, '}')
}

// marshal returns the JSON of a value that has one.
func marshal(value any) []byte {
	b, _ := json.Marshal(value)
	return b
}
