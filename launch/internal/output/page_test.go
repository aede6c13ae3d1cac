package output

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbersOf(t, "bounds.md", "The output of ranks", map[string]int64{
		"MaxLine": MaxLine, "lineWait": int64(lineWait), "lineWaits": lineWaits,
	}, "1 GiB") // that a test prints
}
