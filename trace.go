package chorale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/callsite"
	"github.com/chorale-go/chorale/internal/clock"
	"github.com/chorale-go/chorale/internal/trace"
	"github.com/chorale-go/chorale/launch"
)

// A Trace is the timeline of a job: every call of a collective with its steps, and every
// tagged message, on every rank. [RunTrace] fills it in. A program that is started by
// chorale run --trace, or with CHORALE_TRACE set, needs none.
//
// A step waits until the last of its peers has begun its part; the time in which operands
// are combined is measured, and the rest is moving. Calls that fail are recorded, too, but
// for those that fail of their arguments.
//
// Each rank keeps 1 MiB, or as many bytes as CHORALE_TRACE_BUFFER says: 64 for each call,
// step and message. The oldest are dropped. Where calls and messages follow each other so
// closely that recording all would take more than an eightieth of the time, the first 128
// of a communicator are recorded, and then 8 of every 2048, the same ones on all ranks, and
// more as time permits.
type Trace struct{ records []trace.Record }

// Write writes the timeline in Chrome's Trace Event Format, which https://ui.perfetto.dev
// opens, and chorale sim --against reads.
func (t *Trace) Write(w io.Writer) error { return trace.Join(slices.Clone(t.records)).Write(w) }

// RunTrace is [Run], and fills in t, also if a rank fails. Nobody else may use t meanwhile.
func RunTrace(ctx context.Context, n int, f Func, t *Trace) error {
	return run(ctx, n, f, recording{trace: t})
}

// newTracers returns a tracer for each of n ranks, or as many nil ones if there is no
// timeline.
func (r *recording) newTracers(n int) []*tracer {
	all := make([]*tracer, n)
	for i := range all {
		if r.trace != nil {
			all[i] = newTracer()
		}
	}
	return all
}

// fill fills in the records of a job that is over. T may be nil.
func (t *Trace) fill(tracers []*tracer) {
	if t == nil {
		return
	}
	t.records = nil
	for rank, r := range tracers {
		t.records = append(t.records, r.finished(rank, len(tracers)))
	}
}

// writeFile writes the file of a timeline.
func (t *Trace) writeFile(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(t.Write(f), f.Close())
}

// traceFile returns the file in which this process, which runs all ranks, is to leave a
// timeline, or "".
func traceFile() string {
	if name := os.Getenv(trace.Variable); name != trace.Sent {
		return name
	}
	return ""
}

