package control

import (
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/transport"
)

// A busy machine has the ranks look one after another. Of ranks that take turns, each then
// waits when it looks.
func TestOnlyRanksThatWaitAtTheSameTimeAreInADeadlock(t *testing.T) {
	for name, test := range map[string]struct {
		waits [2][2]int // the numbers of the waits that the ranks report, by query
		want  int       // ranks of the deadlock
	}{
		"the same waits for as long as they are asked": {[2][2]int{{5, 7}, {5, 7}}, 2},
		"a rank has got on":                            {[2][2]int{{5, 7}, {6, 7}}, 0},
		"both have":                                    {[2][2]int{{5, 7}, {6, 8}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestServer(t, 2)
			c.stalls = stall.NewTracker(2, 0) // what lasts is due at once
			ranks := []*rawConn{joinRaw(t, c, 0), joinRaw(t, c, 1)}
			report := make(chan *stall.Report)
			go func() { report <- c.Explain(time.Hour) }()
			for query, numbers := range test.waits {
				for rank, r := range ranks {
					r.expect(fmt.Sprintf(`{"stateQuery":%d}`, query+1))
					r.send(fmt.Sprintf(`{"state":{"query":%d,"rank":{"waits":[{"context":0,"message":"recv","tag":1,"number":%d,"peers":[%d]}]}}}`,
						query+1, numbers[rank], 1-rank))
				}
			}
			if r := <-report; len(r.Deadlock()) != test.want {
				t.Errorf("a deadlock of %d ranks, want %d: %s", len(r.Deadlock()), test.want, r.Text())
			}
			// What began between the queries may last for ever, and was not reported.
			for rank, number := range test.waits[1] {
				wait := transport.Stall{Message: "recv", Tag: 1, Wait: uint64(number), Peers: []int{1 - rank}}
				if due, want := c.stalls.Record(rank, []transport.Stall{wait}), number != test.waits[0][rank]; due != want {
					t.Errorf("rank %d: it is due is %t, want %t", rank, due, want)
				}
			}
		})
	}
}
