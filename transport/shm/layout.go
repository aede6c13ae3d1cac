package shm

import "fmt"

// Capacity is how many short messages a rank may send to another one that has received none
// of them: the cells of a ring, of which there are fewer in a job of more than 181 ranks.
const Capacity = 16

const (
	headerLen       = 4 << 10 // bytes of the segment's header
	stagingReserved = 3       // staging buffers of a rank that are not for messages of steps
	stagingLenMin   = 4 << 10

	// stagingTotalMax bounds the staging buffers of all ranks together, in bytes.
	stagingTotalMax = 64 << 20
	// ranksMax is how many ranks a job may have: its rings take 192 MiB then.
	ranksMax = 1024

	// arenaMax bounds the arena of a rank, and arenasMax those of all ranks together, in
	// bytes. Of both, only addresses are taken, and on systems of 32 bits there are few.
	arenaMax        = arenasMax >> 6
	arenasMax int64 = 1 << (28 + 14*(^uint(0)>>63))
)

// arenaLimit bounds the arena of a rank. Tests lower it: an emulator of processors keeps
// a record of each page of addresses.
var arenaLimit int64 = arenaMax

// A layout says what lies where in the segment of a job. It follows from the number
// of ranks p:
//
//	header · p rank states · p·p rings · p·p pair cells · multicast cells of p ranks · staging buffers of p ranks
//
// A ring has one line for the receiver's counters, and depth cells. Behind the segment
// lie the arenas of the ranks, in the same file: see arena.go.
type layout struct {
	size       int // ranks
	depth      int // cells of a ring
	buffers    int // staging buffers of a rank
	stagingLen int // bytes of a staging buffer
}

func layoutOf(size int) layout {
	l := layout{size: size, depth: Capacity, buffers: 32, stagingLen: 64 << 10}
	for l.depth > 2 && l.depth*size*size > 1<<20/2 { // rings of 32 MiB, then more
		l.depth /= 2
	}
	for l.stagingLen > stagingLenMin && size*l.buffers*l.stagingLen > stagingTotalMax {
		l.stagingLen /= 2
	}
	if size*l.buffers*l.stagingLen > stagingTotalMax {
		l.buffers = max(8, stagingTotalMax/(size*l.stagingLen))
	}
	return l
}

func (l layout) ringLen() int { return (1 + l.depth) * lineLen }

// pairLen returns the length of a pair cell with the word that says what was taken.
func (l layout) pairLen() int {
	if l.size != pairRanks {
		return 0
	}
	return pairLen
}

func (l layout) multicastLen() int {
	if l.size <= multicastMin || l.size > multicastRanks {
		return 0
	}
	return multicastDepth * lineLen
}

// The offsets of the parts.
func (l layout) ringsAt() int     { return headerLen + l.size*rankStateLen }
func (l layout) pairsAt() int     { return l.ringsAt() + l.size*l.size*l.ringLen() }
func (l layout) multicastAt() int { return l.pairsAt() + l.size*l.size*l.pairLen() }
func (l layout) stagingAt() int {
	return roundUp(l.multicastAt()+l.size*l.multicastLen(), headerLen)
}
func (l layout) total() int { return l.stagingAt() + l.size*l.buffers*l.stagingLen }

func (l layout) rankStateOf(rank int) int { return headerLen + rank*rankStateLen }

// ringOf returns the offset of the ring from one rank to another. The rings to one
// rank are adjacent: it polls them in turn.
func (l layout) ringOf(from, to int) int { return l.ringsAt() + (to*l.size+from)*l.ringLen() }

// pairOf returns the offset of the pair cell that one rank holds at first, and shares with
// another.
func (l layout) pairOf(rank, peer int) int { return l.pairsAt() + (rank*l.size+peer)*l.pairLen() }

func (l layout) multicastOf(rank int) int { return l.multicastAt() + rank*l.multicastLen() }

func (l layout) stagingOf(rank, i int) int {
	return l.stagingAt() + (rank*l.buffers+i)*l.stagingLen
}

// arenaLen returns the length of a rank's arena.
func (l layout) arenaLen() int {
	return int(min(arenaLimit, arenasMax/int64(l.size)/hugePageLen*hugePageLen))
}

// arenaOf returns where the arena of a rank begins in the file.
func (l layout) arenaOf(rank int) int64 {
	return int64(roundUp(l.total(), hugePageLen)) + int64(rank)*int64(l.arenaLen())
}

// fileLen returns the length of the file. Of the arenas, no memory is taken at first.
func (l layout) fileLen() int64 { return l.arenaOf(l.size) }

// AllocMax returns how many bytes a rank of a job may have from [Endpoint.Alloc] at a
// time: 64 GiB up to 64 ranks, and beyond, those of all ranks together are 4 TiB. On
// systems of 32 bits it is 4 MiB, and 256 MiB together.
func AllocMax(size int) int64 { return int64(layoutOf(size).arenaLen()) }

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// MemoryLen returns the bytes that the segment of a job takes from the beginning:
//
//	4 KiB + p·41 KiB + p²·(1+d)·64 B + p·b·s
//
// and 4608 B for the pair cells of 2 ranks,
// where d, the depth of a ring, is 16 up to 181 ranks and 2 from 512 on, and the b
// staging buffers of a rank, of s bytes, are 32 of 64 KiB up to 32 ranks; beyond,
// those of all ranks together are 64 MiB. So 2 ranks take 4 MiB, 8 take 16 MiB, and
// 64 take 70 MiB.
func MemoryLen(size int) (int64, error) {
	if size < 1 || size > ranksMax {
		return 0, fmt.Errorf("shm: %d ranks: want 1 to %d", size, ranksMax)
	}
	return int64(layoutOf(size).total()), nil
}
