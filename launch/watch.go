package launch

import (
	"time"

	"github.com/chorale-go/chorale/launch/internal/deadlock"
	"github.com/chorale-go/chorale/transport"
)

// WatchDeadlocks calls report when ranks of this process have waited for each other
// for two thirds of the patience or more, until done is closed. The same deadlock is
// reported once.
func WatchDeadlocks(done <-chan struct{}, patience time.Duration, endpoints []transport.Endpoint, report func(text string)) {
	finder := deadlock.NewFinder(len(endpoints), patience)
	watches := make([]deadlock.Watch, len(endpoints))
	deadlock.Poll(done, patience, func() {
		for rank, e := range endpoints {
			if stalls, ok := watches[rank].Look(e.Stalls()); ok {
				if d := finder.Record(rank, stalls); d != nil {
					report(d.Report(patience))
				}
			}
		}
	})
}
