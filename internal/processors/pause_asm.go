//go:build amd64 || arm64

package processors

// Pause waits for some tens of nanoseconds, in a loop that polls memory. What another
// processor is about to write stays with that processor meanwhile, and a processor that
// shares this one's core has the core.
//
//go:noescape
func Pause()
