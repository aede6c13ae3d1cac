package inproc

import (
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/transport/internal/match"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbers(t, "Between goroutines", map[string]int64{
		"depth": depth, "shallow": shallow, "DeepRanks": DeepRanks, "cacheLine": cacheLine, "inlineMax": inlineMax, "pairRanks": pairRanks, "bufferedMax": bufferedMax,
		"ringMax": ringMax, "ringDepth": ringDepth, "taggedInlineMax": taggedInlineMax, "ringsMax": ringsMax, "eagerMin": eagerMin,
	}, "10 ms", "50 µs", "64 KiB")
	const ranks = 3
	if got, want := New(ranks).stallTimeout, 10*time.Millisecond+ranks*50*time.Microsecond; got != want {
		t.Errorf("the stall timeout of %d ranks is %v, want %v", ranks, got, want)
	}
	if match.EagerMax != 64<<10 {
		t.Errorf("a tagged message is eager up to %d bytes", match.EagerMax)
	}
}

// The page on the order of accesses has all that is atomic.
func TestThePageOnOrderHasEveryWord(t *testing.T) {
	pagetest.CheckWords(t, "memory-ordering.md", "Between goroutines", pagetest.AtomicFields(t, "."))
}
