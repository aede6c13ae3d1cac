package tcp

import (
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/processors"
)

func TestARankReturnsToItsHomeLessOftenWhereItIsMovedAway(t *testing.T) {
	var h home
	now := time.Now()
	if !h.mayMove(now) {
		t.Fatal("the first move is refused")
	}
	interval := moveInterval
	for range 20 {
		if h.mayMove(now.Add(interval - 1)) {
			t.Fatalf("a move less than %v after the one before", interval)
		}
		if now = now.Add(interval); !h.mayMove(now) {
			t.Fatalf("no move %v after the one before", interval)
		}
		interval = min(2*interval, moveMost)
	}
	if now = now.Add(8 * interval); !h.mayMove(now) || !h.mayMove(now.Add(moveInterval)) {
		t.Error("a rank that was at home for long does not move as if it was the first time")
	}
}

func TestRanksThatShareProcessorsHaveHomesByTurns(t *testing.T) {
	for _, test := range []struct {
		what           string
		rank, local    int
		oversubscribed bool
		want           int
	}{
		{"a rank with a processor of its own", 1, 0, false, -1},
		{"a rank with others on other hosts", 1, 2, true, -1},
		{"the first rank", 0, 0, true, processors.Nth(0)},
		{"the fourth rank", 3, 0, true, processors.Nth(3)},
		{"one of four ranks on this host, which are all", 3, 4, true, processors.Nth(3)},
	} {
		e := &Endpoint{cfg: Config{Rank: test.rank, Size: 4, Local: test.local}}
		e.processors.Oversubscribed = test.oversubscribed
		if e.findHome(); e.home.cpu != test.want {
			t.Errorf("%s has home %d, want %d", test.what, e.home.cpu, test.want)
		}
	}
}

// A rank that yields is on its home soon, wherever it was.
func TestARankThatYieldsMovesHome(t *testing.T) {
	for i := range 2 {
		h := home{cpu: processors.Nth(i)}
		if h.cpu < 0 {
			t.Skip("this thread has one processor")
		}
		last := -1
		for range 1000 { // the scheduler may move it away again
			h.moved = time.Time{}
			for range yieldsPerLook {
				h.yielded()
			}
			if last = processors.Current(); last == h.cpu {
				break
			}
		}
		if last != h.cpu {
			t.Errorf("the rank was on processor %d at last, and its home is %d", last, h.cpu)
		}
	}
}
