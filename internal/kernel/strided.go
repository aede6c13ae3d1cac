package kernel

import "unsafe"

// Pack fills dst with blocks of src, whose beginnings lie stride bytes apart. All
// lengths are in bytes. Dst may end within a block. Pack panics if a block is not in
// src, and takes time proportional to the length of dst.
func Pack(dst, src []byte, block, stride int) {
	whole := wholeBlocks(len(dst), src, block, stride)
	moveBlocks(dst, src, block, block, stride, whole)
	copy(dst[whole*block:], src[min(len(src), whole*stride):])
}

// Unpack is the inverse of Pack: it writes src to the blocks of dst, and nothing
// between them.
func Unpack(dst, src []byte, block, stride int) {
	whole := wholeBlocks(len(src), dst, block, stride)
	moveBlocks(dst, src, block, stride, block, whole)
	copy(dst[min(len(dst), whole*stride):], src[whole*block:])
}

// wholeBlocks returns how many whole blocks n bytes are, and panics unless strided
// holds these bytes.
func wholeBlocks(n int, strided []byte, block, stride int) int {
	if n == 0 {
		return 0
	}
	whole := n / block
	if rest := n % block; rest > 0 {
		_ = strided[:whole*stride+rest]
	} else {
		_ = strided[:(whole-1)*stride+block]
	}
	return whole
}

// moveBlocks copies n blocks. Short ones have loops of their own: a call of copy takes
// longer than such a block.
func moveBlocks(dst, src []byte, block, dstStride, srcStride, n int) {
	to, from := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	switch block {
	case 1:
		move[[1]byte](to, from, dstStride, srcStride, n)
	case 2:
		move[[2]byte](to, from, dstStride, srcStride, n)
	case 4:
		move[[4]byte](to, from, dstStride, srcStride, n)
	case 8:
		move[[8]byte](to, from, dstStride, srcStride, n)
	case 16:
		move[[16]byte](to, from, dstStride, srcStride, n)
	case 32:
		move[[32]byte](to, from, dstStride, srcStride, n)
	case 64:
		move[[64]byte](to, from, dstStride, srcStride, n)
	default:
		for i := range n {
			copy(dst[i*dstStride:][:block], src[i*srcStride:][:block])
		}
	}
}

// move copies n blocks of a size that the compiler knows.
func move[Block any](to, from unsafe.Pointer, toStride, fromStride, n int) {
	for i := range n {
		*(*Block)(unsafe.Add(to, i*toStride)) = *(*Block)(unsafe.Add(from, i*fromStride))
	}
}
