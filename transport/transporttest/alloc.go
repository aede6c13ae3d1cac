package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// allocClaims: memory that an endpoint allocates, and messages from there.
var allocClaims = []claim{
	{"AllocatedMemoryIsZeroAndItsOwn", testAlloc},
	{"OnlyAllocatedMemoryIsFreed", testFree},
	{"MessagesFromAllocatedMemoryArrive", testAllocatedMessages},
	{"TaggedMessagesFromAllocatedMemoryArrive", testAllocatedTagged},
	{"MemoryMayBeFreedWhenItsMessageIsSent", testFreeAfterSend},
	{"AttachedMemoryIsThatOfTheOtherRank", testAttach},
	{"AClosedEndpointAllocatesNothing", testAllocClosed},
}

// allocSizes are sizes around those of pages and huge pages.
var allocSizes = []int{1, 64, 4096, 4097, 100 << 10, 1<<20 + 1, 2 << 20, 5 << 20}

func testAlloc(t *testing.T, start Start) {
	e := open(t, start, 2).ends[0]
	for round := range 2 { // the second one gets what the first has written to
		var all [][]byte
		want := 0
		for i, size := range allocSizes {
			b, _, err := e.Alloc(size)
			switch {
			case err != nil:
				t.Fatalf("%d bytes: %v", size, err)
			case len(b) != size || cap(b) != size:
				t.Fatalf("%d bytes: got %d, with a capacity of %d", size, len(b), cap(b))
			case uintptr(unsafe.Pointer(&b[0]))%4096 != 0:
				t.Errorf("%d bytes do not begin on a page", size)
			case len(bytes.Trim(b, "\x00")) > 0:
				t.Errorf("round %d: %d bytes are not zero", round, size)
			}
			all, want = append(all, pattern(b, i)), want+size
			if held := e.Held().Allocated; held < want || held > want+(i+1)*4096 {
				t.Errorf("%d bytes are allocated, and %d are held", want, held)
			}
		}
		for i := range all {
			b := all[(i+3)%len(all)] // in another order
			if !bytes.Equal(b, pattern(make([]byte, len(b)), (i+3)%len(all))) {
				t.Errorf("%d bytes have changed as others were written", len(b))
			}
			if err := e.Free(b); err != nil {
				t.Errorf("%d bytes: %v", len(b), err)
			}
		}
		if held := e.Held().Allocated; held != 0 {
			t.Errorf("everything is freed, and %d bytes are held", held)
		}
	}
	if b, _, err := e.Alloc(0); err != nil || len(b) != 0 || e.Free(b) != nil {
		t.Errorf("no bytes: %v, %v", b, err)
	}
	if _, _, err := e.Alloc(-1); err == nil {
		t.Error("-1 bytes are allocated")
	}
}

func testFree(t *testing.T, start Start) {
	j := open(t, start, 2)
	e := j.ends[0]
	b, _, err := e.Alloc(10000)
	other, _, err2 := j.ends[1].Alloc(10)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for what, b := range map[string][]byte{"foreign": make([]byte, 10), "another rank's": other, "the middle of it": b[5000:]} {
		if err := e.Free(b); !errors.Is(err, transport.ErrNotAllocated) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := e.Free(b[:1]); err != nil { // the first byte is enough
		t.Error(err)
	}
	if err := e.Free(b[:1]); !errors.Is(err, transport.ErrNotAllocated) {
		t.Errorf("freed twice: %v", err)
	}
}

// allocated returns allocated memory with a pattern.
func (j *job) allocated(rank, size, seed int) []byte {
	b, _, err := j.ends[rank].Alloc(size)
	if err != nil {
		j.Fatal(err)
	}
	return pattern(b, seed)
}

// testAllocatedMessages has every rank send to the next, and rank 0 to all, out of
// allocated memory and into it: as it is, and combined. The messages begin anywhere.
func testAllocatedMessages(t *testing.T, start Start) {
	const p = 3
	j := open(t, start, p)
	for _, size := range allocSizes {
		const skip = 3
		var in, out [p][]byte
		for rank := range p {
			in[rank], out[rank] = j.allocated(rank, size+skip, rank)[skip:], j.allocated(rank, size, 7)
		}
		j.each(func(ctx context.Context, e transport.Endpoint) error {
			rank := e.Rank()
			from := (rank + p - 1) % p
			want := make([]byte, size)
			mix(want, out[rank], in[from])
			if err := e.Exchange(ctx, transport.Step{
				Signature: sig,
				Sends:     []transport.Send{{To: []int{(rank + 1) % p}, Data: in[rank]}},
				Recvs:     []transport.Recv{{From: from, Into: out[rank], Held: out[rank], Combine: mix, Elem: 1}},
			}); err != nil {
				return err
			}
			if !bytes.Equal(out[rank], want) {
				return fmt.Errorf("%d bytes: rank %d has combined something else", size, rank)
			}
			if rank == 0 {
				return e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1, 2}, Data: in[0]}}})
			}
			if err := recv(ctx, e, sig, 0, out[rank]); err != nil {
				return err
			}
			if !bytes.Equal(out[rank], in[0]) {
				return fmt.Errorf("%d bytes: rank %d has received something else", size, rank)
			}
			return nil
		})
		for rank := range p {
			if !bytes.Equal(in[rank], pattern(make([]byte, size+skip), rank)[skip:]) {
				t.Errorf("%d bytes: the data of rank %d's send was written", size, rank)
			}
		}
	}
}

