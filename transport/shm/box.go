package shm

// A box is a piece of the memory that belongs to a sender. It fills the box, and
// names it in a frame to each of its readers; when all have taken that frame,
// the box is free.
type box struct {
	readers []reader
}

type reader struct {
	link   *link
	number uint32 // of the frame
}

// empty reports whether nobody is to read the box any more.
func (b *box) empty() bool {
	for n := len(b.readers); n > 0; n-- {
		if r := b.readers[n-1]; !r.link.took(r.number) && r.link.err == nil {
			return false
		}
		b.readers = b.readers[:n-1]
	}
	return true
}

// noBox is no box.
const noBox = -1

// freeBox returns a box to fill, or noBox. It prefers the same few, which are in
// cache. The last ones are for messages that a receiver has asked for: it is
// reading, so that these boxes come back whatever other ranks do.
func (e *Endpoint) freeBox(asked bool) int {
	n := len(e.boxes)
	if !asked {
		n -= boxesKept
	}
	for i := range e.boxes[:n] {
		if e.boxes[i].empty() {
			return i
		}
	}
	return noBox
}

// fill copies as much of p into a box as it takes.
func (e *Endpoint) fill(i int, p []byte) int {
	e.boxes[i].readers = e.boxes[i].readers[:0]
	return copy(e.seg.box(e.cfg.Rank, i), p)
}

// filled notes that a reader's frame names the box.
func (e *Endpoint) filled(i int, l *link) {
	e.boxes[i].readers = append(e.boxes[i].readers, reader{l, l.tail})
}
