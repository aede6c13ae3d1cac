package chorale

import "github.com/chorale-go/chorale/internal/kernel"

// An Op is an associative operation that combines two elements of type T.
//
// The built-in operations are functions that return an Op. They are passed by name,
// as in AllReduce(ctx, c, dst, src, chorale.Sum). An operation of the caller's own
// is passed to a function whose name ends in Func:
//
//	chorale.AllReduceFunc(ctx, c, dst, src, chorale.Op[Matrix]{Combine: mul})
//
// It is given by Combine or by CombineSlice; either suffices. Combine costs a call of
// the function per element, and suits short vectors and large elements. CombineSlice
// costs a call per message, and runs at the speed of the caller's loop. If both are
// given, only CombineSlice is called.
//
// Either is called on the goroutine of the call, between messages. So it may call
// functions of this package; a collective on the communicator of the call gets
// ErrBusy. If it panics or calls runtime.Goexit, the call fails, and the rank's part
// in the job ends: no rank gets a result that the operation has not finished, and
// those that need one fail with ErrAborted and the reason.
type Op[T any] struct {
	// Combine returns a ⊕ b. It must be associative, depend on nothing but a and b,
	// and be the same on all ranks.
	Combine func(a, b T) T

	// CombineSlice sets dst[i] to a[i] ⊕ b[i] for every i. The three slices have the
	// same length, which is not 0, and need not be that of the vector: a call combines
	// a vector piece by piece. Dst may be the same memory as a or b, so that an element
	// of dst is written after those of a and b at its place are read; otherwise the
	// slices do not overlap. CombineSlice keeps none of them, and writes dst alone. What
	// an element becomes depends on nothing but a[i] and b[i].
	CombineSlice func(dst, a, b []T)

	// Commutative says that a ⊕ b equals b ⊕ a, which allows more algorithms.
	// Without it, operands are combined in the order of their ranks.
	Commutative bool

	builtin kernel.Op // counts unless the operation is the caller's
}

// custom reports whether the operation is the caller's.
func (o *Op[T]) custom() bool { return o.Combine != nil || o.CombineSlice != nil }

// Integer is the set of element types of the bitwise operations.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Real is the set of element types that have an order.
type Real interface {
	Integer | ~float32 | ~float64
}

// Number is the set of element types of the arithmetic operations.
type Number interface {
	Real | ~complex64 | ~complex128
}

// Sum returns a + b. Integers wrap around. The order of floating-point additions
// depends on the schedule alone, never on timing.
func Sum[T Number]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Sum} }

// Prod returns a · b. Integers wrap around.
func Prod[T Number]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Prod} }

// Min returns the lesser operand. It is NaN if either operand is, and −0 is less
// than +0.
func Min[T Real]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Min} }

// Max returns the greater operand. It is NaN if either operand is, and +0 is
// greater than −0.
func Max[T Real]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Max} }

// And returns the bitwise and.
func And[T Integer]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.And} }

// Or returns the bitwise or.
func Or[T Integer]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Or} }

// Xor returns the bitwise exclusive or.
func Xor[T Integer]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.Xor} }

// LogicalAnd returns whether both operands are true.
func LogicalAnd[T ~bool]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.LogicalAnd} }

// LogicalOr returns whether at least one operand is true.
func LogicalOr[T ~bool]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.LogicalOr} }

// LogicalXor returns whether exactly one operand is true.
func LogicalXor[T ~bool]() Op[T] { return Op[T]{Commutative: true, builtin: kernel.LogicalXor} }

// A Loc is a value with its location, which most often is a rank or an index.
type Loc[T Real] struct {
	Value T
	Index int
}

// MinLoc returns the operand with the lesser value, and of equal values the one
// with the lesser index. A NaN is less than every number.
func MinLoc[T Real]() Op[Loc[T]] {
	return Op[Loc[T]]{Commutative: true, builtin: kernel.MinLoc}
}

// MaxLoc returns the operand with the greater value, and of equal values the one
// with the lesser index. A NaN is greater than every number.
func MaxLoc[T Real]() Op[Loc[T]] {
	return Op[Loc[T]]{Commutative: true, builtin: kernel.MaxLoc}
}

// kernel returns the loop of MinLoc or MaxLoc. It is a method, so that it is found
// where the element is of any type.
func (Loc[T]) kernel(op kernel.Op) kernel.Func {
	switch op {
	case kernel.MinLoc:
		return eachLoc(minLoc[T])
	case kernel.MaxLoc:
		return eachLoc(maxLoc[T])
	}
	return nil
}

func eachLoc[T Real](better func(a, b Loc[T]) Loc[T]) kernel.Func {
	return func(dst, a, b []byte) {
		x, y := elements[Loc[T]](a), elements[Loc[T]](b)
		for i := range elements[Loc[T]](dst) {
			elements[Loc[T]](dst)[i] = better(x[i], y[i])
		}
	}
}

func minLoc[T Real](a, b Loc[T]) Loc[T] { return betterLoc(a, b, b.Value < a.Value) }
func maxLoc[T Real](a, b Loc[T]) Loc[T] { return betterLoc(a, b, b.Value > a.Value) }

// betterLoc returns b if its value is better than that of a, and a otherwise. Of two
// NaN or two equal values, it returns the one with the lesser index.
func betterLoc[T Real](a, b Loc[T], better bool) Loc[T] {
	nanA, nanB := a.Value != a.Value, b.Value != b.Value
	equal := nanA == nanB && (nanA || a.Value == b.Value)
	if better || nanB && !nanA || equal && b.Index < a.Index {
		return b
	}
	return a
}

// operation returns the Op of a built-in operation, or the zero Op if op is nil.
func operation[T any](op func() Op[T]) Op[T] {
	if op == nil {
		return Op[T]{}
	}
	return op()
}
