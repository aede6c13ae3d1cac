package chorale

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/callsite"
	"github.com/chorale-go/chorale/internal/profile"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
)

// A Profile says where the ranks of a job have spent their time: for every source line that
// calls a collective, or sends or receives tagged messages, how often and how long, how much
// of that was waiting for ranks that came later, and how even the ranks are. [RunProfile]
// fills it in. A program that is started by chorale run --profile, or with CHORALE_PROFILE
// set, needs none.
//
// Waiting is the part of a call before the last rank of its communicator had begun the
// same call. The rest is moving and combining. In a broadcast, and other calls that do not
// need all ranks, it is an upper bound of what was lost by late ranks.
//
// The first 64 calls of a communicator are timed, then about 16 of every doubling of their
// number, but at least one of 1024, and all that follow a call of 40 µs or more; a timed
// call stands for those before it that were not. So it is with the tagged messages of about
// one size. Calls that fail are not counted. A nonblocking or persistent call has the line
// that starts it.
type Profile struct{ records []profile.Record }

// WriteText writes the profile as a table of at most 80 columns. The lines that take the
// longest come first.
func (p *Profile) WriteText(w io.Writer) error {
	report := profile.Join(p.records)
	return report.WriteText(w)
}

// WriteJSON writes the profile as one line of JSON; docs/json.md has its shape.
func (p *Profile) WriteJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(profile.Join(p.records))
}

// RunProfile is [Run], and fills in p, also if a rank fails. Nobody else may use p
// meanwhile.
func RunProfile(ctx context.Context, n int, f Func, p *Profile) error {
	return run(ctx, n, f, recording{profile: p})
}

// newRecorders returns a recorder for each of n ranks, or as many nil ones if there is
// neither a profile nor metrics.
func (r *recording) newRecorders(n int) []*recorder {
	all := make([]*recorder, n)
	if r.profile == nil && !r.metrics {
		return all
	}
	waits := profile.NewWaits()
	for rank := range all {
		all[rank] = newRecorder()
		if r.metrics {
			all[rank].metrics = &liveMetrics{rank: rank, waits: waits, inSecond: map[string]int{}}
		}
	}
	return all
}

// fill fills in the records of a job that is over. P may be nil.
func (p *Profile) fill(recorders []*recorder) {
	if p == nil {
		return
	}
	p.records = nil
	for rank, r := range recorders {
		p.records = append(p.records, r.finished(rank, len(recorders)))
	}
}

// environmentRecorder returns the recorder of a rank that is a process, if the environment
// asks for a profile or for metrics, or nil.
func environmentRecorder() *recorder {
	target := metricsTarget()
	if os.Getenv(profile.Variable) == "" && target == "" {
		return nil
	}
	r := newRecorder()
	if target != "" {
		r.metrics = &liveMetrics{told: target == profile.Sent, inSecond: map[string]int{}}
	}
	return r
}

// runRecorded is runTraced, and leaves the records and the sums of the ranks in files if the
// environment asks for them.
func runRecorded(ctx context.Context, n int, policy stallPolicy, f Func) error {
	r := recording{metrics: metricsTarget() != ""}
	if target := metricsTarget(); filepath.IsAbs(target) {
		r.sums = target
	}
	name := os.Getenv(profile.Variable)
	if name == "" || name == profile.Sent {
		return runTraced(ctx, n, policy, f, r)
	}
	r.profile = new(Profile)
	err := runTraced(ctx, n, policy, f, r)
	for _, record := range r.profile.records {
		err = errors.Join(err, writeRecord(name, record))
	}
	return err
}

// handOnRecord hands on the record of this rank at the end of its part: to the launcher, or
// to the file that the environment names.
func (c *Comm) handOnRecord(env launch.JobEnv) {
	name := os.Getenv(profile.Variable)
	if name == "" {
		return
	}
	record := c.job.recorder.finished(c.job.place())
	if name == profile.Sent {
		if env.ReportProfile != nil {
			env.ReportProfile(record.Encode())
		}
		return
	}
	if err := writeRecord(name, record); err != nil {
		fmt.Fprintln(os.Stderr, "chorale: no profile:", err)
	}
}

