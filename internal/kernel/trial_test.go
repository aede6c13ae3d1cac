package kernel

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"
)

// size returns the bytes of an element.
func size(kind reflect.Kind) int {
	switch kind {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return 1
	case reflect.Int16, reflect.Uint16:
		return 2
	case reflect.Int32, reflect.Uint32, reflect.Float32:
		return 4
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return int(unsafe.Sizeof(0))
	case reflect.Complex128:
		return 16
	}
	return 8
}

// A stage is memory for three vectors with room around them. It begins where a
// cache line does, so that offsets are alignments.
type stage []byte

const (
	offsets = 64
	vectors = 3
)

func newStage(length int) stage {
	m := make([]byte, vectors*room(length)+offsets)
	return m[-uintptr(unsafe.Pointer(&m[0]))%offsets:]
}

// room is what one vector takes: itself, an offset before it, and a line behind.
func room(length int) int { return (length/offsets + 3) * offsets }

// A use says which of three vectors the destination and the operands are.
type use struct{ dst, a, b int }

// uses are apart, in place on either side, and with one for both operands.
var uses = []use{{0, 1, 2}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {0, 0, 0}}

// A layout is where vectors are on a stage: their length in bytes, and their
// offsets.
type layout struct {
	length int
	offset [vectors]int
	use
}

func (l layout) of(s stage, i int) []byte {
	return s[i*room(l.length)+l.offset[i]:][:l.length:l.length]
}

func (l layout) run(s stage, f Func) { f(l.of(s, l.dst), l.of(s, l.a), l.of(s, l.b)) }

// A trial compares a kernel with the plain loop, on vectors of its values.
type trial struct {
	kind      reflect.Kind
	f, plain  Func
	random    *rand.Rand
	values    []byte
	got, want stage
}

func newTrial(p path, op Op, kind reflect.Kind, longest int) *trial {
	return &trial{
		kind: kind, f: find(p, op, kind), plain: plain(op, kind),
		random: newRandom(op, kind),
		got:    newStage(longest), want: newStage(longest),
	}
}

func newRandom(op Op, kind reflect.Kind) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(op), uint64(kind)))
}

// layout returns one with n elements, anywhere.
func (tr *trial) layout(n int, u use) layout {
	l := layout{length: n * size(tr.kind), use: u}
	for i := range l.offset {
		l.offset[i] = tr.random.IntN(offsets)
	}
	return l
}

// check compares on vectors of any values.
func (tr *trial) check(t *testing.T, l layout) {
	t.Helper()
	if tr.values == nil {
		tr.values = numbersOf(tr.kind, tr.random)
	}
	for i := range vectors {
		for rest := l.of(tr.got, i); len(rest) > 0; {
			from := tr.random.IntN(len(tr.values)/size(tr.kind)) * size(tr.kind)
			rest = rest[copy(rest, tr.values[from:]):]
		}
	}
	tr.compare(t, l)
}

// compare runs both on what is on the stage. Nothing around the destination may
// change.
func (tr *trial) compare(t *testing.T, l layout) {
	t.Helper()
	got, want := tr.got[:vectors*room(l.length)], tr.want[:vectors*room(l.length)]
	copy(want, got)
	a, b := slices.Clone(l.of(got, l.a)), slices.Clone(l.of(got, l.b))
	l.run(got, tr.f)
	l.run(want, tr.plain)
	n := size(tr.kind)
	d, w := l.of(got, l.dst), l.of(want, l.dst)
	for i := 0; i < l.length && !bytes.Equal(d, w); i += n {
		if !same(tr.kind, d[i:i+n], w[i:i+n]) {
			t.Fatalf("%+v: element %d of %d is %x: want %x ⊕ %x = %x",
				l, i/n, l.length/n, d[i:i+n], a[i:i+n], b[i:i+n], w[i:i+n])
		}
	}
	copy(d, w)
	if !bytes.Equal(got, want) {
		t.Fatalf("%+v: memory around the destination has changed", l)
	}
}

// same reports whether two elements have the same bits, or are NaN: of several
// the compiler may take any.
func same(kind reflect.Kind, x, y []byte) bool {
	switch kind {
	case reflect.Float32, reflect.Complex64:
		for i := 0; i < len(x); i += 4 {
			p, q := binary.NativeEndian.Uint32(x[i:]), binary.NativeEndian.Uint32(y[i:])
			if f, g := math.Float32frombits(p), math.Float32frombits(q); p != q && (f == f || g == g) {
				return false
			}
		}
		return true
	case reflect.Float64, reflect.Complex128:
		for i := 0; i < len(x); i += 8 {
			p, q := binary.NativeEndian.Uint64(x[i:]), binary.NativeEndian.Uint64(y[i:])
			if f, g := math.Float64frombits(p), math.Float64frombits(q); p != q && (f == f || g == g) {
				return false
			}
		}
		return true
	}
	return bytes.Equal(x, y)
}

// numbersOf returns numbers of a kind: any bits, and often those at which
// arithmetic has its edges.
func numbersOf(kind reflect.Kind, random *rand.Rand) []byte {
	edges := edgesOf(kind)
	var all []byte
	for range 4096 {
		switch {
		case kind == reflect.Bool:
			all = append(all, byte(random.IntN(2)))
		case random.IntN(2) == 0:
			all = append(all, edges[random.IntN(len(edges))]...)
			if kind == reflect.Complex64 || kind == reflect.Complex128 {
				all = append(all, edges[random.IntN(len(edges))]...)
			}
		default:
			bits := binary.LittleEndian.AppendUint64(nil, random.Uint64())
			bits = binary.LittleEndian.AppendUint64(bits, random.Uint64())
			all = append(all, bits[:size(kind)]...)
		}
	}
	return all
}

// edgesOf returns the edges of a kind; of a complex one those of its parts.
func edgesOf(kind reflect.Kind) (edges [][]byte) {
	switch kind {
	case reflect.Float32, reflect.Complex64:
		for _, bits := range []uint32{
			0, 1 << 31, // zeroes
			1, 1<<31 | 1, 0x007fffff, 0x00800000, // around the least normal one
			0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, // ones, and the greatest
			0x7f800000, 0xff800000, // infinities
			0x7fc00000, 0xffc00000, 0x7fc12345, 0xffedcba9, 0x7f800001, 0xffa54321, // NaN, the last two signalling
		} {
			edges = append(edges, binary.NativeEndian.AppendUint32(nil, bits))
		}
	case reflect.Float64, reflect.Complex128:
		for _, bits := range []uint64{
			0, 1 << 63,
			1, 1<<63 | 1, 0x000f_ffff_ffff_ffff, 0x0010_0000_0000_0000,
			math.Float64bits(1), math.Float64bits(-1), 0x7fef_ffff_ffff_ffff, 0xffef_ffff_ffff_ffff,
			0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000,
			0x7ff8_0000_0000_0000, 0xfff8_0000_0000_0000, 0x7ff8_1234_5678_9abc, 0xfffe_dcba_9876_5432, 0x7ff0_0000_0000_0001, 0xfff4_5432_1000_0000,
		} {
			edges = append(edges, binary.NativeEndian.AppendUint64(nil, bits))
		}
	default:
		top := uint64(1) << (8*size(kind) - 1)
		for _, bits := range []uint64{0, 1, 2, top - 1, top, top + 1, 2*top - 1, 2*top - 2, 1 << 31, 1<<32 - 1, 1 << 32} {
			edges = append(edges, binary.LittleEndian.AppendUint64(nil, bits)[:size(kind)])
		}
	}
	return edges
}
