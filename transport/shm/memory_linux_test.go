package shm

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"
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
		{Size: 3, Memory: memory, Token: [16]byte{1}},
		{Size: 2, Memory: other, Token: [16]byte{1}},
	} {
		if e, err := New(c); err == nil {
			e.Close()
			t.Errorf("New(%+v) makes an endpoint", c)
		}
	}
	c := Config{Size: 2, Memory: memory, Token: [16]byte{1}}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := New(c); err == nil || err.Error() != "shm: rank 0 has joined already" {
		t.Errorf("a second rank 0: %v", err)
	}
}

func TestWhatLiesInTheMemoryHasRoom(t *testing.T) {
	if n := unsafe.Sizeof(seat{}); n > seatLen {
		t.Errorf("a seat takes %d bytes of %d", n, seatLen)
	}
	for what, n := range map[string]uintptr{"a slot": unsafe.Sizeof(slot{}), "what the receiver says": unsafe.Sizeof(lane{})} {
		if n != lineLen {
			t.Errorf("%s takes %d bytes, want a line", what, n)
		}
	}
	if n := unsafe.Sizeof(parcel{}); n > inlineMax {
		t.Errorf("a parcel takes %d bytes of %d", n, inlineMax)
	}
	if at := unsafe.Offsetof(slot{}.body); at%8 != 0 {
		t.Errorf("the words of a cast lie at byte %d of its slot, want a multiple of 8", at)
	}
}

func TestTheMemoryOfAJobIsBounded(t *testing.T) {
	for size := 1; size <= ranksMost; size++ {
		l := layoutOf(size)
		lanes := size * size * (1 + l.depth) * lineLen
		if boxes := size * l.boxes * l.boxLen; boxes > roomMost || l.boxLen < boxMin || l.boxes < 4*boxesKept {
			t.Fatalf("%d ranks have %d boxes of %d bytes each", size, l.boxes, l.boxLen)
		}
		if lanes > 192<<20 || l.depth < 2 || l.depth&(l.depth-1) != 0 {
			t.Fatalf("%d ranks have lanes of %d slots, %d bytes altogether", size, l.depth, lanes)
		}
	}
	for size, want := range map[int]int64{2: 4, 8: 16, 64: 69} {
		if n, err := MemoryLen(size); err != nil || n>>20 != want {
			t.Errorf("%d ranks take %d bytes, %v: want %d MiB", size, n, err, want)
		}
	}
	for _, size := range []int{-1, 0, ranksMost + 1} {
		if _, err := NewMemory(size, [16]byte{}); err == nil {
			t.Errorf("%d ranks have memory", size)
		}
	}
}

// On a kernel without memfd, a file without a name will do, if there is room.
func TestAFullDevShmIsAnErrorInTime(t *testing.T) {
	none := errors.New("no memfd here")
	f, err := createFile(1<<20, none)
	if err != nil {
		t.Skip("this system allows no file in /dev/shm: ", err)
	}
	defer f.Close()
	mem, own, err := mapMemory(f)
	if err != nil {
		t.Fatal(err)
	}
	defer unmapMemory(mem, own)
	mem[1<<20-1] = 1
	if all := names(t); all != "[]" {
		t.Errorf("/dev/shm holds %s", all)
	}
	if f, err := createFile(1<<50, none); err == nil {
		f.Close()
		t.Error("a petabyte is there")
	} else if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "1073741824.0 MiB of shared memory: ") {
		t.Errorf("got %v", err)
	}
}
