package kernel

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestPackAndUnpackMoveEveryByteOfABlockAndNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.SampledFrom([]int{1, 2, 3, 4, 8, 16, 24, 32, 64, 100}).Draw(t, "block")
		stride := block + rapid.IntRange(0, 40).Draw(t, "gap")
		n := rapid.IntRange(0, 20*block).Draw(t, "bytes")
		at := rapid.IntRange(0, 3).Draw(t, "offset") // unaligned
		strided := make([]byte, at+(n+block-1)/block*stride)[at:]
		for i := range strided {
			strided[i] = byte(i*7 + 1)
		}
		packed := make([]byte, n)
		Pack(packed, strided, block, stride)
		for i, got := range packed {
			if want := strided[i/block*stride+i%block]; got != want {
				t.Fatalf("byte %d is %d, want %d", i, got, want)
			}
		}
		dst := bytes.Repeat([]byte{0xee}, len(strided))
		Unpack(dst, packed, block, stride)
		for i, got := range dst {
			want := byte(0xee)
			if i%stride < block && i/stride*block+i%stride < n {
				want = strided[i]
			}
			if got != want {
				t.Fatalf("byte %d of the unpacked is %d, want %d", i, got, want)
			}
		}
	})
}

func TestPackAndUnpackStayInBounds(t *testing.T) {
	for name, f := range map[string]func(){
		"Pack":                  func() { Pack(make([]byte, 16), make([]byte, 27), 8, 20) },
		"Unpack":                func() { Unpack(make([]byte, 27), make([]byte, 16), 8, 20) },
		"Pack, part of a block": func() { Pack(make([]byte, 12), make([]byte, 23), 8, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it reads or writes beyond the end")
				}
			}()
			f()
		})
	}
}

func BenchmarkPack(b *testing.B) {
	for _, block := range []int{4, 8, 16, 64} {
		for _, rows := range []int{1 << 10, 1 << 17} {
			b.Run(fmt.Sprintf("block=%d/blocks=%d", block, rows), func(b *testing.B) {
				const stride = 128
				strided, packed := bytes.Repeat([]byte{1}, rows*stride), bytes.Repeat([]byte{1}, rows*block)
				b.SetBytes(int64(len(packed)))
				for b.Loop() {
					Pack(packed, strided, block, stride)
				}
			})
		}
	}
}
