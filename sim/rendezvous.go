package sim

import (
	"slices"
	"sort"
)

// A rendezvous finds what the other end of a message has for it: in the step
// that the other end is in, the first message or receive that is left for a
// rank. As ranks take their steps in order, and end them when all is matched,
// the k-th receive from a rank meets the k-th message of that rank.
type rendezvous struct {
	*programTable
	ranks   []rankState
	indices []index // of long steps; the first is not in use
	spare   []int32 // those that are not in use
}

// long is the number of messages above which a step is not searched one by one.
const long = 16

// An index is the places in a step that are open when it is made, by the rank
// at the other end. A key is that rank, counted from the index's own, and below
// it the place: most schedules list them in that order, or in reverse.
type index struct {
	keys []uint64
	next int // after what was found last, which most often is what is wanted next
}

// findRecv returns the receive of a rank's step that a message of a peer meets,
// or -1.
func (v *rendezvous) findRecv(rank, peer int32) int32 {
	s := &v.ranks[rank]
	if s.pending == 0 {
		return -1 // it has not begun its step
	}
	lo, hi := s.recvs.lo, s.recvs.hi
	if hi-lo > long {
		return v.search(&s.recvIndex, rank, peer, s.recvs, func(k int32) int32 { return v.recvs[k].from() })
	}
	for k := lo; k < hi; k++ {
		if v.recvs[k].from() == peer {
			return k
		}
	}
	return -1
}

// findMessage returns the message of a rank's step that meets a receive of a
// peer, or -1.
func (v *rendezvous) findMessage(rank, peer int32) int32 {
	s := &v.ranks[rank]
	if s.pending == 0 {
		return -1 // it has not begun its step
	}
	lo, hi := s.sends.lo, s.sends.hi
	if hi-lo > long {
		return v.search(&s.sendIndex, rank, peer, s.sends, func(i int32) int32 { return v.messages[i].to })
	}
	for i := lo; i < hi; i++ {
		if v.messages[i].to == peer {
			return i
		}
	}
	return -1
}

// search returns the first of some places whose other end is a peer, or -1.
// The function returns the other end of a place, and of one that is matched what
// is no rank.
func (v *rendezvous) search(at *int32, rank, peer int32, places span32, other func(int32) int32) int32 {
	ranks := int32(v.programTable.ranks)
	distance := func(peer int32) uint64 {
		d := peer - rank
		if d < 0 {
			d += ranks
		}
		return uint64(d)
	}
	if *at == 0 {
		*at = v.take()
		x := &v.indices[*at]
		for i := places.lo; i < places.hi; i++ {
			if p := other(i); p >= 0 && p < ranks {
				x.keys = append(x.keys, distance(p)<<32|uint64(i))
			}
		}
		slices.Sort(x.keys)
	}
	x := &v.indices[*at]
	want := distance(peer)
	// The places of one peer are matched in order.
	before := func(i int) bool {
		key := x.keys[i]
		return key>>32 < want || key>>32 == want && other(int32(uint32(key))) != peer
	}
	i := x.next
	if i >= len(x.keys) || before(i) || i > 0 && !before(i-1) {
		i = sort.Search(len(x.keys), func(i int) bool { return !before(i) })
	}
	if i == len(x.keys) || x.keys[i]>>32 != want {
		return -1
	}
	x.next = i + 1
	return int32(uint32(x.keys[i]))
}

// take returns an empty index.
func (v *rendezvous) take() int32 {
	if n := len(v.spare); n > 0 {
		i := v.spare[n-1]
		v.spare = v.spare[:n-1]
		return i
	}
	if len(v.indices) == 0 {
		v.indices = make([]index, 1)
	}
	v.indices = append(v.indices, index{})
	return int32(len(v.indices) - 1)
}

// release frees the indices of a step that ends.
func (v *rendezvous) release(s *rankState) {
	if s.sendIndex == 0 && s.recvIndex == 0 {
		return // as in most steps
	}
	for _, at := range []*int32{&s.sendIndex, &s.recvIndex} {
		if *at != 0 {
			x := &v.indices[*at]
			x.keys, x.next = x.keys[:0], 0
			v.spare = append(v.spare, *at)
			*at = 0
		}
	}
}
