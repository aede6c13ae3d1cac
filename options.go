package chorale

import (
	"time"

	"github.com/chorale-go/chorale/sched"
)

// An Option changes how a collective is done, never its result's meaning. All ranks
// give the same options, except for WithStats. Of two options of a kind, the last
// one counts.
type Option struct {
	algorithm string
	schedule  *sched.Schedule
	stats     *Stats
}

// WithAlgorithm chooses an algorithm by name, with its parameters if it has any:
// "ring", "binomial,order=ascending". [Algorithms] and the command chorale list
// list them, and algo.Register adds one of the caller's own. A name with a dot or a path
// separator in it, as "mine.txt", is that of a file with a schedule; every rank reads and
// checks it whenever it compiles a call. An algorithm that does not fit the call is an
// ErrArgument; no other is run in its place.
func WithAlgorithm(name string) Option { return Option{algorithm: name} }

// WithSchedule executes a schedule of the caller's own. It must be for this
// collective, number of ranks and root; for Shift, the root is the distance, from 0
// to Size−1. The first call with a schedule checks it, on every rank: see
// [sched.Schedule.Check]. A schedule that is wrong or does not fit is an
// ErrArgument.
func WithSchedule(s *sched.Schedule) Option { return Option{schedule: s} }

// WithStats writes to s what the call took on this rank. A call that fails leaves s
// as it was.
func WithStats(s *Stats) Option { return Option{stats: s} }

// Stats is what a call took on one rank.
type Stats struct {
	Algorithm string // that was run: a name, and parameters that differ from the defaults
	Steps     int    // steps with a message
	Messages  int    // messages sent
	Bytes     int    // bytes sent
	// Time is how long the call took, waiting for other ranks included, and compiling it the
	// first time.
	Time time.Duration
}

// mergeOptions returns all options of a call in one. The last of a kind counts.
func (c *Comm) mergeOptions(options []Option) (all Option) {
	all.stats = c.stats
	for _, o := range options {
		if o.algorithm != "" {
			all.algorithm = o.algorithm
		}
		if o.schedule != nil {
			all.schedule = o.schedule
		}
		if o.stats != nil {
			all.stats = o.stats
		}
	}
	return all
}
