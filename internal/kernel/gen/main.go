// Command gen writes the assembly of the package kernel for amd64 and arm64: one
// function for each operation and type, all of one shape. This file says which there
// are. For amd64, shape.go has the shape, and combine.go what an operation does with two
// registers; for arm64, neon_shape.go and neon.go do.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/mmcloughlin/avo/build"
)

// A kernel is one function of assembly.
type kernel struct {
	op      string // the constant of the package kernel
	of      string // the type that its name tells
	kinds   string // the kinds of number that it serves, as package reflect names them
	elem    int    // bytes of an element
	combine combine
	neon    sequence // nil: the loop in Go is as fast, or it is for amd64 alone
}

// The bits of a sum or product are the same with and without a sign, those of
// and, or and xor whatever the elements are. Int, uint and uintptr have 64 bits.
const (
	bits8  = "Int8 Uint8"
	bits16 = "Int16 Uint16"
	bits32 = "Int32 Uint32"
	bits64 = "Int Int64 Uint Uint64 Uintptr"
	every  = bits8 + " " + bits16 + " " + bits32 + " " + bits64
)

// A set is the kernels for processors that have some instructions.
type set struct {
	name    string
	kernels []kernel
}

func (s set) function(k kernel) string { return strings.ToLower(k.op) + k.of + s.name }

func (s set) assembly(k kernel) string { return s.function(k) + "Asm" }

func (s set) generate() {
	for _, k := range s.kernels {
		k.generate(s.assembly(k))
	}
}

var kernels = []kernel{
	{"Sum", "Int8", bits8, 1, one(VPADDB), vector("add", "16b")},
	{"Sum", "Int16", bits16, 2, one(VPADDW), vector("add", "8h")},
	{"Sum", "Int32", bits32, 4, one(VPADDD), vector("add", "4s")},
	{"Sum", "Int64", bits64, 8, one(VPADDQ), vector("add", "2d")},
	{"Sum", "Float32", "Float32 Complex64", 4, one(VADDPS), vector("fadd", "4s")},
	{"Sum", "Float64", "Float64 Complex128", 8, one(VADDPD), vector("fadd", "2d")},

	{"Prod", "Int8", bits8, 1, productInt8, vector("mul", "16b")},
	{"Prod", "Int16", bits16, 2, one(VPMULLW), vector("mul", "8h")},
	{"Prod", "Int32", bits32, 4, one(VPMULLD), vector("mul", "4s")},
	{"Prod", "Int64", bits64, 8, productInt64, nil},
	{"Prod", "Float32", "Float32", 4, one(VMULPS), vector("fmul", "4s")},
	{"Prod", "Float64", "Float64", 8, one(VMULPD), vector("fmul", "2d")},
	{"Prod", "Complex64", "Complex64", 8, productComplex64, neonComplex64},
	{"Prod", "Complex128", "Complex128", 16, productComplex128, neonComplex128},

	{"Min", "Int8", "Int8", 1, one(VPMINSB), vector("smin", "16b")},
	{"Min", "Int16", "Int16", 2, one(VPMINSW), vector("smin", "8h")},
	{"Min", "Int32", "Int32", 4, one(VPMINSD), vector("smin", "4s")},
	{"Min", "Int64", "Int Int64", 8, chosenInt64(true), choose("bit", "cmgt")},
	{"Min", "Uint8", "Uint8", 1, one(VPMINUB), vector("umin", "16b")},
	{"Min", "Uint16", "Uint16", 2, one(VPMINUW), vector("umin", "8h")},
	{"Min", "Uint32", "Uint32", 4, one(VPMINUD), vector("umin", "4s")},
	{"Min", "Uint64", "Uint Uint64 Uintptr", 8, chosenUint64(true), choose("bit", "cmhi")},
	{"Min", "Float32", "Float32", 4, least(VMINPS), vector("fmin", "4s")},
	{"Min", "Float64", "Float64", 8, least(VMINPD), vector("fmin", "2d")},

	{"Max", "Int8", "Int8", 1, one(VPMAXSB), vector("smax", "16b")},
	{"Max", "Int16", "Int16", 2, one(VPMAXSW), vector("smax", "8h")},
	{"Max", "Int32", "Int32", 4, one(VPMAXSD), vector("smax", "4s")},
	{"Max", "Int64", "Int Int64", 8, chosenInt64(false), choose("bif", "cmgt")},
	{"Max", "Uint8", "Uint8", 1, one(VPMAXUB), vector("umax", "16b")},
	{"Max", "Uint16", "Uint16", 2, one(VPMAXUW), vector("umax", "8h")},
	{"Max", "Uint32", "Uint32", 4, one(VPMAXUD), vector("umax", "4s")},
	{"Max", "Uint64", "Uint Uint64 Uintptr", 8, chosenUint64(false), choose("bif", "cmhi")},
	{"Max", "Float32", "Float32", 4, greatest(VMINPS, VPSLLD, 31), vector("fmax", "4s")},
	{"Max", "Float64", "Float64", 8, greatest(VMINPD, VPSLLQ, 63), vector("fmax", "2d")},

	{"And", "Bits", every, 1, one(three(VPAND)), vector("and", "16b")},
	{"Or", "Bits", every, 1, one(three(VPOR)), vector("orr", "16b")},
	{"Xor", "Bits", every, 1, one(three(VPXOR)), vector("eor", "16b")},
}

