package shm

import (
	"bytes"
	"context"
	"testing"

	"github.com/chorale-go/chorale/internal/testenv"
)

// A peer must see the mark as soon as another process may have the number.
func TestTheKernelMarksTheEndOfAProcessBeforeItsNumberIsFree(t *testing.T) {
	if job(t, 1)[0].state.owner.Load() == 0 {
		testenv.Skip(t, "this kernel has no robust futexes")
	}
	for range 20 {
		c := processes(t, 2)
		c.RunAll(t, "swap", 8, 1)
		s := c.Endpoint.(*Endpoint).links[1].state
		owner := s.owner.Load()
		if !s.ownedBy(owner) || owner == 0 {
			t.Fatalf("thread %d owns the rank of a process that lives", owner)
		}
		c.Process(1).Kill()
		c.Process(1).Wait()
		if s.ownedBy(owner) {
			t.Fatal("the process has ended, and its thread owns the rank")
		}
		c.End()
	}
}

const ownerDied = 1 << 30 // FUTEX_OWNER_DIED

// What is read is not what the sender has sent, because another process has its number: the
// kernel has marked that, or it marks nothing.
func TestALongMessageOfAnotherProcessIsNotReceived(t *testing.T) {
	for _, marks := range []bool{true, false} {
		ends := job(t, 2)
		if !marks {
			ends[0].state.owner.Store(0)
		}
		needCMA(t, &ends[0].links[1])
		needCMA(t, &ends[1].links[0])
		ends[0].state.owner.Store(ownerDied)
		*ends[0].cma.word++
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ends[0].Send(ctx, 1, tag2, "bytes", long()) }()
		_, err := ends[1].Recv(t.Context(), 0, tag2, "bytes", make([]byte, len(long())))
		checkLost(t, err, 0, "its process has ended")
	}
}

func TestTheMemoryOfARankIsReadWhereTheKernelMarksNothing(t *testing.T) {
	ends := job(t, 2)
	ends[0].state.owner.Store(0)
	l := &ends[1].links[0]
	needCMA(t, l)
	data := bytes.Repeat([]byte("word"), rendezvousMin)
	sent := make(chan error, 1)
	go func() { sent <- send(ends[0], sig, 1, data) }()
	into := make([]byte, len(data))
	if err := receive(t.Context(), ends[1], sig, 0, into); err != nil || !bytes.Equal(into, data) || l.cma != cmaWorks {
		t.Errorf("another message arrived, or it was staged, or %v", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
