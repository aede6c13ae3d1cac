package chorale

import (
	"fmt"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/kernel"
)

// A combiner is an operation on bytes, in the form that package exec needs.
type combiner interface {
	op() exec.Op
	failure() error
}

// A builtinCombiner is a kernel.
type builtinCombiner exec.Op

func newBuiltin(f kernel.Func) builtinCombiner {
	return builtinCombiner{
		Left:  func(into, held, incoming []byte) { f(into, incoming, held) },
		Right: func(into, held, incoming []byte) { f(into, held, incoming) },
	}
}

func (b builtinCombiner) op() exec.Op  { return exec.Op(b) }
func (builtinCombiner) failure() error { return nil }

// A funcCombiner calls a caller's function. A cached call has one funcCombiner, and
// each use of the call sets its own function.
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

// each combines element by element. A panic of the caller's function must not end a
// goroutine of a transport. So each recovers it, and it becomes the call's error.
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
