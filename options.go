package chorale

import "github.com/chorale-go/chorale/sched"

// An Option changes how a collective is done, never what it means. All ranks
// must give the same ones, but for WithStats.
type Option struct {
	algorithm string
	schedule  *sched.Schedule
	stats     *Stats
}

// WithAlgorithm chooses an algorithm by name, with its parameters if it has
// any: "ring", "binomial,order=ascending". The command chorale list shows them.
// One that does not fit the call is an error; no other is run in its place.
func WithAlgorithm(name string) Option { return Option{algorithm: name} }

// WithSchedule carries out a schedule of the caller's own. It must be for this
// collective, number of ranks and root. The first call with it checks it, on
// every rank: see [sched.Schedule.Check].
func WithSchedule(s *sched.Schedule) Option { return Option{schedule: s} }

// WithStats says in s what the call took on this rank.
func WithStats(s *Stats) Option { return Option{stats: s} }

// Stats is what a call took on one rank.
type Stats struct {
	Algorithm string // what was run
	Steps     int    // steps with a message
	Messages  int    // messages sent
	Bytes     int    // bytes sent
}

// choices is what all options of a call come to. The last of a kind counts.
func choices(options []Option) (all Option) {
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
