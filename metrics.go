package chorale

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/chorale-go/chorale/internal/profile"
	"github.com/chorale-go/chorale/launch"
)

// Metrics are sums over the calls of one rank, on all its communicators, since it joined the
// job. They only grow. chorale run --metrics serves the same numbers of all ranks.
type Metrics struct {
	// Since is when the sums began. It is zero if nothing is recorded.
	Since time.Time
	// Collectives has the sums of each collective, by name, as in "allreduce". Messages has
	// those of tagged messages: of "send" and "recv", and of nonblocking ones "start send",
	// "start recv" and "wait".
	Collectives, Messages map[string]CallMetrics
	// Failures is how many calls have returned an error, by the name of the call.
	Failures map[string]int64
	// Held is [Comm.Held].
	Held Held
}

// CallMetrics are sums over calls that have succeeded. Calls are exact; of the times, and of
// the bytes of messages, some calls are timed, as for a [Profile], and stand for the others.
type CallMetrics struct {
	Calls int64
	Bytes int64 // that the rank has sent; of a receive, that it has received
	Time  time.Duration
	// Waiting is the part of Time before the last rank had begun the same call. It is -1
	// where that is not known: for tagged messages, and where ranks are processes, of whose
	// times their launcher alone knows.
	Waiting time.Duration
}

// Metrics returns what this rank has spent in calls until now. They are recorded where
// CHORALE_METRICS=1 was in the environment, or set by [os.Setenv], when the rank joined: by
// [Main], [Join], [Run] or [NewComm]; and where there is a [Profile]. Elsewhere, calls take
// no time for it, and Metrics has only Held.
//
// Metrics may be called at any time, by any goroutine. It takes some microseconds.
func (c *Comm) Metrics() Metrics {
	m := Metrics{
		Collectives: map[string]CallMetrics{}, Messages: map[string]CallMetrics{}, Failures: map[string]int64{},
		Held: c.Held(),
	}
	if c == nil || c.job.recorder == nil {
		return m
	}
	r := c.job.recorder
	t := r.totals()
	m.Since, m.Failures = r.begin, t.Failures
	for _, s := range t.Calls {
		sums := CallMetrics{Calls: s.Calls, Bytes: s.Bytes, Time: duration(s.Time), Waiting: -1}
		if s.Waiting != nil {
			sums.Waiting = duration(*s.Waiting)
		}
		if s.Message {
			m.Messages[s.Call] = sums
		} else {
			m.Collectives[s.Call] = sums
		}
	}
	return m
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * 1e9) }

// metricsTarget returns what the environment says of metrics; "" if nothing.
func metricsTarget() string { return os.Getenv(profile.MetricsVariable) }

// reportInterval is how often the launcher is told of the sums.
const reportInterval = time.Second

// timedOfKind is how many timed calls of a collective are kept in a second.
const timedOfKind = 8

// recent keeps a timed call for the waiting in metrics, if it is one of the first of its
// collective in its second of Unix time. So all ranks keep about the same calls, and a slow program all of
// them.
func (r *recorder) recent(name string, s profile.Sample) {
	if r.metrics == nil {
		return
	}
	m := r.metrics
	if second := s.Arrival / int64(time.Second); second != m.second {
		m.second = second
		clear(m.inSecond)
	}
	if m.inSecond[name]++; m.inSecond[name] > timedOfKind {
		return
	}
	timed := profile.TimedCall{Call: name, Sample: s}
	if m.waits != nil {
		m.waits.Add(m.rank, timed)
	} else if m.told && len(m.timed) < profile.MaxTimed {
		m.timed = append(m.timed, timed)
	}
}

// liveMetrics are what a recorder has beside a profile where metrics are asked for.
type liveMetrics struct {
	rank  int
	waits *profile.Waits // of all ranks of this process; nil where they are processes
	told  bool           // to the launcher, which has the waits then

	second   int64
	inSecond map[string]int      // timed calls, by collective
	timed    []profile.TimedCall // since the last report
}

// totals returns the sums until now.
func (r *recorder) totals() profile.Totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tellAll()
	sums := map[string]profile.CallTotals{}
	for _, row := range r.rows {
		s := sums[row.Call]
		s.Call, s.Message = row.Call, slices.Contains(kindNames[:], row.Call)
		s.Calls, s.Bytes, s.Time = s.Calls+row.Calls, s.Bytes+row.Bytes, s.Time+row.Time
		sums[row.Call] = s
	}
	t := profile.Totals{Failures: maps.Clone(r.failures)}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		if m := r.metrics; m != nil && m.waits != nil && !s.Message {
			waiting := m.waits.Sum(m.rank, name, s.Time)
			s.Waiting = &waiting
		}
		t.Calls = append(t.Calls, s)
	}
	return t
}

// report returns the totals of the rank that c belongs to, for the launcher. C is the
// communicator of all ranks.
func (c *Comm) report() []byte {
	r := c.job.recorder
	t := r.totals()
	r.mu.Lock()
	t.Timed, r.metrics.timed = r.metrics.timed, nil
	r.mu.Unlock()
	t.Rank, t.Size = c.rank, c.size
	t.Host, _ = os.Hostname() // "" if it is not known
	held := c.Held()
	t.Held = map[string]int{
		"programs": held.Programs, "scratch": held.Memory, "unexpected": held.Endpoint.Unexpected,
		"tagged": held.Endpoint.Tagged, "unsent": held.Endpoint.Unsent, "allocated": held.Endpoint.Allocated,
	}
	text, _ := json.Marshal(t) // it has numbers and strings alone
	return text
}

// every calls f after each interval until the result is called, which calls it once more.
func every(interval time.Duration, f func()) (stop func()) {
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				f()
			case <-quit:
				f()
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-over
	}
}

// reportMetrics tells the launcher the sums of this rank until the result is called.
func (c *Comm) reportMetrics(env launch.JobEnv) (stop func()) {
	if metricsTarget() != profile.Sent || env.ReportMetrics == nil {
		return func() {}
	}
	return every(reportInterval, func() { env.ReportMetrics(c.report()) })
}

// writeMetrics leaves the sums of ranks in a file, a line for each, until the result is
// called.
func writeMetrics(name string, recorders []*recorder) (stop func()) {
	return every(reportInterval, func() {
		var text []byte
		for _, r := range recorders {
			if c := r.world.Load(); c != nil { // it has begun
				text = append(append(text, c.report()...), '\n')
			}
		}
		if os.WriteFile(name+".new", text, 0o600) == nil {
			_ = os.Rename(name+".new", name) // a reader sees all of it, or the one before
		}
	})
}