const (
	// maxRows is how many lines of a program a rank tells apart. The rest are one.
	maxRows = 256
	// maxSamples is how many timed calls a rank remembers when each came, to find out who
	// waited.
	maxSamples = 1 << 13
	// timedCalls is how many calls of a communicator are timed before some are left out.
	// Of each doubling after that, about timedDoubling are, and one of leastTimed at least.
	// All are powers of two. A timed call takes some microseconds longer, so that of 100,000
	// calls of 1 µs it is about a hundredth.
	timedCalls    = 1 << 6
	timedDoubling = 1 << 4
	leastTimed    = 1 << 10
	// slowCall is how long a call takes after which the next one of its communicator is
	// timed in any case: that takes less than a fiftieth of it.
	slowCall = 40 * time.Microsecond
)

// A recorder records where one rank spends its time. Its methods may be called
// concurrently.
type recorder struct {
	begin    time.Time
	stats    Stats                                  // what calls without WithStats have instead; never written
	messages [messageKinds][bits.UintSize + 1]tally // by the length of the number of bytes

	mu       sync.Mutex
	rows     []profile.Row
	samples  []profile.Sample
	sites    map[site]int // the row of each that was seen
	index    map[profile.Place]int
	tallies  []*tally             // of collectives
	failures map[string]int64     // by call
	metrics  *liveMetrics         // nil where no metrics are asked for
	world    atomic.Pointer[Comm] // of all ranks
	started  map[uintptr]bool     // the code of functions whose starter is known
}

// callers are the innermost return addresses on a stack. Between a call's beginning in the
// library and the program there are seldom more.
type callers [5]uintptr

// callersHere returns the callers of its caller, without so many of the innermost.
func callersHere(skip int) (stack callers) {
	runtime.Callers(2+skip, stack[:])
	return stack
}

// A starter is the line that has started a nonblocking or persistent call. Of most calls it
// is not known, because finding it takes as long as a short call. They are counted.
type starter struct {
	stack  callers
	known  bool
	agreed bool   // all ranks know theirs, for a profile
	number uint32 // of the call, for a timeline
}

var unknownStarter starter

// newStarter returns the starter of a call that the caller of its caller starts, by the
// call's number. A function that is new was not started before.
func (c *Comm) newStarter(number uint32, isNew bool) *starter {
	r, t := c.job.recorder, c.job.tracer
	agreed := r != nil && timed(number)
	profiled := agreed || isNew || c.identity.slow.Load() || c.identity.unplaced.Load()
	if !profiled && (t == nil || t.leavesOut(number)) {
		return &unknownStarter
	}
	c.identity.unplaced.Store(false)
	return &starter{callersHere(2), true, agreed, number}
}

// isNew reports whether a function was not started before, on any communicator of this rank.
// Without a recorder, nobody wants to know.
func (s *nonblockingCalls) isNew(r *recorder, f Func) bool {
	if r == nil {
		return false
	}
	code := reflect.ValueOf(f).Pointer()
	if code == s.code {
		return false
	}
	s.code = code
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started[code] || len(r.started) >= maxRows {
		return false
	}
	r.started[code] = true
	return true
}

// begun notes who has started the nonblocking or persistent call that begins.
func (c *Comm) begun(by *starter) { c.starter, c.first = by, c.sequence }

// A site is where a call was seen. Different sites may be on one line.
type site struct {
	stack callers
	call  string
}

// A tally counts calls that have succeeded, of one compiled call, or messages of about one
// size.
type tally struct {
	call  string // the name
	how   string // the command that explains it; "" if there is none
	calls atomic.Int64
	slow  atomic.Bool // the last message that was timed was slow

	// Of the last call that was timed. The recorder's mutex guards them.
	told  int64 // calls until then
	row   int
	bytes int64 // that it has sent
	time  time.Duration

	_ [56]byte // the tallies of two ranks share no cache line, nor a pair of them
}

func newRecorder() *recorder {
	r := &recorder{begin: time.Now(), sites: map[site]int{}, index: map[profile.Place]int{}, started: map[uintptr]bool{}}
	for kind := range r.messages {
		for size := range r.messages[kind] {
			r.messages[kind][size].call = kindNames[kind]
		}
	}
	return r
}

// timed reports whether a call is timed, by its number.
func timed(number uint32) bool {
	if number < timedCalls {
		return true
	}
	// One in so many, by a hash: calls that take turns all have a share.
	return hash(number)&(min(everyOf(number), leastTimed)-1) == 0
}

// everyOf returns in which part of a doubling one call is timed.
func everyOf(number uint32) uint32 { return 1 << (bits.Len32(number/timedDoubling) - 1) }

