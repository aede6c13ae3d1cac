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
	"unsafe"

	"github.com/chorale-go/chorale/internal/callsite"
	"github.com/chorale-go/chorale/internal/clock"
	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/trace"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
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

// A shapeKey tells the shapes of a rank apart.
type shapeKey struct {
	signature string
	ranks     string // of the communicator
}

// A tracedCall records the calls of one communicator, one at a time. It is the exchanger of
// a call that is recorded.
type tracedCall struct {
	job    *job
	tracer *tracer

	next     uint32 // the number after the last call that was recorded
	sequence uint32
	start    int64
	steps    []trace.Event
	at       int64            // when the last step ended
	learned  []trace.Exchange // the messages of the steps, if the call's shape is not known
	learns   bool

	op        exec.Op // of the call
	timedOp   exec.Op // which calls it
	combining combining
}

// A combining is how long operands of a step were combined. Pieces shorter than timedPiece
// count as many bytes, and are timed together with those that follow.
type combining struct {
	bytes, timed, since int   // combined, while timed, and since the last one that was timed
	time                int64 // in nanoseconds
}

// timedPiece is how many bytes are combined while the clock is read twice, at least.
const timedPiece = 16 << 10

// estimate returns how long all of the combining took.
func (c *combining) estimate() int64 {
	if c.timed == 0 {
		return 0
	}
	return int64(float64(c.time) * float64(c.bytes) / float64(c.timed))
}

// combine combines a piece.
func (t *tracedCall) combine(f func(into, held, incoming []byte), into, held, incoming []byte) {
	c := &t.combining
	c.bytes += len(into)
	if c.since += len(into); c.since < timedPiece {
		f(into, held, incoming)
		return
	}
	start := t.tracer.now()
	f(into, held, incoming)
	c.time += t.tracer.now() - start
	c.timed += len(into)
	c.since = 0
}

// trace begins to record a call, and returns nil if it is not to be.
func (c *Comm) trace(sequence uint32) *tracedCall {
	tr := c.job.tracer
	if tr == nil {
		return nil
	}
	t := c.traced
	if t == nil {
		t = &tracedCall{job: c.job, tracer: tr, next: sequence}
		t.timedOp = exec.Op{
			Left:  func(into, held, incoming []byte) { t.combine(t.op.Left, into, held, incoming) },
			Right: func(into, held, incoming []byte) { t.combine(t.op.Right, into, held, incoming) },
		}
		c.traced = t
	}
	number := sequence - c.identity.base
	if by := c.starter; by != nil {
		if !by.known { // it was to be left out when it was started
			return nil
		}
		number = by.number + sequence - c.first
	}
	if tr.leavesOut(number) {
		return nil
	}
	t.sequence, t.start, t.steps = sequence, tr.now(), t.steps[:0]
	t.at, t.combining = t.start, combining{}
	return t
}

// around returns what the plan of a call runs with so that its steps are recorded.
func (t *tracedCall) around(call *call, op exec.Op) (transport.Exchanger, exec.Op) {
	t.learns, t.learned = call.shape == 0, nil
	t.op = op
	if op.Left == nil {
		return t, op
	}
	return t, t.timedOp
}

func (t *tracedCall) Exchange(ctx context.Context, step transport.Step) error {
	if t.learns {
		t.learned = append(t.learned, t.job.exchangeOf(step))
	}
	err := t.job.endpoint.Exchange(ctx, step)
	now := t.tracer.now()
	if len(t.steps) < t.tracer.max {
		t.steps = append(t.steps, trace.Event{Kind: trace.Step, Start: t.at, End: now, Amount: t.combining.estimate()})
	}
	t.at, t.combining = now, combining{}
	return err
}

// exchangeOf returns the messages of a step.
func (j *job) exchangeOf(step transport.Step) (x trace.Exchange) {
	for _, s := range step.Sends {
		for _, to := range s.To {
			x.Sends = append(x.Sends, trace.Message{Peer: j.launchRank(to), Bytes: len(s.Data)})
		}
	}
	for _, r := range step.Recvs {
		x.Recvs = append(x.Recvs, trace.Message{Peer: j.launchRank(r.From), Bytes: len(r.Into)})
	}
	return x
}

// end records the call, with its error.
func (t *tracedCall) end(c *Comm, call *call, err error) {
	var stack callers
	if c.starter != nil {
		stack = c.starter.stack
	} else {
		stack = callersHere(2)
	}
	tr, now := t.tracer, t.tracer.now()
	tr.skipped.Add(int64(t.sequence - t.next))
	t.next, t.op = t.sequence+1, exec.Op{}

	tr.mu.Lock()
	defer tr.mu.Unlock()
	shape := call.shape
	if shape == 0 {
		shape = tr.shape(c, call, t.learned)
		if err == nil {
			call.shape = shape
		}
	}
	tr.pay(now, len(t.steps))
	tr.ring.Add(trace.Event{
		Kind: trace.Call, Failed: err != nil, Place: tr.place(stack), Shape: shape,
		Group: uint16(c.job.env.Group), Context: c.context, Sequence: t.sequence, Start: t.start, End: now,
	})
	for _, s := range t.steps {
		tr.ring.Add(s)
	}
}