// runTraced is runJob, and leaves the timeline if the environment asks for one.
func runTraced(ctx context.Context, n int, policy stallPolicy, f Func, r recording) error {
	name := traceFile()
	if name == "" || r.trace != nil {
		return runJob(ctx, n, policy, f, r)
	}
	r.trace = new(Trace)
	err := runJob(ctx, n, policy, f, r)
	if failed := r.trace.writeFile(name); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// environmentTracer returns a tracer if the environment asks for a timeline, or nil.
func environmentTracer(env launch.JobEnv) *tracer {
	if os.Getenv(trace.Variable) == "" {
		return nil
	}
	t := newTracer()
	t.compareClocks = env.CompareClocks
	t.host = env.HostName
	t.compare()
	return t
}

// handOnTrace hands on the record of this rank at the end of its part, as handOnRecord does.
func (c *Comm) handOnTrace(env launch.JobEnv) {
	c.job.tracer.compare()
	record := c.job.tracer.finished(c.job.place())
	name := os.Getenv(trace.Variable)
	if name == trace.Sent {
		if env.ReportTrace != nil {
			env.ReportTrace(record.Encode())
		}
		return
	}
	if err := os.WriteFile(name+"."+strconv.Itoa(record.Rank), record.Encode(), 0o666); err != nil {
		fmt.Fprintln(os.Stderr, "chorale: no trace:", err)
	}
}

const (
	// traceBytes is how many bytes of events a rank keeps by default.
	traceBytes = 1 << 20
	// tracedFirst is how many calls of a communicator are recorded in any case, and tracedRun
	// of tracedOf after that.
	tracedFirst, tracedRun, tracedOf = 128, 8, 2048
	// eventPrice and stepPrice are the time in which recording an event, and a step of it,
	// takes an eightieth: an event takes about 2 µs. creditMax is the time that a rank saves
	// up at most.
	eventPrice, stepPrice, creditMax = 160 * time.Microsecond, 16 * time.Microsecond, 40 * time.Millisecond
	// The bounds of the tables of a tracer, in entries.
	maxTracedPlaces   = 1 << 10
	maxTracedShapes   = 1 << 10
	maxTracedMessages = 1 << 16 // of the steps of calls
	maxStreams        = 1 << 12
)

// A tracer records what one rank does. Its methods may be called concurrently.
type tracer struct {
	begin         clock.Reading
	stats         Stats // what calls without WithStats have instead; never written
	host          string
	compareClocks func() (clock.Offset, error) // nil if there is one host
	poor          atomic.Bool                  // there is no time to record all calls
	messages      atomic.Uint32                // operations on them
	skipped       atomic.Int64                 // calls and messages that were left out
	unnumbered    atomic.Bool                  // messages were left out, or may be others than they seem

	mu        sync.Mutex
	credit    time.Duration // for recording
	last      int64         // when the last event ended
	offsets   []clock.Offset
	ring      *trace.Ring
	max       int           // events of the ring
	places    []trace.Place // the first is unknown
	sites     map[callers]int32
	shapes    []trace.Shape // the first is unknown
	index     map[shapeKey]int32
	exchanged int               // messages of the shapes
	streams   map[stream]int64  // the messages of each
	posted    map[uintptr]int64 // the numbers of receives in progress, by their requests
}

func newTracer() *tracer {
	bytes := traceBytes
	if text := os.Getenv(trace.BufferVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < trace.EventBytes || n > trace.MaxBuffer {
			fmt.Fprintf(os.Stderr, "chorale: %s=%s: want %d to %d bytes; %d are kept\n", trace.BufferVariable, text, trace.EventBytes, trace.MaxBuffer, bytes)
		} else {
			bytes = n
		}
	}
	return &tracer{
		begin: clock.Read(), ring: trace.NewRing(bytes), max: bytes / trace.EventBytes,
		places: make([]trace.Place, 1), sites: map[callers]int32{},
		shapes: []trace.Shape{{Collective: "unknown"}}, index: map[shapeKey]int32{},
		streams: map[stream]int64{}, posted: map[uintptr]int64{},
	}
}

// now returns the time since the tracer began, in nanoseconds.
func (t *tracer) now() int64 { return int64(time.Since(t.begin.Instant)) }

// compare compares the clock of this host with the launcher's. If that fails, the timeline
// says that the offset is unknown.
func (t *tracer) compare() {
	if t.compareClocks == nil {
		return
	}
	if o, err := t.compareClocks(); err == nil {
		t.mu.Lock()
		t.offsets = append(t.offsets, o)
		t.mu.Unlock()
	}
}

// finished returns the record at the end of the rank's part.
func (t *tracer) finished(rank, size int) trace.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	events, dropped := t.ring.Events()
	return trace.Record{
		Rank: rank, Size: size, Host: t.host, Begin: t.begin.Host, Offsets: slices.Clone(t.offsets),
		Places: slices.Clone(t.places), Shapes: slices.Clone(t.shapes), Events: events,
		Dropped: dropped, Skipped: t.skipped.Load(),
	}
}

// pay takes the price of an event that ends now, with so many steps, from the time that has
// passed since the last one.
func (t *tracer) pay(now int64, steps int) {
	t.credit = min(t.credit+time.Duration(now-t.last), creditMax) - eventPrice - time.Duration(steps)*stepPrice
	t.last = max(t.last, now)
	if poor := t.credit < 0; poor != t.poor.Load() {
		t.poor.Store(poor)
	}
}

// leavesOut reports whether a call is not recorded, by its number: while there is no time
// for all of them, ranks leave out the same ones.
func (t *tracer) leavesOut(number uint32) bool {
	return number >= tracedFirst && number%tracedOf >= tracedRun && t.poor.Load()
}

// place returns the index of the line that a stack shows.
func (t *tracer) place(stack callers) int32 {
	if i, known := t.sites[stack]; known {
		return i
	}
	var p trace.Place
	p.File, p.Line = callsite.Of(stack[:])
	inStack := p.File != ""
	if !inStack { // deep in the library
		p.File, p.Line = callsite.Find(1)
	}
	i := slices.Index(t.places, p)
	if i < 0 && len(t.places) < maxTracedPlaces {
		i = len(t.places)
		t.places = append(t.places, p)
	}
	i = max(0, i)
	if len(t.sites) < 16*maxTracedPlaces && inStack {
		t.sites[stack] = int32(i)
	}
	return int32(i)
}