func hash(number uint32) uint32 { return number * 0x9e3779b1 >> 7 }

// timed reports whether a call is timed, by its number.
func (c *Comm) timed(sequence uint32) bool {
	if by := c.starter; by != nil {
		return by.known && timed(sequence-c.first)
	}
	return timed(sequence - c.identity.base)
}

// sampled reports whether a timed call is remembered, by its number. All ranks remember the
// same ones, and there is room for about as many of every doubling of their number.
func (c *Comm) sampled(sequence uint32) bool {
	number := sequence - c.identity.base
	if by := c.starter; by != nil {
		if !by.agreed {
			return false
		}
		number = sequence - c.first
	}
	return number < timedCalls || hash(number)&(everyOf(number)-1) == 0
}

// isTimed reports whether a call is timed that has these statistics.
func (c *Comm) isTimed(stats *Stats, sequence uint32) bool {
	return stats != c.stats || c.job.recorder != nil && (c.identity.slow.Load() || c.timed(sequence))
}

// count counts a call that has succeeded and was not timed.
func (c *Comm) count(call *call) {
	if call.tally == nil { // those that were timed have failed
		call.tally = c.newTally(call)
	}
	call.tally.calls.Add(1)
}

// finish fills in the statistics of a timed call that has succeeded, for the caller and for
// the profile.
func (c *Comm) finish(call *call, stats *Stats, sequence uint32, start time.Time) {
	elapsed := time.Since(start)
	if stats != c.stats {
		s := call.plan.Stats()
		*stats = Stats{call.algorithm, s.Steps, s.Messages, s.Bytes, elapsed}
	}
	if c.job.recorder == nil {
		return
	}
	c.count(call)
	if c.starter != nil && !c.starter.known {
		return
	}
	if slow := elapsed >= slowCall; slow != c.identity.slow.Load() {
		c.identity.slow.Store(slow)
	}
	c.job.recorder.record(c, call, sequence, start, elapsed)
}

