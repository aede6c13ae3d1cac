package shm

import "testing"

func TestABoxIsFreeHoweverManyFramesHaveFollowed(t *testing.T) {
	ends := job(t, 2)
	l := &ends[0].links[1]
	for _, more := range []uint32{0, 1, 1<<31 - 2, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 17} {
		read := box{readers: []reader{{l, 1}}}
		l.tail, l.free = 1+more, 1+more
		l.out.taken.Store(l.free)
		if !read.empty() {
			t.Errorf("%d frames later, the box seems held", more)
		}
		l.tail++
		filled := box{readers: []reader{{l, l.tail}}}
		if filled.empty() {
			t.Errorf("%d frames later, a box that is to be read seems free", more)
		}
	}
}
