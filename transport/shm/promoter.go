package shm

import (
	"cmp"
	"time"
	"unsafe"
)

// A promoter moves memory from which messages go by rendezvous again and again to huge
// pages. The kernel looks up every page that another process reads, which takes as
// long as copying it: out of huge pages, of 2 MiB instead of 4 KiB, that copy is twice
// as fast (28 and 13 GB/s, on a machine of November 2026).
type promoter struct {
	pages  [256]hugePage // by address, modulo their number
	due    *hugePage     // that is to be moved next
	moving bool          // a goroutine moves one
	next   time.Time     // before which none is moved
	denied error         // why the kernel has not moved one, the first time
}

// An extent is a piece of memory that could be one huge page.
type hugePage struct {
	number uintptr // its address, in pages
	sent   int64   // bytes of messages that lay there, since it was last moved
}

const (
	hugePageLen = 2 << 20
	// sentFirst is after how many bytes an extent is moved: that takes half a
	// millisecond, twice what it would have gained by then.
	sentFirst = 3 * hugePageLen
	// sentAgain is after how many more it is tried again: the Go runtime may have
	// returned a part of it to the system, or the system have found a huge page.
	sentAgain = 1 << 32
	// movesMax is how many adjacent pages are moved at once.
	movesMax = 8
	// movingShare is the reciprocal of the part of the time for which pages are moved,
	// at most, by all ranks that share a core.
	movingShare = 4
)

// note notes that bytes go by rendezvous.
func (d *promoter) note(p []byte) {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	end := begin + uintptr(len(p))
	for n := begin / hugePageLen; n*hugePageLen < end; n++ {
		x := d.page(n)
		if x.number != n {
			*x = hugePage{number: n}
		}
		x.sent += int64(min(end, (n+1)*hugePageLen) - max(begin, n*hugePageLen))
		if x.sent >= sentFirst && d.due == nil {
			d.due = x
		}
	}
}

// move moves the extent that is due, and those after it that are, once no peer reads a
// message of this step: the kernel would leave them where they are. It does so in a
// goroutine, because the kernel takes milliseconds when all cores are busy.
func (d *promoter) move(e *Endpoint) {
	if d.moving || time.Now().Before(d.next) {
		return
	}
	first, n := d.due.number, uintptr(1)
	for n < movesMax && d.isDue(first+n) {
		n++
	}
	d.due, d.moving = nil, true
	e.engine.GoUnlocked(func() {
		later, cost, denied := collapse(first*hugePageLen, n*hugePageLen)
		e.engine.Lock()
		defer e.unlock()
		d.moving, d.denied = false, cmp.Or(d.denied, denied)
		d.next = time.Now().Add(time.Duration(movingShare*e.wait.RanksPerCore-1) * cost)
		for number := first; number < first+n; number++ {
			if x := d.page(number); x.number == number {
				if x.sent = 0; !later {
					x.sent = sentFirst - sentAgain
				}
			}
		}
	})
}

// extent returns the entry of an extent, where another may be.
func (d *promoter) page(number uintptr) *hugePage { return &d.pages[number%uintptr(len(d.pages))] }

func (d *promoter) isDue(number uintptr) bool {
	x := d.page(number)
	return x.number == number && x.sent >= sentFirst
}