// shape returns the index of the shape of a call that has these messages.
func (t *tracer) shape(c *Comm, call *call, steps []trace.Exchange) int32 {
	ranks := slices.Clone(c.job.ranksOf(&c.group)[:c.size])
	for i, rank := range ranks {
		ranks[i] = c.job.launchRank(rank)
	}
	key := shapeKey{call.signature, fmt.Sprint(ranks)}
	if i, known := t.index[key]; known && len(t.shapes[i].Steps) >= len(steps) {
		return i
	}
	ends := 0
	for _, x := range steps {
		ends += 1 + len(x.Sends) + len(x.Recvs)
	}
	if t.exchanged+ends > maxTracedMessages || len(t.shapes) == maxTracedShapes {
		return 0
	}
	t.exchanged += ends
	i := int32(len(t.shapes))
	k := &call.key
	t.shapes = append(t.shapes, trace.Shape{
		Collective: k.collective.String(), Algorithm: call.algorithm,
		Type: k.elem.String(), Size: int(k.elem.Size()), Count: k.count, Bytes: call.plan.Stats().Bytes,
		Uneven: k.uneven != 0, Root: k.root, P: c.size, Rank: c.rank, First: ranks[0], Steps: steps,
	})
	t.index[key] = i
	return i
}

// A stream is the messages between this rank and another one with one tag.
type stream struct {
	sent    bool
	peer    int32
	context uint64
	tag     int64
}

// A tracedEndpoint records tagged messages.
type tracedEndpoint struct {
	transport.Endpoint
	job *job
}

// startMessage returns when an operation on a message begins, and whether it is recorded.
func (t *tracer) startMessage() (start int64, recorded bool) {
	if n := t.messages.Add(1) - 1; t.leavesOut(n) {
		t.skipped.Add(1)
		t.unnumbered.Store(true)
		return 0, false
	}
	return t.now(), true
}

// message records an operation on a message. Its request is nil if it has none.
func (j *job) message(e trace.Event, r *transport.Request) {
	t := j.tracer
	e.End = t.now()
	e.Group, e.Peer = uint16(j.env.Group), int32(j.launchRank(int(e.Peer)))
	stack := callersHere(2)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pay(e.End, 0)
	e.Place = t.place(stack)
	e.Number = t.number(e, r)
	t.ring.Add(e)
}

// number returns the number of a message in its stream, or 0 if it is not known: messages
// were left out, one may come from any rank or have any tag, or one has failed.
func (t *tracer) number(e trace.Event, r *transport.Request) int64 {
	key := uintptr(unsafe.Pointer(r)) // which keeps nothing alive
	s := stream{e.Kind == trace.Send || e.Kind == trace.StartSend, e.Peer, e.Communicator(), e.Tag}
	switch {
	case t.unnumbered.Load():
		return 0
	case e.Kind == trace.Wait:
		n := t.posted[key]
		delete(t.posted, key)
		return n
	case e.Failed && r == nil:
		return 0
	case e.Peer < 0 || e.Tag < 0 || e.Failed || len(t.streams) == maxStreams || len(t.posted) == maxStreams:
		t.unnumbered.Store(true)
		return 0
	}
	t.streams[s]++
	n := t.streams[s]
	if e.Kind == trace.StartRecv {
		t.posted[key] = n
		return 0
	}
	return n
}

func (e *tracedEndpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	start, recorded := e.job.tracer.startMessage()
	err := e.Endpoint.Send(ctx, to, m, typeName, data)
	if recorded {
		e.job.message(newMessage(trace.Send, start, to, m, len(data), err), nil)
	}
	return err
}

func (e *tracedEndpoint) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	start, recorded := e.job.tracer.startMessage()
	info, err := e.Endpoint.Recv(ctx, from, m, typeName, into)
	if recorded {
		if err == nil {
			from, m.Tag = info.From, info.Tag
		}
		e.job.message(newMessage(trace.Recv, start, from, m, info.Size, err), nil)
	}
	return info, err
}

func (e *tracedEndpoint) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	start, recorded := e.job.tracer.startMessage()
	e.Endpoint.StartSend(ctx, r, to, m, typeName, data)
	if recorded {
		e.job.message(newMessage(trace.StartSend, start, to, m, len(data), nil), r)
	}
}

func (e *tracedEndpoint) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	start, recorded := e.job.tracer.startMessage()
	e.Endpoint.StartRecv(ctx, r, from, m, typeName, into)
	if recorded {
		e.job.message(newMessage(trace.StartRecv, start, from, m, len(into), nil), r)
	}
}

func (e *tracedEndpoint) Wait(r *transport.Request) {
	start, recorded := e.job.tracer.startMessage()
	e.Endpoint.Wait(r)
	if !recorded {
		return
	}
	from, m := transport.Any, transport.Match{}
	if r.Info.Type != "" { // it is a receive
		from, m.Tag = r.Info.From, r.Info.Tag
	}
	e.job.message(newMessage(trace.Wait, start, from, m, r.Info.Size, r.Err), r)
}

func newMessage(kind trace.Kind, start int64, peer int, m transport.Match, bytes int, err error) trace.Event {
	return trace.Event{
		Kind: kind, Failed: err != nil, Start: start, Peer: int32(peer), Context: m.Context, Tag: int64(m.Tag), Amount: int64(bytes),
	}
}
