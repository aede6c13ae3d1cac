package profile

import "time"

const (
	// copyBytes is more than the caches of most processors hold.
	copyBytes = 64 << 20
	copies    = 5
)

// CopyBandwidth measures how many bytes one thread copies in a second from one part of
// memory to another, the limit of what moves between ranks of a machine by one copy. It
// takes about 100 ms.
func CopyBandwidth() float64 {
	from, to := make([]byte, copyBytes), make([]byte, copyBytes)
	copy(to, from) // the pages are there from now on
	best := time.Duration(1<<63 - 1)
	for range copies {
		start := time.Now()
		copy(to, from)
		best = min(best, time.Since(start))
	}
	return copyBytes / max(best.Seconds(), 1e-9)
}
