package tcp

import (
	"context"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// What most tests say.
var (
	sig       = cluster.Sig
	each      = cluster.Each[*Endpoint]
	send      = cluster.Send
	receive   = cluster.Receive
	swap      = cluster.Swap
	checkPeer = cluster.CheckPeer
)

// job makes a job of n ranks in this process that ends with the test.
func job(t testing.TB, n int) []*Endpoint {
	t.Helper()
	ends, err := Loopback(n)
	return cluster.Job(t, ends, err)
}

// until returns when cond holds for the endpoint.
func until(e *Endpoint, cond func() bool) {
	cluster.Until(func() bool {
		e.engine.Lock()
		defer e.engine.Unlock()
		return cond()
	})
}

func TestTooLongACallIsAnError(t *testing.T) {
	ends := job(t, 2)
	long := sig
	long.Call = strings.Repeat("x", callMax)
	each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, long, 1-e.Rank()) })
	long.Call += "x"
	if err := swap(context.Background(), ends[0], long, 1); err == nil || !strings.Contains(err.Error(), "4097 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestAConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{}, {Rank: 1, Size: 1}, {Rank: -1, Size: 2}, {Size: 2}} {
		if e, err := New(c); err == nil {
			e.Close()
			t.Errorf("New(%+v) makes an endpoint", c)
		}
	}
	e, err := New(Config{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Exchange(context.Background(), transport.Step{}); err != nil {
		t.Error(err)
	}
	e.Close()
}

// The receiver has the message before the sender's caller is done with something else.
func TestAReceiverReadsWhileTheSenderDoesSomethingElse(t *testing.T) {
	ends := linked(t)
	data, into := []byte{1}, make([]byte, 1)
	err := ends[0].Exchange(t.Context(), transport.Step{
		Signature: sig,
		Sends:     []transport.Send{{To: []int{1}, Data: data}},
		Recvs:     []transport.Recv{{From: 1, Into: make([]byte, 1)}},
		Meanwhile: func() {
			if err := receive(t.Context(), ends[1], sig, 0, into); err != nil || into[0] != 1 {
				t.Errorf("not received, or %v", err)
			}
			if err := send(ends[1], sig, 0, data); err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil {
		t.Error(err)
	}
}
