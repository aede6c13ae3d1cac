// Package processors counts the processors that this process may use, and lets one pause.
//
// [runtime.NumCPU] counts those that the scheduler may put the process on. A
// container's quota takes away time instead: a process that may use 2 of 64
// processors still sees 64, and is suspended for the rest of each period once its
// threads have used up what the quota allows. Ranks that spin then take the time
// from those that work.
package processors

import (
	"os"
	"runtime"
	"sync"
)

// Available returns the number of processors that this process may use at a time,
// at least 1: those that it may run on, or its quota if that is less. The quota is
// the least of all cgroups that hold the process, rounded up. It is read at the
// first call.
var Available = sync.OnceValue(func() int { return atMost(runtime.NumCPU(), os.DirFS("/")) })

// Parallel returns the number of goroutines that can run at a time: [Available], or
// GOMAXPROCS if that is less.
func Parallel() int { return min(Available(), runtime.GOMAXPROCS(0)) }
