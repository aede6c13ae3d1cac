package chorale

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/kernel"
)

// An Op combines elements of type T. Any associative operation will do.
//
// The built-in operations are functions that return one; they are passed by
// name, as in AllReduce(ctx, c, dst, src, chorale.Sum). An operation of one's
// own is passed to a function whose name ends in Func:
//
//	chorale.AllReduceFunc(ctx, c, dst, src, chorale.Op[Matrix]{Combine: mul})
type Op[T any] struct {
	// Combine returns a ⊕ b. It must be associative, depend on nothing but a
	// and b, and be the same on all ranks. It may be called from any goroutine.
	Combine func(a, b T) T

	// Commutative says that a ⊕ b is b ⊕ a. It widens the choice of algorithms;
	// without it, operands keep the order of their ranks.
	Commutative bool

	builtin kernel.Op
}

// Integer is the element types that the bitwise operations take.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Real is the element types that have an order.
type Real interface {
	Integer | ~float32 | ~float64
}

// Number is the element types that the arithmetic operations take.
type Number interface {
	Real | ~complex64 | ~complex128
}

// Sum adds. Integers wrap around. Floating-point sums depend on the schedule
// alone, never on timing.
func Sum[T Number]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Sum} }

// Prod multiplies.
func Prod[T Number]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Prod} }

// Min takes the lesser. It is NaN if either operand is, and -0 is less than +0.
func Min[T Real]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Min} }

// Max takes the greater. It is NaN if either operand is, and +0 is greater than
// -0.
func Max[T Real]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Max} }

// And takes the bits that both operands have.
func And[T Integer]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.And} }

// Or takes the bits that either operand has.
func Or[T Integer]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Or} }

// Xor takes the bits in which the operands differ.
func Xor[T Integer]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Xor} }

// LogicalAnd is whether both operands are true.
func LogicalAnd[T ~bool]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.LogicalAnd} }

// LogicalOr is whether either operand is true.
func LogicalOr[T ~bool]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.LogicalOr} }

// LogicalXor is whether just one operand is true.
func LogicalXor[T ~bool]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.LogicalXor} }

// A Loc is a value together with where it was found: most often a rank, or an
// index.
type Loc[T Real] struct {
	Value T
	Index int
}

// MinLoc takes the operand with the lesser value, and of equal values the one
// with the lesser index. A NaN is less than every number.
func MinLoc[T Real]() Op[Loc[T]] {
	return Op[Loc[T]]{Combine: minLoc[T], Commutative: true, builtin: kernel.MinLoc}
}

// MaxLoc takes the operand with the greater value, and of equal values the one
// with the lesser index. A NaN is greater than every number.
func MaxLoc[T Real]() Op[Loc[T]] {
	return Op[Loc[T]]{Combine: maxLoc[T], Commutative: true, builtin: kernel.MaxLoc}
}

func minLoc[T Real](a, b Loc[T]) Loc[T] { return pick(a, b, b.Value < a.Value) }
func maxLoc[T Real](a, b Loc[T]) Loc[T] { return pick(a, b, b.Value > a.Value) }

// pick returns b if it is better than a by its value, else a; of two NaN, or
// of two equal values, the one with the lesser index.
func pick[T Real](a, b Loc[T], better bool) Loc[T] {
	nanA, nanB := a.Value != a.Value, b.Value != b.Value
	alike := nanA == nanB && (nanA || a.Value == b.Value)
	if better || nanB && !nanA || alike && b.Index < a.Index {
		return b
	}
	return a
}

// operation returns what a built-in operation is; nothing if there is none.
func operation[T any](op func() Op[T]) Op[T] {
	if op == nil {
		return Op[T]{}
	}
	return op()
}

// A combiner is an operation as the executor wants it, on bytes.
type combiner interface {
	op() exec.Op
	failure() error
}

// builtinCombiner is a kernel.
type builtinCombiner exec.Op

func newBuiltin(f kernel.Func) builtinCombiner {
	return builtinCombiner{
		Left:  func(into, held, incoming []byte) { f(into, incoming, held) },
		Right: func(into, held, incoming []byte) { f(into, held, incoming) },
	}
}

func (b builtinCombiner) op() exec.Op  { return exec.Op(b) }
func (builtinCombiner) failure() error { return nil }

// funcCombiner is a caller's function. The call that a communicator keeps for
// later has one for good, and each use of it brings its own function.
type funcCombiner[T any] struct {
	combine  func(a, b T) T
	bound    exec.Op
	panicked any
}

func newFunc[T any]() *funcCombiner[T] {
	f := new(funcCombiner[T])
	f.bound = exec.Op{Left: f.left, Right: f.right}
	return f
}

func (f *funcCombiner[T]) op() exec.Op { return f.bound }

func (f *funcCombiner[T]) left(into, held, incoming []byte)  { f.each(into, incoming, held) }
func (f *funcCombiner[T]) right(into, held, incoming []byte) { f.each(into, held, incoming) }

// each combines element by element. A panic of the caller's function must not
// end in a goroutine of a transport: it is kept, and becomes the call's error.
func (f *funcCombiner[T]) each(into, a, b []byte) {
	defer func() {
		if r := recover(); r != nil {
			f.panicked = r
		}
	}()
	x, y := elements[T](a), elements[T](b)
	for i := range elements[T](into) {
		elements[T](into)[i] = f.combine(x[i], y[i])
	}
}

func (f *funcCombiner[T]) failure() error {
	if f.panicked == nil {
		return nil
	}
	return fmt.Errorf("the operation panicked: %v", f.panicked)
}

// bytesOf returns the memory of s.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// elements is the inverse of bytesOf.
func elements[T any](b []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if size == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// checkElement reports an error unless values of the type can be copied byte by
// byte into another process: their size is fixed and they hold no pointers.
func checkElement(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		if err := checkElement(t.Elem()); err != nil {
			return fmt.Errorf("%v has elements that cannot be sent: %w", t, err)
		}
		return nil
	case reflect.Struct:
		for i := range t.NumField() {
			if err := checkElement(t.Field(i).Type); err != nil {
				return fmt.Errorf("%v.%s cannot be sent: %w", t, t.Field(i).Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("%v is a %v: want numbers, booleans, and arrays and structs of them", t, t.Kind())
}
