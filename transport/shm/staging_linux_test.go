package shm

import "testing"

func TestAStagingBufferIsFreeHoweverManyFramesHaveFollowed(t *testing.T) {
	ends := job(t, 2)
	l := &ends[0].links[1]
	for _, more := range []uint32{0, 1, 1<<31 - 2, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 17} {
		read := stagingBuffer{readers: []stagingReader{{l, 1}}}
		l.out.written, l.out.takenSeen = 1+more, 1+more
		l.out.taken.Store(l.out.takenSeen)
		if !read.free() {
			t.Errorf("%d frames later, a buffer that was read seems to be in use", more)
		}
		l.out.written++
		filled := stagingBuffer{readers: []stagingReader{{l, l.out.written}}}
		if filled.free() {
			t.Errorf("%d frames later, a buffer that is not read yet seems free", more)
		}
	}
}
