package network

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbersOf(t, "cluster.md", "Addresses", map[string]int64{"HeadStart": int64(HeadStart)})
}
