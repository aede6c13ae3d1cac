package shm

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/chorale-go/chorale/internal/testenv"
)

func TestAConfigIsChecked(t *testing.T) {
	memory, err := NewMemory(2, [16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	other, err := NewMemory(3, [16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, c := range []Config{
		{}, {Rank: 1, Size: 1}, {Rank: -1, Size: 2}, {Size: 2},
		{Size: 2, Memory: memory},
		{Size: 3, Memory: memory, Job: [16]byte{1}},
		{Size: 2, Memory: other, Job: [16]byte{1}},
	} {
		if e, err := New(c); err == nil {
			e.Close()
			t.Errorf("New(%+v) makes an endpoint", c)
		}
	}
	c := Config{Size: 2, Memory: memory, Job: [16]byte{1}}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := New(c); err == nil || err.Error() != "shm: rank 0 has joined already" {
		t.Errorf("a second rank 0: %v", err)
	}
}

// Sizes are asserted where the types are; the compiler checks them.
func TestAtomicWordsOfTheSegmentAreAligned(t *testing.T) {
	for what, at := range map[string]uintptr{
		"the body of a cell":             unsafe.Offsetof(cell{}.body),
		"the multicast count of a ring":  unsafe.Offsetof(ring{}.multicasts),
		"the address of a CMA probe":     unsafe.Offsetof(rankState{}.cma) + unsafe.Offsetof(cmaProbe{}.address),
		"the rank states in the segment": headerLen,
	} {
		if at%8 != 0 {
			t.Errorf("%s is at byte %d, want a multiple of 8", what, at)
		}
	}
}

func TestTheMemoryOfAJobIsBounded(t *testing.T) {
	for size := 1; size <= ranksMax; size++ {
		l := layoutOf(size)
		rings := size * size * l.ringLen()
		if staging := size * l.buffers * l.stagingLen; staging > stagingTotalMax || l.stagingLen < stagingLenMin || l.buffers < 4*stagingReserved {
			t.Fatalf("%d ranks have %d staging buffers of %d bytes each", size, l.buffers, l.stagingLen)
		}
		if rings > 192<<20 || l.depth < 2 || l.depth&(l.depth-1) != 0 {
			t.Fatalf("%d ranks have rings of %d cells, %d bytes altogether", size, l.depth, rings)
		}
	}
	for size, want := range map[int]int64{2: 4, 8: 16, 64: 70} {
		if n, err := MemoryLen(size); err != nil || n>>20 != want {
			t.Errorf("%d ranks take %d bytes, %v: want %d MiB", size, n, err, want)
		}
	}
	for _, size := range []int{-1, 0, ranksMax + 1} {
		if _, err := NewMemory(size, [16]byte{}); err == nil {
			t.Errorf("%d ranks have memory", size)
		}
	}
}

// On a kernel without memfd, a file without a name will do, if there is room.
func TestAFullDevShmIsAnErrorInTime(t *testing.T) {
	none := errors.New("no memfd here")
	f, err := createFile(1<<20, 1<<20, none)
	if err != nil {
		testenv.Skip(t, "this system allows no file in /dev/shm: %v", err)
	}
	defer f.Close()
	mem, err := mapFile(f, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer unmapFile(mem)
	mem[1<<20-1] = 1
	if all := names(t); all != "[]" {
		t.Errorf("/dev/shm holds %s", all)
	}
	if f, err := createFile(1<<50, 1<<50, none); err == nil {
		f.Close()
		t.Error("a petabyte is there")
	} else if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "1073741824.0 MiB of shared memory: ") {
		t.Errorf("got %v", err)
	}
}
