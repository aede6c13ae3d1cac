package algo_test

import (
	"fmt"
	"maps"
	"math/bits"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

// fewest returns ⌈lg p⌉.
func fewest(p int) int { return bits.Len(uint(p - 1)) }

// mostRanks is up to where every number of ranks is tried.
func mostRanks() int {
	if testing.Short() {
		return 40
	}
	return 300
}

// expectRounds looks whether messages go in so many steps.
func expectRounds(t *testing.T, s *sched.Schedule, want int) {
	t.Helper()
	timeline, err := s.Timeline()
	if err != nil {
		t.Fatalf("%s: %v", describe(s), err)
	}
	got := 0
	for i := range timeline.Steps() {
		if len(timeline.Messages(i)) > 0 {
			got++
		}
	}
	if got != want {
		t.Errorf("%s: %d steps, want %d", describe(s), got, want)
	}
}

// expectRight checks a schedule. Those that take long, of more than 40 ranks, it
// checks at powers of two, one past these, and at every 23rd.
func expectRight(t *testing.T, s *sched.Schedule) {
	t.Helper()
	if s.P > 40 && s.P&(s.P-2) > 1 && s.P%23 > 0 && s.Blocks > 11 {
		return
	}
	if err := s.Check(); err != nil {
		t.Errorf("%s: %v", describe(s), err)
	}
}

// No broadcast of k blocks can do with fewer rounds than k − 1 + ⌈lg p⌉, if a
// rank sends and receives one block in each; and this one takes no more, for
// every p.
func TestBroadcastAndReductionOnACirculantTakeTheFewestRounds(t *testing.T) {
	t.Parallel()
	for p := 2; p <= mostRanks(); p++ {
		for _, k := range []int{1, 2, fewest(p) + 1} {
			for _, c := range []sched.Collective{sched.Bcast, sched.Reduce} {
				s := newSchedule(t, c, fmt.Sprintf("circulant,blocks=%d", k), p, (p+k)%p)
				expectRounds(t, s, k-1+fewest(p))
				if k > 2 && c == sched.Bcast {
					expectRight(t, s)
				}
			}
		}
	}
}

// A rank must hand on p − 1 blocks, and get or combine as many; ⌈lg p⌉ rounds do
// for every p.
func TestReduceScatterAndAllgatherOnACirculantMoveEachBlockOnce(t *testing.T) {
	t.Parallel()
	for p := 2; p <= mostRanks(); p++ {
		for _, c := range []sched.Collective{sched.ReduceScatter, sched.AllGather} {
			s := newSchedule(t, c, "circulant", p, 0)
			expectRounds(t, s, fewest(p))
			expectRight(t, s)
			for _, rank := range []int{0, 1, p / 2, p - 1} {
				sent, received := 0, 0
				for _, step := range s.Program(rank) {
					for _, send := range step.Sends {
						sent += len(send.To) * send.Blocks.Len()
					}
					for _, r := range step.Recvs {
						received += r.Blocks.Len()
					}
				}
				if sent != p-1 || received != p-1 {
					t.Errorf("%s: rank %d sends %d blocks and receives %d, want %d", describe(s), rank, sent, received, p-1)
				}
			}
		}
	}
}

func TestAllreduceOnACirculantTakesTwiceTheFewestRounds(t *testing.T) {
	for p := 2; p <= mostRanks(); p++ {
		expectRounds(t, newSchedule(t, sched.AllReduce, "circulant", p, 0), 2*fewest(p))
	}
}

// Nine ranks have the skips 5, 3, 2 and 1: 9 halved and rounded up, and so on.
func TestTheSkipsOfACirculantArePHalvedAndRoundedUp(t *testing.T) {
	skips := map[int]int{5: 0, 3: 0, 2: 0, 1: 0}
	s := newSchedule(t, sched.ReduceScatter, "circulant", 9, 0)
	for _, step := range moments(t, s) {
		for _, m := range step.messages {
			skips[(m.To-m.From+s.P)%s.P] += m.Blocks.Len()
		}
	}
	if want := map[int]int{5: 9 * 4, 3: 9 * 2, 2: 9, 1: 9}; !maps.Equal(skips, want) {
		t.Errorf("blocks per skip: %v, want %v", skips, want)
	}
}
