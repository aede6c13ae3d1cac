package inproc

import (
	"runtime"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// The receiver has the message before the sender's caller is done with something else.
func TestAReceiverReadsWhileTheSenderDoesSomethingElse(t *testing.T) {
	j := New(2)
	data, into := make([]byte, 1<<20), make([]byte, 1<<20)
	data[0] = 1
	received := make(chan error, 1)
	go func() { received <- pairRecv(t.Context(), j.Endpoint(1), into) }()
	calls := 0
	err := j.Endpoint(0).Exchange(t.Context(), transport.Step{
		Signature: pairSig,
		Sends:     []transport.Send{{To: []int{1}, Data: data}},
		Meanwhile: func() {
			calls++
			if err := <-received; err != nil || into[0] != 1 {
				t.Errorf("not received, or %v", err)
			}
		},
	})
	if err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// A rank that waits until its message is read goes before what the receiver has to do.
func TestWhatHasArrivedIsReceivedBeforeTheReceiverDoesSomethingElse(t *testing.T) {
	j := New(2)
	sent := make(chan error, 1)
	go func() { sent <- pairSend(t.Context(), j.Endpoint(0), make([]byte, 1<<20)) }()
	for j.Endpoint(1).CheckUnreceived() == nil {
		runtime.Gosched()
	}
	err := j.Endpoint(1).Exchange(t.Context(), transport.Step{
		Signature: pairSig,
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
