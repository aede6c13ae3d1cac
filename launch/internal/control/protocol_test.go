package control

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/deadlock"
	"github.com/chorale-go/chorale/internal/failure"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/transport"
)

// A line that is too long would end the connection, and the rank.
func TestTheLongestReportOfStallsIsAMessage(t *testing.T) {
	longest := transport.Stall{
		Signature: transport.Signature{Context: math.MaxUint32, Sequence: math.MaxUint32, Call: strings.Repeat("<", 2*deadlock.MaxCall)}, // six bytes each in JSON
		Tag:       math.MinInt,
		Step:      math.MaxInt,
		Message:   "probe",
		Peers:     slices.Repeat([]int{1<<16 - 1}, 2*deadlock.MaxPeers),
	}
	stalls := writeStalls(deadlock.Shorten(slices.Repeat([]transport.Stall{longest}, deadlock.MaxStalls)))
	line, err := json.Marshal(message{Stalls: &stalls})
	if n := len(line) + len("\n"); err != nil || n > MaxMessage {
		t.Errorf("the longest report has %d bytes, %v, and a message at most %d", n, err, MaxMessage)
	}
}

func TestTheLongestErrorOfAProgramIsAMessage(t *testing.T) {
	long := strings.Repeat("<", MaxMessage) // six bytes each in JSON
	call := &failure.Call{Context: math.MaxUint32, Sequence: math.MaxUint32, Text: long, Where: long}
	line, err := json.Marshal(newErrorMessage(failure.Failure{Text: long, Details: long, Call: call, Peer: math.MaxInt32, Theirs: call}))
	if n := len(line) + len("\n"); err != nil || n > MaxMessage {
		t.Errorf("the longest error has %d bytes, %v, and a message at most %d", n, err, MaxMessage)
	}
}

// What a rank says of itself is cut where it has no room.
func TestTheLongestStateIsAMessage(t *testing.T) {
	long := strings.Repeat("<", 200)
	var rank stall.Rank
	for range 8 {
		rank.Waits = append(rank.Waits, stall.Wait{Text: long, Peers: slices.Repeat([]int{1<<16 - 1}, 32), Call: stall.Call{Name: long, At: long}})
		rank.Calls = append(rank.Calls, stall.Call{Name: long, At: long})
		frames := slices.Repeat([]stall.Frame{{Function: long, At: long}}, 8)
		rank.Goroutines = append(rank.Goroutines, stall.Stack{State: long, Frames: frames})
	}
	m := newStateMessage(math.MaxUint32, rank)
	line, err := json.Marshal(m)
	if n := len(line) + len("\n"); err != nil || n > MaxMessage {
		t.Errorf("the state has %d bytes, %v, and a message at most %d", n, err, MaxMessage)
	}
	if r := m.State.Rank; len(r.Waits)+r.MoreWaits != 8 || len(r.Goroutines)+r.More != 8 {
		t.Errorf("%d and %d waits, %d and %d goroutines: want 8 of each", len(r.Waits), r.MoreWaits, len(r.Goroutines), r.More)
	}
}
