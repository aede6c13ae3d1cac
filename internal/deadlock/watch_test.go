package deadlock_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/chorale-go/chorale/internal/deadlock"
	"github.com/chorale-go/chorale/transport"
)

// waiting is an endpoint that waits for a rank.
type waiting struct {
	transport.Endpoint
	peer int
}

func (w waiting) Stalls() []transport.Stall {
	return []transport.Stall{{Message: "recv", Tag: 3, Peers: []int{w.peer}}}
}

func TestRanksOfOneProcessThatWaitForEachOtherAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*24*time.Hour)
		defer cancel()
		var (
			mu      sync.Mutex
			reports []string
		)
		endpoints := []transport.Endpoint{waiting{peer: 1}, waiting{peer: 0}}
		g := deadlock.WatchRanks(3*time.Second, endpoints, func(d deadlock.Cycle) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, d.Lines(3*time.Second))
		})
		defer g.Stop()
		<-ctx.Done() // the looks get rarer, and end
		mu.Lock()
		defer mu.Unlock()
		const want = `ranks have waited for each other for 2s or longer, and cannot go on unless other goroutines of theirs make calls:
  rank 0 waits for rank 1 to send a message of tag 3
  rank 1 waits for rank 0 to send a message of tag 3
A rank that waits for a message sends its own before, or uses SendRecv, StartSend or StartRecv.`
		if len(reports) != 1 || reports[0] != want {
			t.Errorf("got  %q\nwant %q", reports, want)
		}
	})
}

func TestAGroupThatHasStoppedHoldsNoRank(t *testing.T) {
	type endpoint struct{ transport.Endpoint }
	for range 100 { // Go forgets a stopped timer at once if most others are stopped as well
		defer time.AfterFunc(time.Minute, func() {}).Stop()
	}
	rank := new(endpoint)
	held := weak.Make(rank)
	deadlock.WatchRanks(time.Hour, []transport.Endpoint{rank}, func(deadlock.Cycle) { runtime.KeepAlive(rank) }).Stop()
	if runtime.GC(); held.Value() != nil {
		t.Error("a rank is in memory after the group that watched it has stopped")
	}
}
