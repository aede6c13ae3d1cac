package inproc

import (
	"testing"

	"github.com/chorale-go/chorale/transport"
)

func TestHeldCountsTheMessagesThatLieInCells(t *testing.T) {
	const contexts, each = 3, depth
	j := New(2)
	from, to := j.Endpoint(0), j.Endpoint(1)
	step := func(context uint32) transport.Step {
		return transport.Step{Signature: transport.Signature{Context: context, Call: "test"}}
	}
	want := transport.Held{}
	check := func() {
		t.Helper()
		if got := to.Held(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	check()
	for i := range contexts * each {
		send := step(uint32(i % contexts))
		send.Sends = []transport.Send{{To: []int{1}, Data: make([]byte, 1000)}}
		if err := from.Exchange(t.Context(), send); err != nil {
			t.Fatal(err)
		}
		want.Unexpected += cellCost
		check()
	}
	for i := range contexts * each {
		recv := step(uint32(i % contexts))
		recv.Recvs = []transport.Recv{{From: 0, Into: make([]byte, 1000)}}
		if err := to.Exchange(t.Context(), recv); err != nil {
			t.Fatal(err)
		}
		want.Unexpected -= cellCost
		check()
	}
	if got := from.Held(); got != (transport.Held{}) {
		t.Errorf("the sender holds %+v", got)
	}
}
