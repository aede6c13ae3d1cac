package shm

import (
	"time"

	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	// A rank that waits spins if it has a core of its own, for longer than a message
	// takes. Then it yields between polls, so that other processes have the core, until
	// yieldTime. Then it sleeps. Where ranks are oversubscribed, the rank that it waits
	// for may be waiting for this one's core. The limits are in polls of one ring.
	spinLimit               = 3000
	spinLimitOversubscribed = 20
	yieldTime               = 300 * time.Microsecond

	// If the message arrives within the first yields, twice in repeatedWithin waits, the
	// peer shares this rank's core, whatever other cores there are: the rank uses the
	// oversubscribed spin limit for the next shortWaits waits. Once may be a peer that was
	// interrupted, by its garbage collector for one.
	firstYields    = 3
	repeatedWithin = 4
	shortWaits     = 200

	// On the fast path, an oversubscribed rank polls so often before it yields: as long as a
	// message takes from another core, and less than a switch to another process, which
	// takes a microsecond and more. It yields at once if other ranks need its core: those
	// to which it has sent since it last yielded, or the one for which it waits. After so
	// many yields it leaves the waiting to the progress owner.
	//
	// Measured in November 2026 on two cores, by chorale bench -n 4,8 --sizes 8, in µs, where
	// an operation polled 20 times before each yield, and so: allreduce 5.7 and 4.4, 20.6 and
	// 12.6; gather 4.2 and 2.2, 7.6 and 5.8.
	fastPollsOversubscribed = 20
	fastYields              = yieldsPerCheck

	// yieldsPerMigration is after how many yields an oversubscribed rank looks with how
	// many it shares its core.
	yieldsPerMigration = 100
	// migrationInterval is how soon a rank that has moved to another core may do so
	// again.
	migrationInterval = 20 * time.Millisecond
)

// A waitPolicy says how this rank waits.
type waitPolicy struct {
	progress.Processors
	stallTimeout time.Duration
	waits        int  // so far
	suspected    int  // the number of the last wait that ended within the first yields
	shortWaits   int  // waits to come that use the oversubscribed spin limit
	yields       int  // so far
	sent         bool // a step's message since this rank last yielded on the fast path
	migrated     time.Time
}

// A backoff is one wait of the progress owner, from one thing that moves to the next.
type backoff struct {
	polls     int  // of rings
	limit     int  // of polls, before the rank yields
	dedicated bool // the limit is that of a rank with a core of its own
	yields    int
	since     time.Time // when the rank first looked at the clock, after some yields
	slept     bool      // and nothing has moved since
	nextCheck time.Time // when to check for stalls
}

func (p *waitPolicy) begin() backoff {
	p.waits++
	if p.Oversubscribed || p.shortWaits > 0 {
		p.shortWaits--
		return backoff{limit: spinLimitOversubscribed}
	}
	return backoff{limit: spinLimit, dedicated: true}
}

// progressed begins the wait anew, since something has moved. It reports whether that came
// within the first yields of a rank that should have a core of its own.
func (b *backoff) progressed() (sharesCore bool) {
	if b.dedicated && 0 < b.yields && b.yields <= firstYields {
		b.limit, b.dedicated = spinLimitOversubscribed, false
		sharesCore = true
	}
	b.polls, b.yields, b.since, b.slept = 0, 0, time.Time{}, false
	return sharesCore
}

// mayYield reports whether to yield once more.
func (b *backoff) mayYield(spins bool) bool {
	if b.yields++; b.yields > 1 && !spins {
		return false // the goroutines that wait for this thread have had it
	}
	if b.yields%yieldsPerCheck != 0 {
		return true
	}
	now := time.Now()
	if b.since.IsZero() {
		b.since = now
	}
	return now.Sub(b.since) < yieldTime
}

// noteSharedCore notes that a peer seems to share this rank's core.
func (p *waitPolicy) noteSharedCore(e *Endpoint) {
	repeated := p.suspected > 0 && p.waits-p.suspected <= repeatedWithin
	if p.suspected = p.waits; !repeated {
		return
	}
	p.shortWaits = shortWaits
	p.migrate(e)
}

// fastPolls returns how often the fast path polls for a message of the peer before it
// yields, or leaves the waiting to the progress owner.
func (l *link) fastPolls() int {
	p := &l.e.wait
	switch {
	case !p.MaySpin():
		return 1
	case !p.Oversubscribed:
		return fastPolls
	case p.sent || l.sharesCore():
		return 1
	}
	return fastPollsOversubscribed
}

// sharesCore reports whether the peer was on this rank's core when both last looked.
func (l *link) sharesCore() bool {
	core := l.e.state.core.Load()
	return core != 0 && core == l.state.core.Load()
}

// fastYield yields on the fast path, if this rank may: other goroutines that want the lock
// have to wait meanwhile.
func (e *Endpoint) fastYield() bool {
	if !e.wait.Oversubscribed || !e.wait.MaySpin() || e.engine.Entering.Load() > 0 {
		return false
	}
	e.wakePeers()
	yield()
	e.wait.sent = false
	e.wait.yielded(e)
	return true
}

// yielded notes that the rank has yielded.
func (p *waitPolicy) yielded(e *Endpoint) {
	if p.yields++; p.Oversubscribed && p.yields%yieldsPerMigration == 0 {
		p.migrate(e)
	}
}

// migrate moves this rank to another core if more ranks share its own than need to.
// On a busy machine the scheduler may leave them together for long, since they
// alternate so well.
func (p *waitPolicy) migrate(e *Endpoint) {
	cpu := processors.Current()
	if cpu < 0 {
		return
	}
	here := int32(cpu) + 1
	e.state.core.Store(here)
	now := time.Now()
	if now.Sub(p.migrated) < migrationInterval {
		return
	}
	before := 0
	for i := range e.links[:e.cfg.Rank] {
		if e.links[i].state.core.Load() == here {
			before++
		}
	}
	if before >= p.RanksPerCore {
		p.migrated = now
		processors.MoveFrom(cpu)
		e.state.core.Store(0)
	}
}
