package shm

import (
	"time"
	"unsafe"
)

// A lender sees to it that memory from which long messages are sent again and
// again lies in huge pages. The kernel looks up every page that another process
// reads, which takes as long as copying it: out of huge pages, of 2 MiB instead of
// 4 KiB, that copy is twice as fast (28 and 13 GB/s, on a machine of November 2026).
type lender struct {
	regions [256]region // by address, modulo their number
	due     *region     // that is to be moved next
	moving  bool        // a goroutine moves one
	next    time.Time   // before which it moves no other
}

// A region is a piece of memory that could be one huge page.
type region struct {
	number uintptr // its address, in regions
	sent   int64   // bytes of messages that lie there, since it was last moved
}

const (
	regionLen = 2 << 20
	// sentFirst is after how many bytes a region is moved: that takes half a
	// millisecond, twice what it would have gained by then.
	sentFirst = 3 * regionLen
	// sentAgain is after how many more it is tried again: the Go runtime may have
	// returned a part of it to the system, or the system have found a huge page.
	sentAgain = 1 << 32
	// movesMost is how many regions that follow each other are moved at once.
	movesMost = 8
	// movingShare is the part of the time for which regions are moved, at most, by
	// all ranks that share a core.
	movingShare = 4
)

// note notes that bytes are lent.
func (d *lender) note(p []byte) {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	end := begin + uintptr(len(p))
	for n := begin / regionLen; n*regionLen < end; n++ {
		r := d.region(n)
		if r.number != n {
			*r = region{number: n}
		}
		r.sent += int64(min(end, (n+1)*regionLen) - max(begin, n*regionLen))
		if r.sent >= sentFirst && d.due == nil {
			d.due = r
		}
	}
}

// move moves the region that is due, and those after it that are, once nobody
// reads a message of this step: the kernel would leave them where they are. It does
// so beside, for the kernel takes milliseconds when all cores are busy.
func (d *lender) move(e *Endpoint) {
	if d.moving || time.Now().Before(d.next) {
		return
	}
	first, n := d.due.number, uintptr(1)
	for n < movesMost && d.isDue(first+n) {
		n++
	}
	d.due, d.moving = nil, true
	e.others.Go(func() {
		later, took := collapse(first*regionLen, n*regionLen)
		e.lock()
		defer e.unlock()
		d.moving = false
		d.next = time.Now().Add(time.Duration(movingShare*e.share-1) * took)
		for number := first; number < first+n; number++ {
			if r := d.region(number); r.number == number {
				if r.sent = 0; !later {
					r.sent = sentFirst - sentAgain
				}
			}
		}
	})
}

// region returns the place of a region, where another may be.
func (d *lender) region(number uintptr) *region { return &d.regions[number%uintptr(len(d.regions))] }

func (d *lender) isDue(number uintptr) bool {
	r := d.region(number)
	return r.number == number && r.sent >= sentFirst
}
