package sim

import (
	"syscall"
	"unsafe"
)

// adviseHugePages asks for huge pages where memory fills them. An error means that
// the memory stays as it is.
func adviseHugePages(memory []byte) {
	const hugePage = 2 << 20
	start := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % hugePage)
	if end := start + (len(memory)-start)/hugePage*hugePage; end > start {
		_ = syscall.Madvise(memory[start:end], syscall.MADV_HUGEPAGE)
	}
}
