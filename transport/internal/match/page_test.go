package match

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbers(t, "Tagged messages", map[string]int64{
		"EagerMax": EagerMax, "creditMax": creditMax, "MessageCost": MessageCost,
		"returnStep": returnStep, "sparesMost": sparesMost,
	})
}
