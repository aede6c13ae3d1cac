package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"testing"
)

// everyKernel runs a test for all that each path can do that this processor has.
func everyKernel(t *testing.T, test func(t *testing.T, p path, op Op, kind reflect.Kind)) {
	for op := Sum; op <= LogicalXor; op++ {
		for kind := reflect.Bool; kind <= reflect.Complex128; kind++ {
			for _, p := range paths(op, kind) {
				t.Run(fmt.Sprintf("%v/%v/%v", op, kind, p), func(t *testing.T) { test(t, p, op, kind) })
			}
		}
	}
}

// paths returns those that have a kernel of their own; none if op does not fit.
func paths(op Op, kind reflect.Kind) (all []path) {
	last := uintptr(0)
	for p := loops; p <= best; p++ {
		f := reflect.ValueOf(find(p, op, kind)).Pointer()
		if f != last {
			all = append(all, p)
		}
		last = f
	}
	return all
}

func TestEveryPathComputesWhatThePlainLoopDoes(t *testing.T) {
	const most = 300
	step := 1
	if testing.Short() {
		step = 7
	}
	everyKernel(t, func(t *testing.T, p path, op Op, kind reflect.Kind) {
		tr := newTrial(p, op, kind, most*size(kind))
		for n := 0; n <= most; n += step {
			for i, use := range uses {
				l := tr.layout(n, use)
				l.offset[0] = (n + i) % offsets // none is left out
				tr.check(t, l)
			}
		}
	})
}

func TestLongVectorsAreCombinedToTheirEnds(t *testing.T) {
	lengths := []int{16 << 10, 16<<10 - 16, 16<<10 + 16, 16<<10 + 240, 33333}
	if testing.Short() {
		lengths = lengths[:1]
	}
	everyKernel(t, func(t *testing.T, p path, op Op, kind reflect.Kind) {
		for _, bytes := range lengths {
			n := bytes / size(kind)
			tr := newTrial(p, op, kind, n*size(kind))
			for _, use := range uses {
				tr.check(t, tr.layout(n, use))
			}
		}
	})
}

// What a rank holds must not depend on how a vector was cut into pieces.
func TestEqualOperandsGiveEqualBitsWhereverTheyAre(t *testing.T) {
	const most = 35
	everyKernel(t, func(t *testing.T, p path, op Op, kind reflect.Kind) {
		f, n, values := find(p, op, kind), size(kind), numbersOf(kind, newRandom(op, kind))
		alike := bytes.Equal
		if p == loops {
			alike = func(x, y []byte) bool { return same(kind, x, y) }
		}
		for i := range 300 {
			x, y := values[2*i*n:][:n], values[(2*i+1)*n:][:n]
			want := make([]byte, n)
			f(want, x, y)
			a, b := bytes.Repeat(x, most), bytes.Repeat(y, most)
			dst := make([]byte, len(a))
			for _, m := range []int{2, 3, 5, 7, 15, 19, most} {
				f(dst[:m*n], a[:m*n], b[:m*n])
				if !alike(dst[:m*n], bytes.Repeat(want, m)) {
					t.Fatalf("%x ⊕ %x is %x alone, but %x in %d elements", x, y, want, dst[:m*n], m)
				}
			}
		}
	})
}

// Go leaves the choice to the compiler; assembly has none.
func TestOfTwoNaNTheLeftOneStays(t *testing.T) {
	const quiet32, quiet64 = 1 << 22, 1 << 51
	x32, y32 := uint32(0x7f812345), uint32(0xffc54321)
	x64, y64 := uint64(0x7ff0_1234_5678_9abc), uint64(0xfff8_cba9_8765_4321)
	for p := loops + 1; p <= best; p++ {
		for _, op := range []Op{Sum, Prod} {
			for n := 1; n < 40; n++ {
				a, b := bytes.Repeat(binary.LittleEndian.AppendUint32(nil, x32), n), bytes.Repeat(binary.LittleEndian.AppendUint32(nil, y32), n)
				find(p, op, reflect.Float32)(b, a, b)
				if want := bytes.Repeat(binary.LittleEndian.AppendUint32(nil, x32|quiet32), n); !bytes.Equal(b, want) {
					t.Fatalf("%v: %v of %d float32: %x, want %x", p, op, n, b, want)
				}
				a, b = bytes.Repeat(binary.LittleEndian.AppendUint64(nil, x64), n), bytes.Repeat(binary.LittleEndian.AppendUint64(nil, y64), n)
				find(p, op, reflect.Float64)(b, a, b)
				if want := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, x64|quiet64), n); !bytes.Equal(b, want) {
					t.Fatalf("%v: %v of %d float64: %x, want %x", p, op, n, b, want)
				}
			}
		}
	}
}

func TestTheSameOperationsFitOnEveryPath(t *testing.T) {
	for p := loops; p <= best; p++ {
		for op := None; op <= MaxLoc; op++ {
			for kind := reflect.Invalid; kind <= reflect.UnsafePointer; kind++ {
				if fits, want := find(p, op, kind) != nil, plain(op, kind) != nil; fits != want {
					t.Errorf("%v: a kernel for %v of %v: %v, want %v", p, op, kind, fits, want)
				}
			}
		}
	}
}

func TestKernelsAllocateNothing(t *testing.T) {
	everyKernel(t, func(t *testing.T, p path, op Op, kind reflect.Kind) {
		f, v := find(p, op, kind), make([]byte, 1000*size(kind))
		if n := testing.AllocsPerRun(1, func() { f(v, v, v) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func FuzzEveryPathComputesWhatThePlainLoopDoes(f *testing.F) {
	f.Add(uint8(Sum), uint8(reflect.Float32), uint64(0x010203), []byte("an odd number of bytes, at odd places: what a network may bring"))
	f.Add(uint8(Min), uint8(reflect.Float64), uint64(0), bytes.Repeat([]byte{0xff, 0x7f}, 40))
	f.Add(uint8(LogicalXor), uint8(reflect.Bool), uint64(0x3f0000), []byte{0, 1, 1, 1})
	f.Fuzz(func(t *testing.T, op, kind uint8, places uint64, data []byte) {
		o, k := Op(op), reflect.Kind(kind)
		if plain(o, k) == nil {
			return
		}
		if k == reflect.Bool {
			for i := range data {
				data[i] &= 1
			}
		}
		l := layout{length: len(data) / 2 / size(k) * size(k), use: uses[places%uint64(len(uses))]}
		for i := range l.offset {
			l.offset[i] = int(places>>(8*(i+1))) % offsets
		}
		for p := loops; p <= best; p++ {
			tr := newTrial(p, o, k, l.length)
			copy(l.of(tr.got, l.a), data)
			copy(l.of(tr.got, l.b), data[len(data)/2:])
			tr.compare(t, l)
		}
	})
}
