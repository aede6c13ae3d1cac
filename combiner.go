package chorale

import (
	"context"
	"fmt"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/kernel"
	"github.com/chorale-go/chorale/transport"
)

// builtinOp returns the operation on bytes of a kernel.
func builtinOp(f kernel.Func) exec.Op {
	return exec.Op{
		Left:  func(into, held, incoming []byte) { f(into, incoming, held) },
		Right: func(into, held, incoming []byte) { f(into, held, incoming) },
	}
}

// kernelOf returns the kernel of a built-in operation on elements of type T, or nil.
func kernelOf[T any](a *arguments[T]) kernel.Func {
	if f := kernel.For(a.callKey.op, a.elem.Kind()); f != nil {
		return f
	}
	if l, ok := any(*new(T)).(interface{ kernel(kernel.Op) kernel.Func }); ok {
		return l.kernel(a.callKey.op)
	}
	return nil
}

// A callerOp is an operation of the caller's on bytes. A cached call has one, and each
// use of the call sets its functions.
type callerOp[T any] struct {
	given  Op[T]
	op     exec.Op
	inside bool // a function of the caller's is being called, or has not returned
}

func newCallerOp[T any]() *callerOp[T] {
	f := new(callerOp[T])
	f.op = exec.Op{
		Left:  func(into, held, incoming []byte) { f.each(into, incoming, held) },
		Right: func(into, held, incoming []byte) { f.each(into, held, incoming) },
	}
	return f
}

// each combines two vectors.
func (f *callerOp[T]) each(into, a, b []byte) {
	dst := elements[T](into)
	if len(dst) == 0 {
		return
	}
	x, y := elements[T](a)[:len(dst)], elements[T](b)[:len(dst)]
	f.inside = true
	if f.given.CombineSlice != nil {
		f.given.CombineSlice(dst, x, y)
	} else {
		for i, combine := 0, f.given.Combine; i < len(dst); i++ {
			dst[i] = combine(x[i], y[i])
		}
	}
	f.inside = false
}

// run runs a plan with the operation. If the function panics or leaves the goroutine,
// what this rank has not computed yet is never sent: run ends the rank's part in the
// job, so that every rank that needs it fails with the reason.
func (f *callerOp[T]) run(ctx context.Context, c *Comm, call *call, traced *tracedCall, sig transport.Signature, in, out []byte, given Op[T]) (err error) {
	f.given = given
	defer func() {
		f.given = Op[T]{}
		if !f.inside {
			return
		}
		f.inside = false
		call.plan.Release()
		err = c.abandon(call.key.collective.String(), "the operation", recover())
	}()
	exchanger, op := c.job.steps, f.op
	if traced != nil {
		exchanger, op = traced.around(call, op)
	}
	if err := call.plan.Run(ctx, exchanger, sig, in, out, op); err != nil {
		return c.failed(call.key.collective.String(), sig, call.key.elem, err)
	}
	return nil
}

// abandon ends this rank's part in the job because a function of the caller's has
// panicked or, if the panic is nil, called runtime.Goexit. It returns the error of the
// call, which the peers get as the reason.
func (c *Comm) abandon(call, what string, panicked any) error {
	var err error = fmt.Errorf("%s called runtime.Goexit", what)
	if panicked != nil {
		err = newPanicError(what, panicked)
	}
	e := c.newError(call, err)
	c.abort(e)
	return e
}
