package chorale_test

import (
	"github.com/chorale-go/chorale"
)

// An elementKind is an element type, with operations on it.
type elementKind[T any] struct {
	make  func(seed uint64) T
	exact bool // arithmetic is associative
	ops   []operation[T]
}

type operation[T any] struct {
	name  string
	op    chorale.Op[T]
	plain func(a, b T) T
}

func integers[T chorale.Integer]() elementKind[T] {
	return elementKind[T]{func(seed uint64) T { return T(seed) }, true, []operation[T]{
		{"sum", chorale.Sum[T](), func(a, b T) T { return a + b }},
		{"prod", chorale.Prod[T](), func(a, b T) T { return a * b }},
		{"min", chorale.Min[T](), func(a, b T) T { return min(a, b) }},
		{"max", chorale.Max[T](), func(a, b T) T { return max(a, b) }},
		{"and", chorale.And[T](), func(a, b T) T { return a & b }},
		{"or", chorale.Or[T](), func(a, b T) T { return a | b }},
		{"xor", chorale.Xor[T](), func(a, b T) T { return a ^ b }},
	}}
}

func floats[T float32 | float64]() elementKind[T] {
	return elementKind[T]{func(seed uint64) T { return T(int64(seed)) / T(1+seed%1000003) }, false, []operation[T]{
		{"sum", chorale.Sum[T](), func(a, b T) T { return a + b }},
		{"min", chorale.Min[T](), func(a, b T) T { return min(a, b) }},
		{"user function", chorale.Op[T]{Combine: func(a, b T) T { return a + b }}, func(a, b T) T { return a + b }},
	}}
}

func complexes() elementKind[complex128] {
	return elementKind[complex128]{func(seed uint64) complex128 {
		return complex(float64(seed%1000)/7, float64(seed%77)/3)
	}, false, []operation[complex128]{
		{"sum", chorale.Sum[complex128](), func(a, b complex128) complex128 { return a + b }},
	}}
}

// An affine is the map x ↦ A·x + B, modulo 2³². Composition does not commute.
type affine struct{ A, B uint32 }

func affines() elementKind[affine] {
	then := func(f, g affine) affine { return affine{f.A * g.A, f.B*g.A + g.B} }
	return elementKind[affine]{func(seed uint64) affine { return affine{uint32(seed) | 1, uint32(seed >> 32)} }, true, []operation[affine]{
		{"then", chorale.Op[affine]{Combine: then}, then},
	}}
}
