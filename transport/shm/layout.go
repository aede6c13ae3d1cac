package shm

import "fmt"

const (
	lineLen   = 64       // bytes that travel between cores at once
	headerLen = 4 << 10  // of the memory
	seatLen   = 16 << 10 // what a rank says of itself
	boxesKept = 2        // boxes that are for messages whose receiver has asked for them
	boxMin    = 4 << 10

	// roomMost bounds all boxes of a job together.
	roomMost = 64 << 20
	// ranksMost is how many ranks a job has at most: its lanes then take 192 MiB.
	ranksMost = 1024
)

// A layout says what lies where in the memory of a job. It follows from the
// number of ranks:
//
//	header · p seats · p·p lanes · p times the casts of a rank · p times its boxes
//
// A lane is a queue of depth slots of one line each from one rank to another,
// and a line in which the receiver says how far it has come.
type layout struct {
	size   int // ranks
	depth  int // slots of a lane
	boxes  int // of a rank
	boxLen int
}

func layoutOf(size int) layout {
	l := layout{size: size, depth: 16, boxes: 32, boxLen: 64 << 10}
	for l.depth > 2 && l.depth*size*size > 1<<20/2 { // lanes of 32 MiB, then more
		l.depth /= 2
	}
	for l.boxLen > boxMin && size*l.boxes*l.boxLen > roomMost {
		l.boxLen /= 2
	}
	if size*l.boxes*l.boxLen > roomMost {
		l.boxes = max(8, roomMost/(size*l.boxLen))
	}
	return l
}

func (l layout) laneLen() int { return (1 + l.depth) * lineLen }
func (l layout) lanes() int   { return headerLen + l.size*seatLen }
func (l layout) casts() int   { return l.lanes() + l.size*l.size*l.laneLen() }
func (l layout) room() int    { return roundUp(l.casts()+l.size*l.castLen(), headerLen) }
func (l layout) total() int   { return l.room() + l.size*l.boxes*l.boxLen }

func (l layout) castLen() int {
	if l.size <= castMin || l.size > castRanks {
		return 0
	}
	return castDepth * lineLen
}

func (l layout) seat(rank int) int { return headerLen + rank*seatLen }

// lane returns where the lane from one rank to another lies. Those to one rank
// lie together: it looks at them in turn.
func (l layout) lane(from, to int) int { return l.lanes() + (to*l.size+from)*l.laneLen() }

func (l layout) box(rank, i int) int { return l.room() + (rank*l.boxes+i)*l.boxLen }

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// MemoryLen returns how many bytes a job of so many ranks takes, all together:
//
//	4 KiB + p·17 KiB + p²·(1+d)·64 B + p·b·s
//
// where d, the depth of a lane, is 16 up to 181 ranks and 2 from 512 on, and b
// boxes of s bytes are 32 of 64 KiB up to 32 ranks; beyond, all boxes together
// are 64 MiB. So 2 ranks take 4 MiB, 8 take 16 MiB, 64 take 69 MiB.
func MemoryLen(size int) (int64, error) {
	if size < 1 || size > ranksMost {
		return 0, fmt.Errorf("shm: %d ranks: want 1 to %d", size, ranksMost)
	}
	return int64(layoutOf(size).total()), nil
}
