// Package kernel combines vectors, element by element.
//
// A kernel works on bytes, so that a transport can call it without
// knowing the element type. [For] finds the fastest kernel of an operation and
// a kind of number that the processor can run: assembly with AVX-512, AVX2 or
// NEON, else loops in Go. The tests hold each to the plainest loop that says it.
package kernel

import (
	"fmt"
	"reflect"
)

//go:generate go run -C gen . -pkg kernel -out ../kernel_amd64.s -stubs ../stubs_amd64.go -dir ..

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

// A Func sets dst to a ⊕ b, element by element. The three are equally long, hold
// whole elements at any alignment, and are either the same memory or apart. It
// allocates nothing.
//
// The bits of an element depend on those of its operands alone, not on its
// place, the length or the alignment. Only the loops in Go may take either of
// two NaN, as the compiler chooses. Assembly takes the left one; on arm64, the
// right one if that alone is signaling.
type Func func(dst, a, b []byte)

// For returns the kernel of op for numbers of a kind, or nil if op does not
// fit them. Min and Max of floating-point numbers are NaN if either operand
// is, and take -0 to be less than +0, as Go's min and max do.
func For(op Op, kind reflect.Kind) Func { return find(best, op, kind) }

// A path is a way to compute. Later ones are better, and need more of the
// processor. Each architecture has its own beside the loops, which are the first.
type path uint8

const loops path = 0

func (p path) String() string { return pathNames[p] }

// Instructions names those that the kernels of this processor use: "avx512", "avx2",
// "neon", or "loops" for Go's own.
func Instructions() string { return best.String() }

// A key says what a kernel is for.
type key struct {
	op   Op
	kind reflect.Kind
}

type kernels map[key]Func

// find returns the best kernel that needs no more than p.
func find(p path, op Op, kind reflect.Kind) Func {
	if kind == reflect.Bool { // a byte that is 0 or 1
		if op < LogicalAnd || op > LogicalXor {
			return nil
		}
		op, kind = op-LogicalAnd+And, reflect.Uint8
	}
	if f := assembly(p, op, kind); f != nil {
		return f
	}
	return loop(op, kind)
}
