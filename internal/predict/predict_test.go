package predict_test

import (
	"math"
	"testing"

	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// example returns the profile of a machine: a message takes 10 µs and one for every 100 bytes,
// of which its sender works 2 µs and its receiver 3; a call 0.5 and a step 1.
func example(processors int) *model.Profile {
	return &model.Profile{
		Version: model.ProfileVersion,
		Node:    model.Node{Processors: processors, Copy: model.Line(0, 0.001)},
		Links: []model.Link{{
			Transport: "shm", OneWay: model.Line(10, 0.01), Exchange: model.Line(12, 0.01),
			Send: model.Line(2, 0), Receive: model.Line(3, 0), RendezvousFrom: 1000,
			Call: model.Exactly(0.5), Step: model.Exactly(1), Switch: model.Exactly(4),
		}},
	}
}

func TestACallInALoopTakesWhatABenchmarkMeasures(t *testing.T) {
	for _, test := range []struct {
		what       string
		processors int
		call       predict.Call
		root       int
		want       float64
	}{
		{"a broadcast whose root rotates between two ranks is a message",
			2, predict.Call{Collective: sched.Bcast, Algorithm: "binomial", Ranks: 2, Bytes: 100, Transport: "shm"}, -1, 0.5 + 1 + 10 + 1},
		// The root sends without waiting, so that its receiver's work counts.
		{"broadcasts of one root follow each other",
			2, predict.Call{Collective: sched.Bcast, Algorithm: "binomial", Ranks: 2, Bytes: 100, Transport: "shm"}, 0, 0.5 + 1 + 3},
		{"a root waits for the arrival of a rendezvous",
			2, predict.Call{Collective: sched.Bcast, Algorithm: "binomial", Ranks: 2, Bytes: 1000, Transport: "shm"}, 0, 0.5 + 1 + 10 + 10},
		{"an exchange synchronizes its ranks",
			2, predict.Call{Collective: sched.Shift, Algorithm: "direct", Ranks: 2, Bytes: 100, Transport: "shm"}, -1, 0.5 + 1 + 12 + 1},
		// The message is where its receiver is 7 µs after it was begun to be sent. In this time
		// the sender begins the next call. Then the processor switches, and receives it.
		{"ranks of one processor take turns",
			1, predict.Call{Collective: sched.Bcast, Algorithm: "binomial", Ranks: 2, Bytes: 0, Transport: "shm"}, -1, 0.5 + 1 + 7 + 4 + 3},
		{"a call of a rank alone is a call",
			2, predict.Call{Collective: sched.Bcast, Algorithm: "binomial", Ranks: 1, Bytes: 100, Transport: "shm"}, 0, 0.5},
	} {
		got, err := predict.TimeInLoop(example(test.processors), test.call, test.root)
		if err != nil || math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, %v: want %v", test.what, got, err, test.want)
		}
	}
}

func TestWhatCannotBeSimulatedIsAnError(t *testing.T) {
	call := predict.Call{Collective: sched.Bcast, Algorithm: "binomial", Ranks: 2, Bytes: 8, Transport: "tcp"}
	if _, err := predict.TimeInLoop(example(2), call, 0); err == nil {
		t.Error("a transport that the profile lacks: want an error")
	}
	call.Transport, call.Algorithm = "shm", "nonesuch"
	if _, err := predict.TimeInLoop(example(2), call, 0); err == nil {
		t.Error("an algorithm that does not exist: want an error")
	}
}
