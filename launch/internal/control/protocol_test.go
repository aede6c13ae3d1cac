package control

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/launch/internal/deadlock"
	"github.com/chorale-go/chorale/transport"
)

// A line that is too long would end the connection, and the rank.
func TestTheLongestReportOfStallsIsAMessage(t *testing.T) {
	longest := transport.Stall{
		Signature: transport.Signature{Context: math.MaxUint32, Sequence: math.MaxUint32, Call: strings.Repeat("<", 2*deadlock.MaxCall)}, // six bytes each in JSON
		Tag:       math.MinInt,
		Peers:     slices.Repeat([]int{1<<16 - 1}, 2*deadlock.MaxPeers),
	}
	stalls := writeStalls(deadlock.Shorten(slices.Repeat([]transport.Stall{longest}, deadlock.MaxStalls)))
	line, err := json.Marshal(message{Stalls: &stalls})
	if n := len(line) + len("\n"); err != nil || n > MaxMessage {
		t.Errorf("the longest report has %d bytes, %v, and a message at most %d", n, err, MaxMessage)
	}
}
