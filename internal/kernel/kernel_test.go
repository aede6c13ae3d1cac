package kernel

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"unsafe"
)

// apply runs every path's kernel on typed vectors, three-operand and in place
// on either side, and reports what differs from want.
func apply[T comparable](t *testing.T, op Op, a, b []T, want func(x, y T) T) {
	t.Helper()
	kind := reflect.TypeFor[T]().Kind()
	for p := loops; p <= best; p++ {
		if f := find(p, op, kind); f != nil {
			applyOne(t, f, fmt.Sprintf("%v of %v with %v", op, kind, p), a, b, want)
		} else {
			t.Errorf("no kernel for %v of %v with %v", op, kind, p)
		}
	}
}

func applyOne[T comparable](t *testing.T, f Func, what string, a, b []T, want func(x, y T) T) {
	t.Helper()
	raw := func(v []T) []byte {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
	}
	for name, run := range map[string]func() []T{
		"apart": func() []T {
			dst := make([]T, len(a))
			f(raw(dst), raw(a), raw(b))
			return dst
		},
		"into the left operand": func() []T {
			dst := append([]T(nil), a...)
			f(raw(dst), raw(dst), raw(b))
			return dst
		},
		"into the right operand": func() []T {
			dst := append([]T(nil), b...)
			f(raw(dst), raw(a), raw(dst))
			return dst
		},
	} {
		for i, got := range run() {
			if w := want(a[i], b[i]); fmt.Sprint(got) != fmt.Sprint(w) {
				t.Errorf("%s %s: %v ⊕ %v is %v, want %v", what, name, a[i], b[i], got, w)
			}
		}
	}
}

func testInteger[T integers](t *testing.T) {
	a, b := make([]T, 67), make([]T, 67)
	for i := range a {
		a[i], b[i] = T(i*37-50), T(i*i*91+3)
	}
	apply(t, Sum, a, b, func(x, y T) T { return x + y })
	apply(t, Prod, a, b, func(x, y T) T { return x * y })
	apply(t, Min, a, b, func(x, y T) T { return min(x, y) })
	apply(t, Max, a, b, func(x, y T) T { return max(x, y) })
	apply(t, And, a, b, func(x, y T) T { return x & y })
	apply(t, Or, a, b, func(x, y T) T { return x | y })
	apply(t, Xor, a, b, func(x, y T) T { return x ^ y })
}

func testFloat[T float32 | float64](t *testing.T) {
	special := []T{0, T(math.Copysign(0, -1)), 1, -1, T(math.Inf(1)), T(math.Inf(-1)), T(math.NaN()), 1e-30, 3.5}
	var a, b []T
	for _, x := range special {
		for _, y := range special {
			a, b = append(a, x), append(b, y)
		}
	}
	apply(t, Sum, a, b, func(x, y T) T { return x + y })
	apply(t, Prod, a, b, func(x, y T) T { return x * y })
	apply(t, Min, a, b, lesser[T])
	apply(t, Max, a, b, func(x, y T) T { return -lesser(-x, -y) })
}

// lesser is NaN if either is, and takes -0 to be less than +0.
func lesser[T float32 | float64](x, y T) T {
	switch {
	case x != x || y != y:
		return T(math.NaN())
	case x < y || x == y && math.Signbit(float64(x)):
		return x
	}
	return y
}

func TestKernelsDoWhatTheirOperationSays(t *testing.T) {
	testInteger[int](t)
	testInteger[int8](t)
	testInteger[int16](t)
	testInteger[int32](t)
	testInteger[int64](t)
	testInteger[uint](t)
	testInteger[uint8](t)
	testInteger[uint16](t)
	testInteger[uint32](t)
	testInteger[uint64](t)
	testInteger[uintptr](t)
	testFloat[float32](t)
	testFloat[float64](t)
	apply(t, Sum, []complex64{1 + 2i}, []complex64{3 - 1i}, func(x, y complex64) complex64 { return x + y })
	apply(t, Prod, []complex128{1 + 2i}, []complex128{3 - 1i}, func(x, y complex128) complex128 { return x * y })
	truth := []bool{false, false, true, true}
	other := []bool{false, true, false, true}
	apply(t, LogicalAnd, truth, other, func(x, y bool) bool { return x && y })
	apply(t, LogicalOr, truth, other, func(x, y bool) bool { return x || y })
	apply(t, LogicalXor, truth, other, func(x, y bool) bool { return x != y })
}

func TestOperationsThatDoNotFitHaveNoKernel(t *testing.T) {
	for _, c := range []struct {
		op   Op
		kind reflect.Kind
	}{
		{And, reflect.Float64}, {Min, reflect.Complex64}, {Sum, reflect.Bool}, {LogicalAnd, reflect.Int},
		{Sum, reflect.Struct}, {Sum, reflect.String}, {None, reflect.Int}, {MinLoc, reflect.Float64},
	} {
		if For(c.op, c.kind) != nil {
			t.Errorf("there is a kernel for %v of %v", c.op, c.kind)
		}
	}
}
