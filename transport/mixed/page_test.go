package mixed

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbers(t, "Two at once", map[string]int64{"pollTime": int64(pollTime)})
}
