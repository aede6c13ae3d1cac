package selection

import (
	"fmt"
	"os"
	"sync"

	"github.com/chorale-go/chorale/sched"
)

// Temporal reports whether the receives of a call are best written with temporal
// stores, which keep the bytes in cache. Bytes are those of both buffers of one
// rank.
//
// That is so if no rank forwards what it receives, and the buffers of all ranks
// fit into the last-level cache, if each rank has as many bytes as this one. Bytes
// that another rank reads next come faster from memory where processors are far
// from each other.
func Temporal(c sched.Collective, ranks, bytes int) bool {
	return temporal(c, ranks, bytes, cacheLen())
}

func temporal(c sched.Collective, ranks, bytes int, cache float64) bool {
	switch c {
	case sched.AllGather, sched.AllToAll:
		return float64(ranks)*float64(bytes) <= cache
	}
	return false
}

// cacheLen returns the bytes of a processor's last-level cache. It is 16 MiB, a
// common size, where the system does not tell.
var cacheLen = sync.OnceValue(func() float64 {
	kib := 16 << 10
	for _, level := range []string{"3", "2"} {
		text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/index" + level + "/size")
		if _, bad := fmt.Sscanf(string(text), "%dK", &kib); err == nil && bad == nil {
			break
		}
	}
	return float64(kib) * 1024
})
