package shm

import "unsafe"

// A lender sees to it that memory which is lent again and again lies in huge
// pages. The kernel looks up every page before another process reads it, which
// takes as long as copying it: out of huge pages, of 2 MiB instead of 4 KiB, that
// copy is twice as fast (13 and 28 GB/s, on a machine of November 2026).
type lender struct {
	regions [256]region // by address, modulo their number
}

// A region is a piece of memory that could be one huge page.
type region struct {
	number uintptr // its address, in regions
	lends  uint32
}

const (
	regionLen = 2 << 20
	// lendsFirst is how often something of a region is lent before it is moved:
	// that takes as long as some hundred messages of a page.
	lendsFirst = 4
	// lendsAgain is after how many the region is looked at again: the Go runtime
	// may have returned a part of it to the system.
	lendsAgain = 1 << 12
)

// lend notes that p is lent.
func (d *lender) lend(p []byte) {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	for n := first / regionLen; n <= (first+uintptr(len(p))-1)/regionLen; n++ {
		r := &d.regions[n%uintptr(len(d.regions))]
		if r.number != n {
			*r = region{number: n}
		}
		if r.lends++; r.lends%lendsAgain == lendsFirst {
			collapse(n*regionLen, regionLen)
		}
	}
}
