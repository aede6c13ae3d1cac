package chorale

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
)

func TestThePageOnBoundsHasThoseOfAProgram(t *testing.T) {
	pagetest.CheckNumbersOf(t, "bounds.md", "In the program", map[string]int64{
		"KeptCalls": KeptCalls, "KeptBytes": KeptBytes, "maxInProgress": maxInProgress, "maxRows": maxRows, "maxSamples": maxSamples, "traceBytes": traceBytes,
	})
}
