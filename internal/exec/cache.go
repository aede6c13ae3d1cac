package exec

import (
	"fmt"
	"os"
	"sync"

	"github.com/chorale-go/chorale/sched"
)

// cacheLen returns how many bytes the last cache of a processor holds, or what
// most have where the system does not say.
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

// staysInCache reports whether what a rank writes is best kept in cache: all ranks
// together have room there, if each has as much as this one, and none hands on what
// it gets. What another reads next comes faster out of memory where processors are
// far from each other.
func staysInCache(s *sched.Schedule, bytes int) bool {
	switch s.Collective {
	case sched.AllGather, sched.AllToAll:
		return float64(s.P)*float64(bytes) <= cacheLen()
	}
	return false
}
