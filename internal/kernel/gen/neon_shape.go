package main

import (
	"bytes"
	"fmt"
)

// writeNEON writes the assembly for arm64.
func writeNEON(b *bytes.Buffer, s set) {
	fmt.Fprint(b, "#include \"textflag.h\"\n")
	for _, k := range s.kernels {
		w := new(neonWriter)
		w.kernel(s.assembly(k), k)
		b.Write(w.Bytes())
	}
}

// What the registers hold while a kernel runs. The vectors of a are in V0 to V3, those
// of b in V4 to V7.
const (
	dst, left, right = "R0", "R1", "R2" // where the loops are
	rest             = "R3"             // bytes from there to the end, less what a turn takes
	endLeft          = "R4"
	endRight         = "R5"
	endDst           = "R6"
	tail             = 24 // the vector with which dst ends; that of b is the next
)

// kernel writes one. As on amd64, the last register's worth is combined before
// anything is stored, and stored after everything else: so the loops may run into it,
// also in place. Nothing is fetched ahead and dst is not aligned: neither has been
// measured here.
func (w *neonWriter) kernel(name string, k kernel) {
	fmt.Fprintf(w, "\n// func %s(dst *byte, a *byte, b *byte, n int)\nTEXT ·%s(SB), NOSPLIT, $0-32\n", name, name)
	w.ins("MOVD dst+0(FP), %s", dst)
	w.ins("MOVD a+8(FP), %s", left)
	w.ins("MOVD b+16(FP), %s", right)
	w.ins("MOVD n+24(FP), %s", rest)
	w.constants(k)
	if k.elem > 1 {
		w.ins("AND $%d, %s", -k.elem, rest)
	}
	w.ins("ADD %s, %s, %s", rest, left, endLeft)
	w.ins("ADD %s, %s, %s", rest, right, endRight)
	w.ins("CMP $16, %s", rest)
	w.ins("BLT short")
	w.ins("FMOVQ -16(%s), F%d", endLeft, tail)
	w.ins("FMOVQ -16(%s), F%d", endRight, tail+1)
	k.neon(w, tail, tail+1)

	w.ins("SUBS $64, %s", rest)
	w.ins("BLT single")
	w.label("loop")
	w.ins("FLDPQ (%s), (F0, F1)", left)
	w.ins("FLDPQ 32(%s), (F2, F3)", left)
	w.ins("FLDPQ (%s), (F4, F5)", right)
	w.ins("FLDPQ 32(%s), (F6, F7)", right)
	for i := range 4 {
		k.neon(w, i, 4+i)
	}
	w.ins("FSTPQ (F0, F1), (%s)", dst)
	w.ins("FSTPQ (F2, F3), 32(%s)", dst)
	for _, r := range []string{left, right, dst} {
		w.ins("ADD $64, %s", r)
	}
	w.ins("SUBS $64, %s", rest)
	w.ins("BGE loop")

	w.label("single")
	w.ins("ADDS $48, %s", rest)
	w.ins("BLT end")
	w.label("single_loop")
	w.ins("FMOVQ.P 16(%s), F0", left)
	w.ins("FMOVQ.P 16(%s), F4", right)
	k.neon(w, 0, 4)
	w.ins("FMOVQ.P F0, 16(%s)", dst)
	w.ins("SUBS $16, %s", rest)
	w.ins("BGE single_loop")
	w.label("end")
	w.ins("ADD %s, %s", dst, rest) // 0 to 15 bytes are left, and rest is 16 less
	w.ins("FMOVQ F%d, (%s)", tail, rest)
	w.ins("RET")
	w.short(k)
}

func (w *neonWriter) label(name string) { fmt.Fprintf(w, "%s:\n", name) }

// short is for less than a register's worth. The first and the last bytes of a part, which
// may overlap, are combined in one register.
func (w *neonWriter) short(k kernel) {
	w.label("short")
	w.ins("ADD %s, %s, %s", rest, dst, endDst)
	for _, p := range neonParts {
		if p.size < k.elem || p.size >= 16 {
			continue
		}
		under := fmt.Sprintf("under_%d", p.size)
		w.ins("CMP $%d, %s", p.size, rest)
		w.ins("BLT %s", under)
		w.ins("%s (%s), R7", p.move, left)
		w.ins("%s (%s), R8", p.move, right)
		w.ins("FMOVD R7, F0")
		w.ins("FMOVD R8, F4")
		single := p.size == k.elem // the last is the first
		if !single {
			for _, r := range []string{endLeft, endRight, endDst} {
				w.ins("SUB $%d, %s", p.size, r)
			}
			w.ins("VLD1 (%s), V0.%s[1]", endLeft, p.lane)
			w.ins("VLD1 (%s), V4.%s[1]", endRight, p.lane)
		}
		k.neon(w, 0, 4)
		w.ins("VST1 V0.%s[0], (%s)", p.lane, dst)
		if !single {
			w.ins("VST1 V0.%s[1], (%s)", p.lane, endDst)
		}
		w.ins("RET")
		w.label(under)
	}
	w.ins("RET")
}

// A neonPart is what a short vector moves by.
type neonPart struct {
	size int
	move string // loads it with zeroes behind
	lane string
}

var neonParts = []neonPart{{8, "MOVD", "D"}, {4, "MOVWU", "S"}, {2, "MOVHU", "H"}, {1, "MOVBU", "B"}}
