package chorale_test

import (
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/shm"
)

func TestThePageOnReliabilityHasTheBoundsOfTheCode(t *testing.T) {
	pagetest.CheckNumbersOf(t, "reliability.md", "Memory", map[string]int64{
		"KeptCalls": chorale.KeptCalls, "KeptBytes": chorale.KeptBytes,
		"UnexpectedMax": transport.UnexpectedMax, "TaggedMax": transport.TaggedMax,
		"UnsentMax": transport.UnsentMax, "MessageCost": transport.MessageCost,
		"DefaultMemory": sched.DefaultMemory, "AllocMax": shm.AllocMax(64),
	})
}
