package chorale

import (
	"cmp"
	"math/bits"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/callsite"
	"github.com/chorale-go/chorale/internal/profile"
)

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
		at.stack = callersHere(4)
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
