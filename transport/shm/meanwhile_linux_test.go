package shm

import (
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// The receiver has the message before the sender's caller is done with something else, which
// may use the endpoint.
func TestAReceiverReadsWhileTheSenderDoesSomethingElse(t *testing.T) {
	ends := job(t, 2)
	needCMA(t, &ends[1].links[0])
	data, into := make([]byte, 1<<20), make([]byte, 1<<20)
	data[0] = 1
	calls := 0
	err := ends[0].Exchange(t.Context(), transport.Step{
		Signature: sig,
		Sends:     []transport.Send{{To: []int{1}, Data: data}},
		Meanwhile: func() {
			calls++
			ends[0].Held()
			if err := receive(t.Context(), ends[1], sig, 0, into); err != nil || into[0] != 1 {
				t.Errorf("not received, or %v", err)
			}
		},
	})
	if err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// What panics meanwhile ends the endpoint's part, as a Combine does.
func TestAPanicMeanwhileEndsTheEndpoint(t *testing.T) {
	ends := job(t, 2)
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic does not pass through Exchange")
			}
		}()
		ends[0].Exchange(t.Context(), transport.Step{
			Signature: sig,
			Sends:     []transport.Send{{To: []int{1}, Data: make([]byte, 1<<20)}},
			Meanwhile: func() { panic("boom") },
		})
	}()
	if err := send(ends[0], sig, 1, nil); err == nil {
		t.Error("the endpoint goes on")
	}
}

// A rank that waits until its message is read goes before what the receiver has to do.
func TestWhatHasArrivedIsReceivedBeforeTheReceiverDoesSomethingElse(t *testing.T) {
	ends := job(t, 2)
	l := &ends[1].links[0]
	needCMA(t, l)
	sent := make(chan error, 1)
	go func() { sent <- send(ends[0], sig, 1, make([]byte, 1<<20)) }()
	until(ends[1], func() bool { c, _ := l.next(); return c != nil })
	err := ends[1].Exchange(t.Context(), transport.Step{
		Signature: sig,
		Recvs:     []transport.Recv{{From: 0, Into: make([]byte, 1<<20)}},
		Meanwhile: func() {
			if err := <-sent; err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil {
		t.Error(err)
	}
}