var avx2 = set{"AVX2", kernels}

var neon = set{"NEON", slices.DeleteFunc(slices.Clone(kernels), func(k kernel) bool { return k.neon == nil })}

// AVX-512 is here for what AVX2 lacks: twice as fast in the first cache for
// products, by a fifth for the others. All else is as fast without.
var avx512 = set{"AVX512", []kernel{
	{"Prod", "Int64", bits64, 8, one(VPMULLQ), nil},
	{"Min", "Uint64", "Uint Uint64 Uintptr", 8, one(VPMINUQ), nil},
	{"Max", "Uint64", "Uint Uint64 Uintptr", 8, one(VPMAXUQ), nil},
}}

func main() {
	dir := flag.String("dir", "", "where to write the tables, and what is for arm64")
	avx2.generate()
	avx512.generate()
	Generate()
	for file, write := range map[string]func(*bytes.Buffer){
		"table_amd64.go": func(b *bytes.Buffer) { writeTable(b, avx2, avx512) },
		"table_arm64.go": func(b *bytes.Buffer) { writeTable(b, neon) },
		"stubs_arm64.go": func(b *bytes.Buffer) { writeStubs(b, neon) },
		"kernel_arm64.s": func(b *bytes.Buffer) { writeNEON(b, neon) },
	} {
		if err := writeFile(filepath.Join(*dir, file), write); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// writeFile writes a generated file, formatted if it is Go.
func writeFile(file string, write func(*bytes.Buffer)) error {
	b := bytes.NewBufferString("// Code generated by gen. DO NOT EDIT.\n\n")
	write(b)
	text := b.Bytes()
	if filepath.Ext(file) == ".go" {
		var err error
		if text, err = format.Source(text); err != nil {
			return err
		}
	}
	return os.WriteFile(file, text, 0o666)
}

// writeStubs declares the functions in assembly. For amd64, avo does.
func writeStubs(b *bytes.Buffer, s set) {
	fmt.Fprint(b, "package kernel\n")
	for _, k := range s.kernels {
		fmt.Fprintf(b, "\n//go:noescape\nfunc %s(dst *byte, a *byte, b *byte, n int)\n", s.assembly(k))
	}
}

// writeTable writes which kernels there are, and a function in Go around each:
// it costs less than the one that the linker would make for a call by pointer,
// and stops where a vector is too short.
func writeTable(b *bytes.Buffer, sets ...set) {
	fmt.Fprint(b, "package kernel\n\nimport (\n\"reflect\"\n\"unsafe\"\n)\n")
	for _, s := range sets {
		fmt.Fprintf(b, "\nvar %s = kernels{\n", strings.ToLower(s.name))
		for _, k := range s.kernels {
			for kind := range strings.FieldsSeq(k.kinds) {
				fmt.Fprintf(b, "{%s, reflect.%s}: %s,\n", k.op, kind, s.function(k))
			}
		}
		fmt.Fprint(b, "}\n")
		for _, k := range s.kernels {
			fmt.Fprintf(b, "\nfunc %s(dst, a, b []byte) {\n", s.function(k))
			fmt.Fprintf(b, "%s(unsafe.SliceData(dst), unsafe.SliceData(a[:len(dst)]), unsafe.SliceData(b[:len(dst)]), len(dst))\n}\n", s.assembly(k))
		}
	}
}
