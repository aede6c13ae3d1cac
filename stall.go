package chorale

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/internal/deadlock"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
)

// StallReport says what the ranks of this process do, in several lines: which wait, in
// which call, at which line of the program and for whom; what the others do instead; and
// which is the likely cause. In a job of [Run] these are all ranks. Elsewhere it is this one
// alone, and chorale run prints the report of all.
//
// It may be called at any time, by any goroutine, as by one that waits for a timeout. It
// takes a tenth of a second, and stops the program for a moment, to read its stacks.
func (c *Comm) StallReport() string {
	if c == nil {
		return ""
	}
	ranks := c.job.ranks
	if ranks == nil {
		ranks = &localRanks{endpoints: []transport.Endpoint{c.job.endpoint}, returned: make([]atomic.Bool, 1), first: c.job.endpoint.Rank()}
	}
	return ranks.report().Text()
}

// localRanks are the ranks of a job that this process has.
type localRanks struct {
	endpoints []transport.Endpoint
	returned  []atomic.Bool // the rank's function has returned
	first     int           // the rank of the first endpoint
}

func newLocalRanks(job *inproc.Job, n int) *localRanks {
	l := &localRanks{endpoints: make([]transport.Endpoint, n), returned: make([]atomic.Bool, n)}
	for rank := range l.endpoints {
		l.endpoints[rank] = job.Endpoint(rank)
	}
	return l
}

// asRank calls f in the goroutine of a rank. The endpoint is live to the end, so that the
// stack shows whose goroutine it is.
//
//go:noinline
func asRank(e *inproc.Endpoint, f func()) *inproc.Endpoint {
	f()
	return e
}

// asRankName is how a stack names asRank.
const asRankName = "github.com/chorale-go/chorale.asRank"

// owner returns the rank whose goroutine has a frame, or −1.
func (l *localRanks) owner(function string, first uintptr) int {
	if function == asRankName {
		for rank, e := range l.endpoints {
			if e, ok := e.(*inproc.Endpoint); ok && uintptr(unsafe.Pointer(e)) == first {
				return rank
			}
		}
	}
	return -1
}

// report asks what the ranks do.
func (l *localRanks) report() *stall.Report {
	if _, ok := l.endpoints[0].(*inproc.Endpoint); !ok {
		return stall.ReportOf(l.first, l.endpoints[0].Size(), stall.Look(l.endpoints, nil)[0])
	}
	r := stall.New(len(l.endpoints))
	r.Ranks = stall.Look(l.endpoints, l.owner)
	for rank := range r.Ranks {
		if l.returned[rank].Load() {
			r.Absent[rank] = stall.HasLeft
		}
	}
	return r
}

// A stallPolicy is what is done when ranks of this process wait for long.
type stallPolicy struct {
	after     time.Duration // 0: nothing
	deadlocks bool          // name ranks that wait for each other, and nothing else
	abort     bool          // end the process then
	quit      bool          // explain on SIGQUIT as well
}

// watch explains on standard error why ranks wait, until stop is called.
func (l *localRanks) watch(p stallPolicy) (stop func()) {
	if p.deadlocks {
		return l.watchDeadlocks(p.after)
	}
	done := make(chan struct{})
	stopped := make(chan struct{})
	var quit chan os.Signal
	if p.quit {
		quit = make(chan os.Signal, 1)
		signal.Notify(quit, syscall.SIGQUIT)
	}
	go func() {
		defer close(stopped)
		if p.after > 0 {
			go deadlock.Poll(done, p.after, l.poll(p))
		}
		for {
			select {
			case <-quit:
				fmt.Fprintln(os.Stderr, "chorale: "+l.report().Text())
			case <-done:
				return
			}
		}
	}()
	return func() {
		if quit != nil {
			signal.Stop(quit)
		}
		close(done)
		<-stopped
	}
}

// watchDeadlocks names ranks that wait for each other, until stop is called.
func (l *localRanks) watchDeadlocks(after time.Duration) (stop func()) {
	if after <= 0 || len(l.endpoints) < 2 {
		return func() {}
	}
	stderr := os.Stderr // a report may be in progress when Run has returned, and the caller sets it
	return deadlock.WatchRanks(after, l.endpoints, func(deadlock.Cycle) {
		if d := l.report().Deadlock(); d != nil { // with the lines of the program
			fmt.Fprintln(stderr, "chorale: "+d.Lines(after))
		}
	}).Stop
}

// poll returns a function that looks at all ranks once.
func (l *localRanks) poll(p stallPolicy) func() {
	tracker := stall.NewTracker(len(l.endpoints), p.after)
	watches := make([]stall.Watch, len(l.endpoints))
	return func() {
		due := false
		for rank, e := range l.endpoints {
			if stalls, ok := watches[rank].Look(e.Stalls()); ok {
				due = tracker.Record(rank, stalls) || due
			}
		}
		if !due {
			return
		}
		r := l.report()
		if !r.Waits() {
			return // what was waited for has come meanwhile
		}
		r.For = p.after
		for rank := range r.Ranks {
			tracker.Cover(rank, r.Ranks[rank].Waits)
		}
		fmt.Fprintln(os.Stderr, "chorale: "+r.Text())
		if p.abort {
			fmt.Fprintf(os.Stderr, "chorale: %v\n", &launch.StallError{For: p.after, Cause: r.Cause()})
			os.Exit(1)
		}
	}
}
