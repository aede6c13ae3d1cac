package algo

import (
	"math/bits"

	"github.com/chorale-go/chorale/sched"
)

// A line is a row of n ranks: first, first+stride, first+2·stride, …. All ranks
// are one, and so is each row or column of a mesh.
type line struct{ first, stride, n int }

// rank returns the rank at position i of the line.
func (l line) rank(i int) int { return l.first + i*l.stride }

// parts returns the ranks that positions lo ≤ i < hi stand for: in a mesh whose
// ranks are numbered row by row, a place of a column stands for its row.
func (l line) parts(lo, hi int) sched.Range {
	base := l.first - l.first%l.stride
	return sched.Range{Lo: base + lo*l.stride, Hi: base + hi*l.stride}
}

// part returns the parts that position i of a row stands for, where i may be as much as
// the length of the row too small or too large.
func part(l partRow, i int) sched.Range {
	i = (i + l.size()) % l.size()
	return l.parts(i, i+1)
}

// neighbors returns the ranks after and before position i, the ends being
// neighbors too.
func neighbors(l sequence, i int) (next, previous int) {
	n := l.size()
	return l.rank((i + 1) % n), l.rank((i - 1 + n) % n)
}

// An interval is the positions lo ≤ i < hi of a line, and their holder: the
// position that has what all of them are to get, or that gets what all of them
// have.
//
// Halving intervals until they are single positions gives a binomial tree: the
// holder keeps its own half and serves the other through a partner, which is
// that half's holder. Every half is a run of neighbors, for any root and any
// number of positions. So combinations stay in rank order, and the blocks that
// several ranks own are one range. Where the size is a power of two, the
// partner is the holder XOR half the size, as in the books.
type interval struct{ lo, hi, holder int }

func (v interval) size() int      { return v.hi - v.lo }
func (v interval) has(i int) bool { return v.lo <= i && i < v.hi }

// halves cuts an interval of at least two positions in the holder's own half
// and the other. The lower is as long as the largest power of two that is less
// than the size, so ⌈lg size⌉ cuts leave single positions. The cut does not
// depend on the holder, so that all roots combine, half by half, by the same
// expression.
func (v interval) halves() (own, other interval) {
	return v.cut(v.lo + v.reach())
}

// handOver also cuts an interval, but so that the larger half is the holder's
// own, on either side. What the holders of any path hand over then adds up to
// less than the interval.
func (v interval) handOver() (own, other interval) {
	mid := v.lo + v.reach()
	if v.holder >= mid {
		mid = v.hi - v.reach()
	}
	return v.cut(mid)
}

// reach is the distance between the holders of two halves, where there is room.
func (v interval) reach() int { return 1 << floorLog(v.size()-1) }

func (v interval) cut(mid int) (own, other interval) {
	if v.holder >= mid {
		return interval{mid, v.hi, v.holder}, interval{v.lo, mid, v.holder - v.reach()}
	}
	partner := v.holder + v.reach()
	if partner >= v.hi {
		partner = mid
	}
	return interval{v.lo, mid, v.holder}, interval{mid, v.hi, partner}
}

// either returns that one of two halves which has position i.
func either(a, b interval, i int) interval {
	if a.has(i) {
		return a
	}
	return b
}

// floorLog returns ⌊lg n⌋, for n ≥ 1.
func floorLog(n int) int { return bits.Len(uint(n)) - 1 }

// ceilLog returns ⌈lg n⌉, for n ≥ 1.
func ceilLog(n int) int { return bits.Len(uint(n - 1)) }
