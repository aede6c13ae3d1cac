package oracle

import (
	"unsafe"

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
		{"user slices", sliceOp(func(a, b T) T { return a + b }), func(a, b T) T { return a + b }},
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
		{"then over slices", sliceOp(then), then},
	}}
}

// sliceOp returns an operation over slices. It panics if they are not what
// Op.CombineSlice says. The element form, which must not be called, panics too.
func sliceOp[T any](combine func(a, b T) T) chorale.Op[T] {
	overlap := func(a, b []T) bool {
		from, to := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
		bytes := uintptr(len(a)) * unsafe.Sizeof(a[0])
		return from != to && from < to+bytes && to < from+bytes
	}
	return chorale.Op[T]{
		Combine: func(a, b T) T { panic("Combine beside CombineSlice") },
		CombineSlice: func(dst, a, b []T) {
			if len(dst) == 0 || len(a) != len(dst) || len(b) != len(dst) || overlap(dst, a) || overlap(dst, b) {
				panic("the slices differ in length, are empty, or overlap")
			}
			for i := range dst {
				dst[i] = combine(a[i], b[i])
			}
		},
	}
}
