package sim

import (
	"math/bits"
	"slices"
)

// A turn is the index of a message among those of its sender's step, and below
// it the message: of several messages, the one with the least turn queues first.
type turn uint64

const indexShift = 32

func newTurn(index, message int32) turn { return turn(index)<<indexShift | turn(message) }

func (t turn) message() int32 { return int32(uint32(t)) }

// manyTurns is the number from which sorting by digits takes less time.
const manyTurns = 1 << 12

// sortTurns sorts turns. It returns the sorted list, and another one that has memory to
// be used again.
func sortTurns(turns, unused []turn) (sorted, other []turn) {
	if len(turns) < manyTurns {
		slices.Sort(turns)
		return turns, unused
	}
	var all turn
	for _, t := range turns {
		all |= t
	}
	if cap(unused) < len(turns) {
		unused = make([]turn, cap(turns))
	}
	sorted, other = turns, unused[:len(turns)]
	for _, field := range []struct{ lo, hi int }{
		{0, bits.Len32(uint32(all))},
		{indexShift, bits.Len64(uint64(all))},
	} {
		for shift := field.lo; shift < field.hi; shift += digitBits {
			sortByDigit(other, sorted, shift)
			sorted, other = other, sorted
		}
	}
	return sorted, other
}

const digitBits = 11

// sortByDigit copies turns in the order of the digit above some bits; those with the same
// digit stay in order.
func sortByDigit(to, from []turn, shift int) {
	var next [1 << digitBits]int32
	for _, t := range from {
		next[t>>shift%(1<<digitBits)]++
	}
	sum := int32(0)
	for i, n := range next {
		next[i] = sum
		sum += n
	}
	for _, t := range from {
		digit := t >> shift % (1 << digitBits)
		to[next[digit]] = t
		next[digit]++
	}
}