func (c *Comm) newTally(call *call) *tally {
	if c.starter != nil && !c.starter.known {
		c.identity.unplaced.Store(true)
	}
	r := c.job.recorder
	t := &tally{call: call.key.collective.String(), how: c.explaining(call), bytes: int64(call.plan.Stats().Bytes)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tallies = append(r.tallies, t)
	return t
}

// record records a timed call, and those of the same key before it that were not.
func (r *recorder) record(c *Comm, call *call, sequence uint32, start time.Time, elapsed time.Duration) {
	at := site{call: call.tally.call}
	if c.starter != nil {
		at.stack = c.starter.stack
	} else {
		at.stack = callersHere(3)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := call.tally
	t.row, t.time = r.row(at), elapsed
	r.rows[t.row].Algorithm, r.rows[t.row].Explain = call.algorithm, t.how
	r.tell(t)
	sample := profile.Sample{
		Context: c.contextOfJob(), Sequence: sequence, Row: t.row, Arrival: start.UnixNano(), Time: elapsed.Seconds(),
		Members: c.size, First: c.job.launchRank(c.jobRank(0)),
	}
	if len(r.samples) < maxSamples && c.sampled(sequence) {
		r.samples = append(r.samples, sample)
	}
	r.recent(t.call, sample)
}

// tell adds the calls that no row has yet, as if they were like the last one that was
// timed.
func (r *recorder) tell(t *tally) {
	calls := t.calls.Load() - t.told
	t.told += calls
	row := &r.rows[t.row]
	row.Calls += calls
	row.Bytes += calls * t.bytes
	row.Time += float64(calls) * t.time.Seconds()
}

// row returns the row of a call that was seen somewhere, a new one if there is room.
func (r *recorder) row(at site) int {
	if i, known := r.sites[at]; known {
		return i
	}
	key := profile.Place{Call: at.call}
	key.File, key.Line = callsite.Of(at.stack[:])
	inStack := key.File != ""
	if !inStack { // deep in the library
		key.File, key.Line = callsite.Find(1)
		key.File = cmp.Or(key.File, "unknown")
	}
	if _, known := r.index[key]; !known && len(r.rows) >= maxRows {
		key.File, key.Line = "", 0
	}
	i := r.rowOf(key)
	if len(r.sites) < 16*maxRows && inStack {
		r.sites[at] = i
	}
	return i
}

// rowOf returns the row of a place.
func (r *recorder) rowOf(p profile.Place) int {
	i, known := r.index[p]
	if !known {
		i = len(r.rows)
		r.index[p] = i
		r.rows = append(r.rows, profile.Row{Place: p})
	}
	return i
}

// finished returns the record at the end of the rank's part.
func (r *recorder) finished(rank, size int) profile.Record {
	host, _ := os.Hostname() // "" if it is not known
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tellAll()
	return profile.Record{
		Rank: rank, Size: size, Host: host, Elapsed: time.Since(r.begin).Seconds(),
		Rows: slices.Clone(r.rows), Samples: slices.Clone(r.samples),
	}
}

// tellAll tells all calls so far.
func (r *recorder) tellAll() {
	for _, t := range r.tallies {
		r.tellRest(t)
	}
	for kind := range r.messages {
		for size := range r.messages[kind] {
			r.tellRest(&r.messages[kind][size])
		}
	}
}

// fail counts a call that has failed.
func (r *recorder) fail(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures == nil {
		r.failures = map[string]int64{}
	}
	r.failures[call]++
}

// tellRest tells the calls since the last one that was timed. If none was, their line is
// not known.
func (r *recorder) tellRest(t *tally) {
	if t.calls.Load() == t.told {
		return
	}
	if t.told == 0 {
		t.row = r.rowOf(profile.Place{Call: t.call})
	}
	r.tell(t)
}

// The kinds of operations on tagged messages.
const (
	sendKind = iota
	recvKind
	startSendKind
	startRecvKind
	waitKind
	messageKinds
)

var kindNames = [messageKinds]string{"send", "recv", "start send", "start recv", "wait"}

// A profiledEndpoint records tagged messages.
type profiledEndpoint struct {
	transport.Endpoint
	recorder *recorder
}

// begin returns what counts an operation on a tagged message of about so many bytes, and
// its beginning if it is timed.
func (e *profiledEndpoint) begin(kind, bytes int) (t *tally, timed bool, start time.Time) {
	t = &e.recorder.messages[kind][bits.Len(uint(bytes))]
	if !t.isTimed() {
		return t, false, start
	}
	return t, true, time.Now()
}

// isTimed reports whether the next message is timed.
func (t *tally) isTimed() bool { return t.slow.Load() || timed(uint32(t.calls.Load())) }

// end counts an operation that has succeeded and has moved so many bytes. The program has
// called the caller of its caller.
func (e *profiledEndpoint) end(t *tally, bytes int, timed bool, start time.Time) {
	t.calls.Add(1)
	if !timed {
		return
	}
	elapsed := time.Since(start)
	if slow := elapsed >= slowCall; slow != t.slow.Load() {
		t.slow.Store(slow)
	}
	r, at := e.recorder, site{callersHere(2), t.call}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.row, t.time, t.bytes = r.row(at), elapsed, int64(bytes)
	r.tell(t)
}

func (e *profiledEndpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	t, timed, start := e.begin(sendKind, len(data))
	err := e.Endpoint.Send(ctx, to, m, typeName, data)
	if err == nil {
		e.end(t, len(data), timed, start)
	}
	return err
}

func (e *profiledEndpoint) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	t, timed, start := e.begin(recvKind, len(into))
	info, err := e.Endpoint.Recv(ctx, from, m, typeName, into)
	if err == nil {
		e.end(t, info.Size, timed, start)
	}
	return info, err
}

func (e *profiledEndpoint) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	t, timed, start := e.begin(startSendKind, len(data))
	e.Endpoint.StartSend(ctx, r, to, m, typeName, data)
	e.end(t, len(data), timed, start)
}

func (e *profiledEndpoint) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	t, timed, start := e.begin(startRecvKind, len(into))
	e.Endpoint.StartRecv(ctx, r, from, m, typeName, into)
	e.end(t, received(r), timed, start)
}

func (e *profiledEndpoint) Wait(r *transport.Request) {
	t, timed, start := e.begin(waitKind, 0)
	e.Endpoint.Wait(r)
	e.end(t, received(r), timed, start)
}

// received returns the bytes of a receive that is done, else 0.
func received(r *transport.Request) int {
	if !r.Done() || r.Err != nil {
		return 0
	}
	return r.Info.Size
}

// writeRecord writes the record of a rank to a file of its own.
func writeRecord(name string, record profile.Record) error {
	return os.WriteFile(name+"."+strconv.Itoa(record.Rank), record.Encode(), 0o666)
}
