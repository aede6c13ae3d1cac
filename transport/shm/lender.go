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
	// movingShare is the part of the time for which regions are moved, at most, by
	// all ranks that share a core.
	movingShare = 4
)

// note notes that bytes are lent.
func (d *lender) note(p []byte) {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	end := begin + uintptr(len(p))
	for n := begin / regionLen; n*regionLen < end; n++ {
		r := &d.regions[n%uintptr(len(d.regions))]
		if r.number != n {
			*r = region{number: n}
		}
		r.sent += int64(min(end, (n+1)*regionLen) - max(begin, n*regionLen))
		if r.sent >= sentFirst && d.due == nil {
			d.due = r
		}
	}
}

// move moves the region that is due, once nobody reads a message of this step: the
// kernel would leave it where it is. It does so beside, for the kernel takes
// milliseconds when all cores are busy.
func (d *lender) move(e *Endpoint) {
	if d.moving || time.Now().Before(d.next) {
		return
	}
	r, number := d.due, d.due.number
	d.due, d.moving = nil, true
	e.others.Go(func() {
		later, took := collapse(number*regionLen, regionLen)
		e.lock()
		defer e.unlock()
		d.moving = false
		d.next = time.Now().Add(time.Duration(movingShare*e.share-1) * took)
		if r.number == number {
			if r.sent = 0; !later {
				r.sent = sentFirst - sentAgain
			}
		}
	})
}
