// Package kernel combines vectors, element by element.
//
// A kernel works on bytes, so that whoever moves bytes can call it without
// knowing the element type. [For] finds the kernel of an operation and a kind
// of number.
package kernel

import (
	"fmt"
	"reflect"
	"unsafe"
)

// An Op is a built-in operation.
type Op uint8

const (
	None Op = iota
	Sum
	Prod
	Min
	Max
	And
	Or
	Xor
	LogicalAnd
	LogicalOr
	LogicalXor
	MinLoc // of values with an index: these have no kernel
	MaxLoc
)

var names = [...]string{"", "sum", "prod", "min", "max", "and", "or", "xor", "logical and", "logical or", "logical xor", "minloc", "maxloc"}

func (o Op) String() string {
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// A Func sets dst to a ⊕ b, element by element. The three are equally long,
// hold whole elements, are aligned for them, and are either the same memory or
// apart.
type Func func(dst, a, b []byte)

// For returns the kernel of op for numbers of a kind, or nil if op does not
// fit them. Min and Max of floating-point numbers are NaN if either operand
// is, and take -0 to be less than +0, as Go's min and max do.
func For(op Op, kind reflect.Kind) Func {
	switch kind {
	case reflect.Int:
		return integer[int](op)
	case reflect.Int8:
		return integer[int8](op)
	case reflect.Int16:
		return integer[int16](op)
	case reflect.Int32:
		return integer[int32](op)
	case reflect.Int64:
		return integer[int64](op)
	case reflect.Uint:
		return integer[uint](op)
	case reflect.Uint8:
		return integer[uint8](op)
	case reflect.Uint16:
		return integer[uint16](op)
	case reflect.Uint32:
		return integer[uint32](op)
	case reflect.Uint64:
		return integer[uint64](op)
	case reflect.Uintptr:
		return integer[uintptr](op)
	case reflect.Float32:
		return ordered[float32](op)
	case reflect.Float64:
		return ordered[float64](op)
	case reflect.Complex64:
		return number[complex64](op)
	case reflect.Complex128:
		return number[complex128](op)
	case reflect.Bool:
		return logical(op)
	}
	return nil
}

// logical works on the bytes of booleans, which are 0 or 1.
func logical(op Op) Func {
	switch op {
	case LogicalAnd:
		return and[uint8]
	case LogicalOr:
		return or[uint8]
	case LogicalXor:
		return xor[uint8]
	}
	return nil
}

type integers interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | uintptr
}

type reals interface{ integers | float32 | float64 }

type numbers interface{ reals | complex64 | complex128 }

func integer[T integers](op Op) Func {
	switch op {
	case And:
		return and[T]
	case Or:
		return or[T]
	case Xor:
		return xor[T]
	}
	return ordered[T](op)
}

func ordered[T reals](op Op) Func {
	switch op {
	case Min:
		return least[T]
	case Max:
		return greatest[T]
	}
	return number[T](op)
}

func number[T numbers](op Op) Func {
	switch op {
	case Sum:
		return sum[T]
	case Prod:
		return product[T]
	}
	return nil
}

func sum[T numbers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func product[T numbers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func least[T reals](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func greatest[T reals](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

func and[T integers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] & y[i]
	}
}

func or[T integers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] | y[i]
	}
}

func xor[T integers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] ^ y[i]
	}
}

// views sees bytes as elements. The three come out equally long, which spares
// the loops their bounds checks.
func views[T any](dst, a, b []byte) (d, x, y []T) {
	d = view[T](dst)
	x = view[T](a)[:len(d)]
	y = view[T](b)[:len(d)]
	return d, x, y
}

func view[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}