func testAllocatedTagged(t *testing.T, start Start) {
	j := open(t, start, 2)
	for _, size := range allocSizes {
		in, out := j.allocated(0, size, size), j.allocated(1, size, 0)
		j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
			return sendTagged(ctx, e, 1, match, in)
		}, func(ctx context.Context, e transport.Endpoint) error {
			_, err := e.Recv(ctx, 0, match, "bytes", out)
			return err
		})
		if !bytes.Equal(in, out) {
			t.Errorf("%d bytes arrived changed", size)
		}
	}
}

// testFreeAfterSend has rank 0 free the memory of each message as soon as it is sent, and
// write something else there. Rank 1 receives them in two contexts, one after the other,
// so that messages wait.
func testFreeAfterSend(t *testing.T, start Start) {
	j := open(t, start, 2)
	const size = 300 << 10
	sender := func(number uint32) rankFunc {
		return func(ctx context.Context, e transport.Endpoint) error {
			for i := range 20 {
				b, _, err := e.Alloc(size)
				if err != nil {
					return err
				}
				if err := send(ctx, e, inContext(number), 1, pattern(b, i)); err != nil {
					return err
				}
				clear(b)
				if err := e.Free(b); err != nil {
					return err
				}
			}
			return nil
		}
	}
	both := func(ctx context.Context, e transport.Endpoint) error {
		second := make(chan error)
		go func() { second <- sender(2)(ctx, e) }()
		return errors.Join(sender(1)(ctx, e), <-second)
	}
	j.mustAll(both, func(ctx context.Context, e transport.Endpoint) error {
		into, want := make([]byte, size), make([]byte, size)
		for _, number := range []uint32{2, 1} {
			for i := range 20 {
				if err := recv(ctx, e, inContext(number), 0, into); err != nil {
					return err
				}
				if !bytes.Equal(into, pattern(want, i)) {
					return fmt.Errorf("context %d: message %d arrived changed", number, i)
				}
			}
		}
		return nil
	})
}

// testAttach has rank 1 read and write memory of rank 0, also when that has left. Where
// the ranks share no memory, Attach says so.
func testAttach(t *testing.T, start Start) {
	j := open(t, start, 2)
	owner, other := j.ends[0], j.ends[1]
	const size = 3 << 20
	_, first, err := owner.Alloc(100)
	mine, place, err2 := owner.Alloc(size)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	theirs, err := other.Attach(0, place, size)
	if errors.Is(err, transport.ErrNotShared) {
		return
	}
	if err != nil || len(theirs) != size || cap(theirs) != size {
		t.Fatalf("got %d bytes, %v", len(theirs), err)
	}
	if b, err := other.Attach(0, first, 100); err != nil || len(b) != 100 {
		t.Errorf("the first memory: %d bytes, %v", len(b), err)
	}
	for _, rank := range []int{-1, 1, 2} {
		if _, err := other.Attach(rank, place, 1); err == nil {
			t.Errorf("rank 1 attaches memory of rank %d", rank)
		}
	}
	for _, n := range []int{-1, math.MaxInt} {
		if _, err := other.Attach(0, place, n); err == nil {
			t.Errorf("%d bytes are attached", n)
		}
	}
	// Messages order the accesses.
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		pattern(mine, 1)
		if err := send(ctx, e, sig, 1, nil); err != nil {
			return err
		}
		if err := recv(ctx, e, sig, 1, nil); err != nil {
			return err
		}
		if !bytes.Equal(mine, pattern(make([]byte, size), 2)) {
			return errors.New("rank 0 does not see what rank 1 has written")
		}
		return nil
	}, func(ctx context.Context, e transport.Endpoint) error {
		if err := recv(ctx, e, sig, 0, nil); err != nil {
			return err
		}
		if !bytes.Equal(theirs, pattern(make([]byte, size), 1)) {
			return errors.New("rank 1 does not see what rank 0 has written")
		}
		pattern(theirs, 2)
		return send(ctx, e, sig, 0, nil)
	})
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(theirs, pattern(make([]byte, size), 2)) {
		t.Error("the memory has changed as its rank left")
	}
}

func testAllocClosed(t *testing.T, start Start) {
	j := open(t, start, 2)
	e := j.ends[0]
	const size = 3 << 20
	b := j.allocated(0, size, 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Alloc(10); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if !bytes.Equal(b, pattern(make([]byte, size), 1)) {
		t.Error("what was allocated has changed")
	}
	if err := e.Free(b); err != nil {
		t.Error(err)
	}
	if err := e.Free(make([]byte, 10)); !errors.Is(err, transport.ErrNotAllocated) {
		t.Errorf("foreign memory: %v", err)
	}
	if held := e.Held().Allocated; held != 0 {
		t.Errorf("everything is freed, and %d bytes are held", held)
	}
}
