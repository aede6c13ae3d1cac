package shm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/chorale-go/chorale/internal/testenv"
)

// inHugePages returns how many KiB of the mapping in which p lies are in huge
// pages.
func inHugePages(t *testing.T, p []byte) int {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		testenv.Skip(t, "this system does not say what lies in huge pages: %v", err)
	}
	at := uintptr(unsafe.Pointer(&p[0]))
	here := false
	for line := range strings.Lines(string(smaps)) {
		var from, to uintptr
		var kib int
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			here = from <= at && at < to
		}
		if n, _ := fmt.Sscanf(line, "AnonHugePages: %d kB", &kib); n == 1 && here {
			return kib
		}
	}
	testenv.Skip(t, "this system does not say what lies in huge pages")
	return 0
}

func TestMemoryThatIsSentFromAgainAndAgainMovesToHugePages(t *testing.T) {
	const size = 4 * hugePageLen
	mapped, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	at := int(uintptr(unsafe.Pointer(&mapped[0])))
	data := mapped[roundUp(at, hugePageLen)-at:][:2*hugePageLen]
	fill := func() { copy(data, bytes.Repeat([]byte("sent"), len(data)/4)) }
	before := inHugePages(t, data)
	if fill(); unix.Madvise(data, unix.MADV_COLLAPSE) != nil || inHugePages(t, data) == before {
		t.Skip("this kernel moves no memory to huge pages on request, or has none free; an emulator only says that it does")
	}
	if err := unix.Madvise(data, unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	fill()
	want := bytes.Clone(data)
	before = inHugePages(t, data)

	ends := job(t, 2)
	into := make([]byte, len(data))
	sent := make(chan error)
	for late := time.Now().Add(20 * time.Second); inHugePages(t, data) < before+len(data)>>10; {
		if time.Now().After(late) {
			if unix.Madvise(data, unix.MADV_COLLAPSE) != nil {
				t.Skip("this kernel has no huge page free any more")
			}
			t.Fatal("memory from which messages were sent for 20 s is on small pages")
		}
		go func() { sent <- send(ends[0], sig, 1, data) }()
		if err := receive(context.Background(), ends[1], sig, 0, into); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, want) || !bytes.Equal(into, want) {
			t.Fatal("another message arrived")
		}
	}
}

// The kernel moves nothing of a mapping that is to have small pages.
func TestMemoryThatCannotBeMovedIsTriedOnce(t *testing.T) {
	mapped, err := unix.Mmap(-1, 0, 2*hugePageLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	if err := unix.Madvise(mapped, unix.MADV_NOHUGEPAGE); err != nil {
		t.Skipf("this kernel has no huge pages: %v", err)
	}
	e := job(t, 2)[0]
	at := int(uintptr(unsafe.Pointer(&mapped[0])))
	data := mapped[roundUp(at, hugePageLen)-at:][:hugePageLen]
	copy(data, bytes.Repeat([]byte("sent"), len(data)/4))
	if unix.Madvise(data, unix.MADV_COLLAPSE) == nil {
		t.Skip("an emulator says that it has moved what is to have small pages")
	}
	tried := 0
	for range 3 * sentFirst / hugePageLen {
		e.engine.Lock()
		e.out.promoter.note(data)
		if e.out.promoter.due != nil {
			tried++
			e.out.promoter.next = time.Time{}
			e.out.promoter.move(e)
		}
		e.unlock()
		until(e, func() bool { return !e.out.promoter.moving })
	}
	if tried != 1 {
		t.Errorf("it was tried %d times", tried)
	}
	if e.HugePagesDenied() == nil {
		t.Error("nothing says that memory stays in small pages")
	}
	if n := inHugePages(t, data); n != 0 {
		t.Errorf("%d KiB lie in huge pages", n)
	}
}
