package tcp

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCloseLeavesNoFileDescriptor(t *testing.T) {
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	var before int
	for round := range 3 {
		ends, err := Loopback(4)
		if err != nil {
			t.Fatal(err)
		}
		each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, sig, e.Rank()^1) })
		for _, e := range ends {
			e.Close()
		}
		if round == 0 { // the Go runtime opens some for itself and keeps them
			before = open()
		}
	}
	if after := open(); after > before {
		t.Errorf("%d file descriptors are open, %d were before", after, before)
	}
}

func TestAConnectionWithinTheMachineIsNotPaced(t *testing.T) {
	ends, err := Loopback(2)
	if err != nil {
		t.Fatal(err)
	}
	each(t, ends, func(e *Endpoint) error {
		defer e.Close()
		if err := swap(context.Background(), e, sig, e.Rank()^1); err != nil {
			return err
		}
		how, err := unix.GetsockoptString(e.links[e.Rank()^1].stream.(*socket).fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err == nil && how != "reno" {
			t.Errorf("rank %d: congestion control %q, want reno", e.Rank(), how)
		}
		return err
	})
}
