package shm

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"golang.org/x/sys/unix"
)

// Rank 0 waits for rank 1. Just before it sleeps, when its status says already that it
// does, it releases the lock to a goroutine that waits for something else: for rank 2,
// which sends later, or for a message of rank 1 that is in the unexpected queue.
func TestARankSleepsForEverythingItWaitsFor(t *testing.T) {
	other := sig
	other.Context++
	for _, from := range []int{2, 1} {
		ends := job(t, 3)
		e := ends[0]
		e.wait.stallTimeout = time.Hour // else it polls all links again
		first := make(chan error, 1)
		go func() { first <- receive(context.Background(), e, sig, 1, nil) }()
		if from == 1 {
			if err := send(ends[1], other, 0, nil); err != nil {
				t.Fatal(err)
			}
			until(e, func() bool { return e.links[1].in.queue.First() != nil })
		}
		second := waitJustBeforeSleep(e, other, from)
		if from == 2 {
			if err := send(ends[2], other, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-second:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(hangs):
			t.Errorf("rank 0 sleeps, and does not know that what it waits for from rank %d has arrived", from)
			e.Close()
			<-second
		}
		send(ends[1], sig, 0, nil)
		<-first
	}
}

// waitJustBeforeSleep has another goroutine of a rank wait for a message, while the
// progress owner, whose status says that it sleeps, has released the lock.
func waitJustBeforeSleep(e *Endpoint, s transport.Signature, from int) <-chan error {
	e.engine.Entering.Add(1) // so that it releases the lock whenever it may
	announced := func() bool { return e.state.status.Load()&sleepMask != 0 }
	for woken := true; ; {
		e.engine.Lock()
		if e.engine.Asleep() {
			e.engine.Interrupt()
			woken = true
		} else if woken = woken && announced(); announced() && !woken {
			break
		}
		e.unlock()
		runtime.Gosched()
	}
	e.engine.Entering.Add(-1)
	ended := make(chan error, 1)
	o := e.engine.Begin(context.Background())
	go func() {
		defer e.unlock()
		defer e.engine.Leave(o)
		e.start(o, &transport.Step{Signature: s, Recvs: []transport.Recv{{From: from}}})
		ended <- o.Await()
	}()
	until(e, func() bool { return true }) // the goroutine releases the lock when it sleeps
	return ended
}

// A goroutine sleeps for a tagged message while another sends.
func TestAStepThatIsCompleteAtOnceWakesNoOwner(t *testing.T) {
	ends := job(t, 2)
	e := ends[0]
	e.wait.stallTimeout = time.Hour // else it wakes up to check for stalls
	ctx, cancel := context.WithCancel(t.Context())
	received := make(chan error)
	go func() {
		_, err := e.Recv(ctx, 1, transport.Match{Context: 1}, "bytes", nil)
		received <- err
	}()
	until(e, func() bool { return e.engine.Asleep() })
	before := e.state.futex.Load()
	if err := send(e, sig, 1, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if after := e.state.futex.Load(); after != before {
		t.Errorf("the owner was woken %d times", after-before)
	}
	cancel()
	<-received
}

// Ranks 1 and 2 send without end, each when the other's last byte is taken. Rank 3
// is gone.
func TestABusyRankNoticesThatAnotherIsGone(t *testing.T) {
	ends := job(t, 4)
	const endless = 1 << 25
	into := make([]byte, endless)
	sent := make([]int, len(ends))
	send := func(from int) {
		l := &ends[from].links[0]
		c := l.out.next()
		k := chunkFrame
		if sent[from] == 0 {
			k = stagedFrame
			c.setStep(0, &match.Call{Signature: sig, Hash: hashOf(sig.Call)}, 0)
		}
		c.setStaged(1, endless, sent[from], 0, 1)
		sent[from]++
		l.publish(c, k)
	}
	step := transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 3}}}
	for from := 1; from <= 2; from++ {
		next := func(_, _, _ []byte) { send(3 - from) }
		step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: into, Held: into, Combine: next})
	}
	send(1)
	ends[3].seg.own.Close() // as when its process ends
	ends[3].seg.own = nil
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	checkLost(t, ends[0].Exchange(ctx, step), 3, "its process has ended")
}

// A goroutine may change its thread wherever it is interrupted, as by a collection.
func TestAThreadThatHasLeftItsCoreMayComeBack(t *testing.T) {
	var want unix.CPUSet
	if err := unix.SchedGetaffinity(0, &want); err != nil || want.Count() < 2 {
		testenv.Skip(t, "this process may run on one core only")
	}
	var moves sync.WaitGroup
	moves.Go(func() {
		for range 20_000 {
			processors.MoveFrom(processors.Current())
		}
	})
	moves.Go(func() {
		for range 300 {
			runtime.GC()
		}
	})
	moves.Wait()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		testenv.Skip(t, "this system does not list the threads of a process: %v", err)
	}
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(id, &got); err == nil && got != want {
			t.Errorf("thread %d may run on %d cores, want %d", id, got.Count(), want.Count())
		}
	}
}
