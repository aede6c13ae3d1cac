package sched

import (
	"fmt"
	"slices"
	"strings"
)

// A Value is the symbolic content of one block of memory: the block of In that
// it is made of, and the ranks whose In it combines, in operand order. The zero
// value stands for a block that was never written.
type Value struct {
	block int32
	first span   // empty when nothing was ever written here
	rest  []span // what follows first; never changed once it is shared
	expr  uint64 // a hash of the expression that made it: equal trees have equal hashes
}

// A span is the ranks lo ≤ r < hi.
type span struct{ lo, hi int32 }

// Defined reports whether the block was ever written.
func (v Value) Defined() bool { return v.first.lo < v.first.hi }

// Block returns the number of the block of In that v is made of.
func (v Value) Block() int { return int(v.block) }

// Ranks returns the ranks whose In v combines, in operand order; in ascending
// order if the schedule is Commutative.
func (v Value) Ranks() []int {
	var ranks []int
	for _, s := range v.spans() {
		for r := s.lo; r < s.hi; r++ {
			ranks = append(ranks, int(r))
		}
	}
	return ranks
}

// input is block b of rank's In.
func input(rank, block int) Value {
	r := int32(rank)
	return Value{block: int32(block), first: span{r, r + 1}, expr: mix(uint64(rank)<<32 | uint64(block))}
}

// spans returns all spans of v.
func (v *Value) spans() []span { return append([]span{v.first}, v.rest...) }

// String writes v as in "block 3 of ranks 0–3, 6".
func (v Value) String() string {
	if !v.Defined() {
		return "nothing"
	}
	var parts []string
	for _, s := range v.spans() {
		if s.hi == s.lo+1 {
			parts = append(parts, fmt.Sprint(s.lo))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", s.lo, s.hi-1))
		}
	}
	ranks := "ranks"
	if v.rest == nil && v.first.hi == v.first.lo+1 {
		ranks = "rank"
	}
	return fmt.Sprintf("block %d of %s %s", v.block, ranks, strings.Join(parts, ", "))
}

// combine returns a ⊕ b. Where the operator commutes, the spans are kept sorted
// and a rank that counts twice is an error at once. Elsewhere the operands stay
// in order, and the comparison at the end finds such a rank.
func combine(a, b *Value, commutes bool) (Value, error) {
	switch {
	case !a.Defined() || !b.Defined():
		return Value{}, fmt.Errorf("combines %v with %v", a, b)
	case a.block != b.block:
		return Value{}, fmt.Errorf("combines block %d with block %d", a.block, b.block)
	}
	v := Value{block: a.block, expr: mix(mix(a.expr) + 3*b.expr)}
	if commutes {
		v.expr = mix(a.expr ^ b.expr ^ mix(a.expr+b.expr))
	}
	if a.rest == nil && b.rest == nil && a.first.hi == b.first.lo {
		v.first = span{a.first.lo, b.first.hi}
		return v, nil
	}
	all := append(a.spans(), b.spans()...)
	if commutes {
		slices.SortFunc(all, func(x, y span) int { return int(x.lo - y.lo) })
	}
	joined := all[:1]
	for _, s := range all[1:] {
		last := &joined[len(joined)-1]
		switch {
		case commutes && s.lo < last.hi:
			return Value{}, fmt.Errorf("combines %v with %v: rank %d counts twice", a, b, s.lo)
		case s.lo == last.hi:
			last.hi = s.hi
		default:
			joined = append(joined, s)
		}
	}
	v.first = joined[0]
	if len(joined) > 1 {
		v.rest = slices.Clone(joined[1:])
	}
	return v, nil
}

// mix scrambles x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
