package sim

import "unsafe"

// makeList is make for a list that is not read in order: it is in huge pages, where
// the system has them and the list is long enough, so that the processor finds it
// without a walk through the page tables. Its elements hold no pointers.
func makeList[T any](n, room int) []T {
	list := make([]T, n, room)
	adviseHugePages(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), uintptr(room)*unsafe.Sizeof(*new(T))))
	return list
}
