package proof

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbersOf(t, "security.md", "The proof", map[string]int64{
		"version": version, "greetingLen": int64(greetingLen), "challengeLen": int64(challengeLen), "answerLen": int64(answerLen),
		"ProofLen": ProofLen, "Launcher": Launcher, "refuseTimeout": int64(refuseTimeout),
	})
	if otherVersion != 1 || otherJob != 2 || otherRank != 3 || noPeer != 4 || otherMode != 5 || plain != 0 || encrypted != 1 {
		t.Error("the page has other numbers for the status of an answer, or its mode")
	}
}
