package shm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// An allocating endpoint sends every message out of allocated memory. A page of its own
// keeps the first huge page, which takes 0.1 ms to make, for all short messages.
type allocating struct{ *Endpoint }

func newAllocating(t *testing.T, e *Endpoint) allocating {
	if _, _, err := e.Alloc(heapUnit); err != nil {
		t.Fatal(err)
	}
	return allocating{e}
}

// Held does not count the page of its own, which is gone after Close.
func (e allocating) Held() transport.Held {
	h := e.Endpoint.Held()
	h.Allocated = max(h.Allocated-heapUnit, 0)
	return h
}

func (e allocating) moved(data []byte) (b []byte, err error) {
	if b, _, err = e.Alloc(len(data)); err == nil {
		copy(b, data)
	}
	return b, err
}

func (e allocating) Exchange(ctx context.Context, step transport.Step) error {
	sends := append([]transport.Send(nil), step.Sends...)
	step.Sends = sends
	for i := range sends {
		b, err := e.moved(sends[i].Data)
		if err != nil {
			return e.Endpoint.Exchange(ctx, step) // which returns why the endpoint has ended
		}
		sends[i].Data = b
	}
	err := e.Endpoint.Exchange(ctx, step)
	for i := range sends {
		_ = e.Free(sends[i].Data) // of some, the endpoint has ended before they were moved
	}
	return err
}

func (e allocating) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	b, err := e.moved(data)
	if err != nil {
		return e.Endpoint.Send(ctx, to, m, typeName, data)
	}
	defer e.Free(b)
	return e.Endpoint.Send(ctx, to, m, typeName, b)
}

func TestTheContractIsKeptFromAllocatedMemory(t *testing.T) {
	for name, cfg := range map[string]Config{"read": {}, "without CMA": {NoCMA: true}} {
		t.Run(name, func(t *testing.T) {
			skipRead(t, cfg)
			transporttest.Run(t, func(t *testing.T, n int) []transport.Endpoint {
				ends, err := loopback(n, cfg)
				if err != nil {
					t.Fatal(err)
				}
				all := cluster.All(ends)
				for i, e := range ends {
					all[i] = newAllocating(t, e)
				}
				return all
			})
		})
	}
}

// blocks returns the bytes of memory that the job's file takes.
func blocks(t *testing.T, e *Endpoint) int64 {
	var st unix.Stat_t
	if err := unix.Fstat(int(e.seg.file.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func TestFreedMemoryGoesBackToTheSystem(t *testing.T) {
	needRemove(t)
	e := crew(t, 2, Config{})[0]
	before := blocks(t, e)
	var all [][]byte
	for _, n := range []int{10, 3 << 20, 100, 1 << 20, 40 << 20, 5000} {
		b, _, err := e.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	if n := blocks(t, e) - before; n < 44<<20 || n > 44<<20+6*hugePageLen {
		t.Errorf("44 MiB take %s", mebibytes(n))
	}
	for _, i := range []int{4, 0, 5, 2, 1, 3} {
		if err := e.Free(all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if n := blocks(t, e) - before; n != 0 {
		t.Errorf("everything is freed, and %s are taken", mebibytes(n))
	}
}

// needRemove skips the test where memory of a file does not go back to the system: an
// emulator only says that it does.
func needRemove(t *testing.T) {
	f, err := createMemory(hugePageLen, hugePageLen)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := mapFile(f, 0, hugePageLen)
	if err != nil {
		t.Fatal(err)
	}
	defer unmapFile(mem)
	mem[0] = 1
	if decommit(mem); mem[0] != 0 {
		testenv.Skip(t, "no memory of a file goes back to the system here")
	}
}

func TestTheBoundOfAllocatedMemoryIsAnError(t *testing.T) {
	e := crew(t, 2, Config{})[0]
	held := blocks(t, e)
	_, _, err := e.Alloc(int(AllocMax(2)) + 1)
	if want := fmt.Sprintf("rank 0 has 0.0 MiB, and may have %s at most", mebibytes(AllocMax(2))); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if blocks(t, e) != held || e.Held().Allocated != 0 {
		t.Error("memory is taken")
	}
}

// A place beyond the arena is a protocol error, and no fault.
func TestAPlaceBeyondTheArenaIsRefused(t *testing.T) {
	e := crew(t, 2, Config{})[0]
	l := &e.links[1]
	length := uint64(e.seg.arenaLen())
	for _, c := range []struct{ place, n uint64 }{{length, 1}, {length + 1, 0}, {0, length + 1}, {1, length}, {^uint64(0), 1}, {1, ^uint64(0)}} {
		if b, err := l.shared(c.place, c.n); b != nil || err != nil {
			t.Errorf("place %#x, %#x bytes: got %d bytes, %v", c.place, c.n, len(b), err)
		}
	}
	if b, err := l.shared(length-1, 1); len(b) != 1 || err != nil {
		t.Errorf("the last byte: %d bytes, %v", len(b), err)
	}
}
