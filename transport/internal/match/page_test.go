package match

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/transport"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbers(t, "Matching", map[string]int64{
		"UnexpectedMax": transport.UnexpectedMax, "MessageCost": transport.MessageCost,
	})
	pagetest.CheckNumbersOf(t, "bounds.md", "Between ranks", map[string]int64{
		"UnexpectedMax": transport.UnexpectedMax, "MessageCost": transport.MessageCost, "TaggedMax": transport.TaggedMax,
		"AnnouncedMax": AnnouncedMax, "UnsentMax": transport.UnsentMax,
	})
	pagetest.CheckNumbers(t, "Tagged messages", map[string]int64{
		"EagerMax": EagerMax, "TaggedMax": transport.TaggedMax, "MessageCost": transport.MessageCost,
		"returnStep": returnStep, "AnnouncedMax": AnnouncedMax, "sparesMost": sparesMost, "searchMax": searchMax,
	})
}
