package main

import (
	"bytes"
	"fmt"
)

// A sequence writes the instructions that set register a to a ⊕ b. It may change b, and
// the registers from scratch on.
type sequence func(w *neonWriter, a, b int)

// Registers of vectors, beside those that the shape of a kernel uses.
const (
	scratch  = 16 // and the five that follow
	constant = 31 // what a sequence wants at hand: see neonWriter.constants
)

// A neonWriter writes Go's assembly language for arm64.
type neonWriter struct{ bytes.Buffer }

// ins writes an instruction, or a label.
func (w *neonWriter) ins(format string, args ...any) {
	fmt.Fprintf(w, "\t"+format+"\n", args...)
}

// word writes an instruction by its code, because Go's assembler knows few of those on
// vectors. The comment is in the notation of the processor's manual; a test compares
// the two.
func (w *neonWriter) word(code uint32, format string, args ...any) {
	w.ins("WORD $0x%08x // %s", code, fmt.Sprintf(format, args...))
}

// threeSame has the codes of instructions that combine two vectors, for elements of a byte,
// or of four bytes if they are floating-point numbers.
var threeSame = map[string]uint32{
	"add": 0x4e208400, "mul": 0x4e209c00,
	"smin": 0x4e206c00, "smax": 0x4e206400, "umin": 0x6e206c00, "umax": 0x6e206400,
	"cmgt": 0x4e203400, "cmhi": 0x6e203400,
	"and": 0x4e201c00, "orr": 0x4ea01c00, "eor": 0x6e201c00, "bit": 0x6ea01c00, "bif": 0x6ee01c00,
	"fadd": 0x4e20d400, "fmul": 0x6e20dc00, "fmin": 0x4ea0f400, "fmax": 0x4e20f400,
}

// elementSize has the bits that say how large the elements are.
var elementSize = map[string]uint32{"16b": 0 << 22, "8h": 1 << 22, "4s": 2 << 22, "2d": 3 << 22}

// three writes d = op(n, m), on elements of an arrangement.
func (w *neonWriter) three(op, arrangement string, d, n, m int) {
	code, size := threeSame[op], elementSize[arrangement]
	if op[0] == 'f' {
		size &= 1 << 22 // the other bit is part of the operation
	}
	w.word(code|size|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s, v%d.%s", op, d, arrangement, n, arrangement, m, arrangement)
}

// vector is an operation that the processor has. Its minimum and maximum of
// floating-point numbers are Go's: NaN if either is, and -0 less than +0.
func vector(op, arrangement string) sequence {
	return func(w *neonWriter, a, b int) { w.three(op, arrangement, a, a, b) }
}

// choose takes the lesser or the greater of numbers of 64 bits by comparing, as there is
// no such minimum: b where a is greater (bit), or where it is not (bif).
func choose(insert, greater string) sequence {
	return func(w *neonWriter, a, b int) {
		w.three(greater, "2d", scratch, a, b)
		w.three(insert, "16b", a, b, scratch)
	}
}

// neonComplex128 is (re·re − im·im, re·im + im·re), each product rounded.
func neonComplex128(w *neonWriter, a, b int) { w.complexProduct(a, b, scratch, scratch+1) }

func (w *neonWriter) complexProduct(a, b, re, im int) {
	swapped := a
	w.ins("VDUP V%d.D[0], V%d.D2", a, re)
	w.ins("VDUP V%d.D[1], V%d.D2", a, im)
	w.ins("VEXT $8, V%d.B16, V%d.B16, V%d.B16", b, b, swapped)
	w.three("fmul", "2d", re, re, b)
	w.three("fmul", "2d", im, im, swapped)
	w.three("eor", "16b", im, im, constant) // the first is to be subtracted
	w.three("fadd", "2d", a, re, im)
}

// neonComplex64 works in double precision and rounds once, as the compiler does.
func neonComplex64(w *neonWriter, a, b int) {
	const x, y, u, v, re, im = scratch, scratch + 1, scratch + 2, scratch + 3, scratch + 4, scratch + 5
	convert := func(op string, code uint32, d int, to string, n int, from string) {
		w.word(code|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s", op, d, to, n, from)
	}
	convert("fcvtl", 0x0e617800, x, "2d", a, "2s")
	convert("fcvtl", 0x0e617800, y, "2d", b, "2s")
	convert("fcvtl2", 0x4e617800, u, "2d", a, "4s")
	convert("fcvtl2", 0x4e617800, v, "2d", b, "4s")
	w.complexProduct(x, y, re, im)
	w.complexProduct(u, v, re, im)
	convert("fcvtn", 0x0e616800, a, "2s", x, "2d")
	convert("fcvtn2", 0x4e616800, a, "4s", u, "2d")
}

// constants makes the sign of the first of two numbers, which complex products need.
func (w *neonWriter) constants(k kernel) {
	if k.op == "Prod" && (k.of == "Complex64" || k.of == "Complex128") {
		w.ins("MOVD $1<<63, R4")
		w.ins("FMOVD R4, F%d", constant)
	}
}
