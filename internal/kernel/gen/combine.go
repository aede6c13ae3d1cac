package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A width is that of a register, in bytes.
type width int

const (
	narrow width = 16
	wide   width = 32
)

// A vec is a register of elements.
type vec = reg.VecVirtual

func (w width) register() vec {
	if w == narrow {
		return XMM()
	}
	return YMM()
}

// A combine says what an operation does with two registers.
type combine struct {
	// do returns a register that holds a ⊕ b, which may be that of a or b. It
	// also gets the constant.
	do func(w width, c, a, b vec) vec
	// constant makes a register that stays as it is; may be nil.
	constant func(w width) vec
	// widens says that do uses wide registers for narrow ones, too.
	widens bool
}

func (c combine) constants(w width) vec {
	if c.constant == nil {
		return nil
	}
	return c.constant(w)
}

// An instruction takes operands in Go's order: the second source, the first,
// and the destination.
type instruction func(ops ...Op)

// three is an instruction that has no other form.
func three(ins func(b, a, dst Op)) instruction {
	return func(ops ...Op) { ins(ops[0], ops[1], ops[2]) }
}

// one is an operation that the processor has. If both sources are NaN it takes
// the first: that is a.
func one(ins instruction) combine {
	return combine{do: func(_ width, _, a, b vec) vec {
		ins(b, a, a)
		return a
	}}
}

// ones makes a constant: ones, shifted in each element.
func ones(shift instruction, by uint8) func(width) vec {
	return func(w width) vec {
		r := w.register()
		VPCMPEQD(r, r, r)
		shift(U8(by), r, r)
		return r
	}
}

// least is the lesser of floating-point numbers. The processor's minimum is the
// second source if either is NaN or both are zero. Taking it in either order,
// and joining the bits, makes NaN of any NaN and -0 of any -0. The compiler
// does the same, bit for bit.
func least(minimum instruction) combine {
	return combine{do: func(w width, _, a, b vec) vec { return lesser(minimum, w, a, b) }}
}

func lesser(minimum instruction, w width, a, b vec) vec {
	t := w.register()
	minimum(b, a, t)
	minimum(a, t, a)
	VORPS(t, a, a)
	return a
}

// greatest is -least(-a, -b). The constant is the sign.
func greatest(minimum, shift instruction, sign uint8) combine {
	return combine{
		constant: ones(shift, sign),
		do: func(w width, c, a, b vec) vec {
			VXORPS(c, a, a)
			VXORPS(c, b, b)
			r := lesser(minimum, w, a, b)
			VXORPS(c, r, r)
			return r
		},
	}
}

// productInt8 multiplies even bytes and odd ones as words, for want of a
// product of bytes. The constant is the even bytes.
var productInt8 = combine{
	constant: ones(VPSRLW, 8),
	do: func(w width, c, a, b vec) vec {
		t, odd := w.register(), w.register()
		VPSRLW(U8(8), a, odd)
		VPANDN(b, c, t)
		VPMULLW(t, odd, odd)
		VPMULLW(b, a, a)
		VPAND(c, a, a)
		VPOR(odd, a, a)
		return a
	},
}

// productInt64 is the schoolbook's, in digits of 32 bits. The product of both
// upper digits is beyond the result.
var productInt64 = combine{
	do: func(w width, _, a, b vec) vec {
		t, u := w.register(), w.register()
		VPSRLQ(U8(32), a, t)
		VPMULUDQ(b, t, t)
		VPSRLQ(U8(32), b, u)
		VPMULUDQ(a, u, u)
		VPADDQ(u, t, t)
		VPSLLQ(U8(32), t, t)
		VPMULUDQ(b, a, a)
		VPADDQ(t, a, a)
		return a
	},
}

// chosenInt64 takes the lesser or the greater by comparing.
func chosenInt64(lesser bool) combine {
	return combine{do: func(w width, _, a, b vec) vec { return chosen(lesser, w, a, b, a, b) }}
}

// chosenUint64 flips the signs to compare, as there is no unsigned comparison.
func chosenUint64(lesser bool) combine {
	return combine{
		constant: ones(VPSLLQ, 63),
		do: func(w width, c, a, b vec) vec {
			x, y := w.register(), w.register()
			VPXOR(c, a, x)
			VPXOR(c, b, y)
			return chosen(lesser, w, x, y, a, b)
		},
	}
}

// chosen returns a or b, whichever of x and y is the lesser or the greater.
func chosen(lesser bool, w width, x, y, a, b vec) vec {
	greater := w.register()
	VPCMPGTQ(y, x, greater)
	if lesser {
		a, b = b, a
	}
	VPBLENDVB(greater, a, b, a)
	return a
}

// productComplex128 is (re·re − im·im, re·im + im·re), each product rounded.
var productComplex128 = combine{
	do: func(w width, _, a, b vec) vec { return complexProduct(w, a, b) },
}

func complexProduct(w width, a, b vec) vec {
	re, im, swapped := w.register(), w.register(), w.register()
	VMOVDDUP(a, re)
	VPERMILPD(U8(0b1111), a, im)
	VPERMILPD(U8(0b0101), b, swapped)
	VMULPD(b, re, re)
	VMULPD(swapped, im, im)
	VADDSUBPD(im, re, re)
	return re
}

// productComplex64 works in double precision and rounds once, as the compiler
// does.
var productComplex64 = combine{
	widens: true,
	do: func(w width, _, a, b vec) vec {
		low := complexProductOfHalves(a.AsX(), b.AsX())
		if w == narrow {
			return low
		}
		x, y, r := XMM(), XMM(), YMM()
		VEXTRACTF128(U8(1), a, x)
		VEXTRACTF128(U8(1), b, y)
		VINSERTF128(U8(1), complexProductOfHalves(x, y), low.AsY(), r)
		return r
	},
}

func complexProductOfHalves(a, b reg.Register) vec {
	x, y, r := YMM(), YMM(), XMM()
	VCVTPS2PD(a, x)
	VCVTPS2PD(b, y)
	VCVTPD2PSY(complexProduct(wide, x, y), r)
	return r
}
