package stall

import (
	"slices"
	"sync"
	"time"

	"github.com/chorale-go/chorale/internal/deadlock"
	"github.com/chorale-go/chorale/transport"
)

// A Watch looks at an endpoint three times within the patience, and tells what has
// lasted from one look to the next.
type Watch struct {
	before   []transport.Stall
	reported bool
}

// Look takes what waits at the endpoint now. It returns what has been waiting since
// the last look, and whether that is to be reported: it is while something waits, and
// once more when it does not any longer.
func (w *Watch) Look(now []transport.Stall) (stalls []transport.Stall, report bool) {
	for _, s := range now {
		if slices.ContainsFunc(w.before, func(b transport.Stall) bool { return same(b, s) }) {
			stalls = append(stalls, s)
		}
	}
	report = len(stalls) > 0 || w.reported
	w.before, w.reported = now, len(stalls) > 0
	stalls = stalls[:min(len(stalls), deadlock.MaxStalls)]
	return deadlock.Shorten(stalls), report
}

// A Tracker is told what has lasted at each rank, three times within the patience, and
// says when a report is due: when something has lasted for as long as the patience, unless
// it was there at the last report. Its methods may be called concurrently.
type Tracker struct {
	patience time.Duration

	mu    sync.Mutex
	ranks [][]lasting
	said  [][]transport.Stall // of each rank, in the last report
}

// A lasting is a wait that has lasted.
type lasting struct {
	transport.Stall
	since    time.Time
	reported bool
}

// NewTracker returns a tracker for a job of so many ranks.
func NewTracker(size int, patience time.Duration) *Tracker {
	return &Tracker{patience: patience, ranks: make([][]lasting, size), said: make([][]transport.Stall, size)}
}

// Record takes what has lasted at a rank, and reports whether a report is due. Then all
// that has lasted counts as reported.
func (t *Tracker) Record(rank int, stalls []transport.Stall) (due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	before := t.ranks[rank]
	t.ranks[rank] = nil
	for _, s := range stalls {
		l := lasting{Stall: s, since: now.Add(-t.patience / 3)}
		if i := slices.IndexFunc(before, func(b lasting) bool { return same(b.Stall, s) }); i >= 0 {
			l = before[i]
		}
		// Another rank's wait may have been due while this one was recorded.
		l.reported = l.reported || slices.ContainsFunc(t.said[rank], func(said transport.Stall) bool { return same(said, s) })
		// A look may come a little early.
		due = due || !l.reported && now.Sub(l.since) >= t.patience-t.patience/8
		t.ranks[rank] = append(t.ranks[rank], l)
	}
	if due {
		for _, r := range t.ranks {
			for i := range r {
				r[i].reported = true
			}
		}
	}
	return due
}

// Cover notes what a report has said of a rank: it is not to be reported again.
func (t *Tracker) Cover(rank int, waits []Wait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said[rank] = nil
	for i := range waits {
		t.said[rank] = append(t.said[rank], waits[i].stall())
	}
}
