package shm

import "time"

// A stagingBuffer is a part of the segment that belongs to a sender. The sender fills
// it, and names it in a frame to each of its readers. It is free when all of them have
// taken that frame.
type stagingBuffer struct {
	readers []stagingReader
}

type stagingReader struct {
	link  *link
	frame uint32 // the number of the frame
}

// free reports whether no reader may read the buffer any more.
func (b *stagingBuffer) free() bool {
	for n := len(b.readers); n > 0; n-- {
		if r := b.readers[n-1]; !r.link.out.hasTaken(r.frame) && r.link.err == nil {
			return false
		}
		b.readers = b.readers[:n-1]
	}
	return true
}

// noBuffer is the number of no staging buffer.
const noBuffer = -1

// The last staging buffers of a rank are reserved, for what must not wait for the
// receivers of other messages: they may wait for this one.
const (
	forSteps     = stagingReserved     // keep these back: for messages of steps
	forEager     = stagingReserved - 1 // for eager tagged messages
	forRequested = 0                   // for messages that a receiver has requested: it is reading
)

// freeBuffer returns the number of a free staging buffer, or noBuffer. It keeps the last
// ones back, as many as reserved says. The lowest ones are preferred, because they are in
// cache.
func (e *Endpoint) freeBuffer(reserved int) int {
	n := len(e.out.staging) - reserved
	for i := range e.out.staging[:n] {
		if e.out.staging[i].free() {
			return i
		}
	}
	return noBuffer
}

// lacksBuffer reports whether a message that finds no staging buffer has found none for
// groupTimeout, since a time that it keeps there. Until then, this rank looks again at
// the end of that time.
func (e *Endpoint) lacksBuffer(since *time.Time) bool {
	now := time.Now()
	if since.IsZero() {
		*since = now
	}
	end := since.Add(groupTimeout)
	if now.Before(end) && (e.polls.lookAgain.IsZero() || end.Before(e.polls.lookAgain)) {
		e.polls.lookAgain = end
	}
	return !now.Before(end)
}

// buffer returns the memory of a staging buffer of this rank.
func (e *Endpoint) buffer(i int) []byte { return e.seg.staging(e.cfg.Rank, i) }

// stage copies as much of p into a staging buffer as it takes.
func (e *Endpoint) stage(i int, p []byte) int {
	e.out.staging[i].readers = e.out.staging[i].readers[:0]
	return copy(e.buffer(i), p)
}

// addReader notes that the last frame to a peer names the staging buffer.
func (e *Endpoint) addReader(i int, l *link) {
	b := &e.out.staging[i]
	b.readers = append(b.readers, stagingReader{l, l.out.written})
}

// staged returns n bytes of a staging buffer of the peer, or false if there are no
// such bytes.
func (l *link) staged(buffer, n uint32) ([]byte, bool) {
	seg := l.e.seg
	if buffer >= uint32(seg.buffers) || n > uint32(seg.stagingLen) {
		return nil, false
	}
	return seg.staging(l.peer, int(buffer))[:n:n], true
}
