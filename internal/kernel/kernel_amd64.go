package kernel

import (
	"reflect"

	"golang.org/x/sys/cpu"
)

const (
	withAVX2 = loops + 1 + iota
	withAVX512
)

var pathNames = []string{"loops", "avx2", "avx512"}

// best is what the processor can do, and the operating system lets it.
var best = detect()

func detect() path {
	switch x := &cpu.X86; {
	case !x.HasAVX2:
		return loops
	case x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL:
		return withAVX512
	}
	return withAVX2
}

// assembly returns the kernel in assembly that needs no more than p; nil if
// there is none.
func assembly(p path, op Op, kind reflect.Kind) Func {
	k := key{op, kind}
	if f := avx512[k]; f != nil && p >= withAVX512 {
		return f
	}
	if p >= withAVX2 {
		return avx2[k]
	}
	return nil
}
