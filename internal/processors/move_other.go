//go:build !linux

package processors

// Current returns the number of the processor that this thread runs on, or -1.
func Current() int { return -1 }

// Nth returns the number of the i-th of the processors that this thread may run on, where
// the first one follows the last one. It returns -1 if there is just one.
func Nth(int) int { return -1 }

// MoveTo moves this thread to a processor, if it may run there. The scheduler may move it
// away again.
func MoveTo(int) {}

// MoveFrom moves this thread to another processor than one, if it may run on others. The
// scheduler may move it back.
func MoveFrom(int) {}
