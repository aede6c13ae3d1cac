package control

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/internal/proof"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbersOf(t, "bounds.md", "At the control server", map[string]int64{
		"MaxMessage": MaxMessage, "UnprovenMax": proof.UnprovenMax, "maxText": maxText, "maxDetails": maxDetails, "maxProfile": maxProfile, "MaxTrace": MaxTrace,
	})
}
