package kernel

import (
	"reflect"
	"unsafe"
)

type integers interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | uintptr
}

type reals interface{ integers | float32 | float64 }

type numbers interface{ reals | complex64 | complex128 }

// loop returns the kernel in Go.
func loop(op Op, kind reflect.Kind) Func {
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
		if op == Prod {
			return productComplex128
		}
		return number[complex128](op)
	}
	return nil
}

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

// The loops take four elements in each turn, which the compiler does not do by
// itself. Some processors gain a factor of two, others nothing.

func sum[T numbers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	i := 0
	for ; i < len(d)-3; i += 4 {
		d, x, y := (*[4]T)(d[i:]), (*[4]T)(x[i:]), (*[4]T)(y[i:])
		d[0] = x[0] + y[0]
		d[1] = x[1] + y[1]
		d[2] = x[2] + y[2]
		d[3] = x[3] + y[3]
	}
	for ; i < len(d); i++ {
		d[i] = x[i] + y[i]
	}
}

func product[T numbers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	i := 0
	for ; i < len(d)-3; i += 4 {
		d, x, y := (*[4]T)(d[i:]), (*[4]T)(x[i:]), (*[4]T)(y[i:])
		d[0] = x[0] * y[0]
		d[1] = x[1] * y[1]
		d[2] = x[2] * y[2]
		d[3] = x[3] * y[3]
	}
	for ; i < len(d); i++ {
		d[i] = x[i] * y[i]
	}
}

func least[T reals](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	i := 0
	for ; i < len(d)-3; i += 4 {
		d, x, y := (*[4]T)(d[i:]), (*[4]T)(x[i:]), (*[4]T)(y[i:])
		d[0] = min(x[0], y[0])
		d[1] = min(x[1], y[1])
		d[2] = min(x[2], y[2])
		d[3] = min(x[3], y[3])
	}
	for ; i < len(d); i++ {
		d[i] = min(x[i], y[i])
	}
}

func greatest[T reals](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	i := 0
	for ; i < len(d)-3; i += 4 {
		d, x, y := (*[4]T)(d[i:]), (*[4]T)(x[i:]), (*[4]T)(y[i:])
		d[0] = max(x[0], y[0])
		d[1] = max(x[1], y[1])
		d[2] = max(x[2], y[2])
		d[3] = max(x[3], y[3])
	}
	for ; i < len(d); i++ {
		d[i] = max(x[i], y[i])
	}
}

func and[T integers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	i := 0
	for ; i < len(d)-3; i += 4 {
		d, x, y := (*[4]T)(d[i:]), (*[4]T)(x[i:]), (*[4]T)(y[i:])
		d[0] = x[0] & y[0]
		d[1] = x[1] & y[1]
		d[2] = x[2] & y[2]
		d[3] = x[3] & y[3]
	}
	for ; i < len(d); i++ {
		d[i] = x[i] & y[i]
	}
}

func or[T integers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	i := 0
	for ; i < len(d)-3; i += 4 {
		d, x, y := (*[4]T)(d[i:]), (*[4]T)(x[i:]), (*[4]T)(y[i:])
		d[0] = x[0] | y[0]
		d[1] = x[1] | y[1]
		d[2] = x[2] | y[2]
		d[3] = x[3] | y[3]
	}
	for ; i < len(d); i++ {
		d[i] = x[i] | y[i]
	}
}

func xor[T integers](dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	i := 0
	for ; i < len(d)-3; i += 4 {
		d, x, y := (*[4]T)(d[i:]), (*[4]T)(x[i:]), (*[4]T)(y[i:])
		d[0] = x[0] ^ y[0]
		d[1] = x[1] ^ y[1]
		d[2] = x[2] ^ y[2]
		d[3] = x[3] ^ y[3]
	}
	for ; i < len(d); i++ {
		d[i] = x[i] ^ y[i]
	}
}

// productComplex128 rounds each product, so that no compiler fuses one with the
// sum, and every processor gets the same bits. In single precision the compiler
// computes with doubles, where products are exact.
func productComplex128(dst, a, b []byte) {
	d, x, y := views[complex128](dst, a, b)
	for i := range d {
		r, s := real(x[i]), imag(x[i])
		t, u := real(y[i]), imag(y[i])
		d[i] = complex(float64(r*t)-float64(s*u), float64(r*u)+float64(s*t))
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
