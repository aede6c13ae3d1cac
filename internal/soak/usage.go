package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// A usage is what a process has of what jobs must give back.
type usage struct{ goroutines, descriptors, heap int }

// Slack is what may differ: connections that are made when they are needed, and caches of a
// bounded size.
var slack = usage{goroutines: 4, descriptors: 16, heap: 16 << 20}

func currentUsage() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd") // elsewhere they are not counted
	return usage{runtime.NumGoroutine(), len(open), int(m.HeapAlloc)}
}

// check returns an error if more is in use than before, also after a second: what ends in the
// background has time to.
func (before usage) check() error {
	var now usage
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		now = currentUsage()
		if now.goroutines <= before.goroutines+slack.goroutines && now.descriptors <= before.descriptors+slack.descriptors && now.heap <= before.heap+slack.heap {
			return nil
		}
		if time.Now().After(deadline) {
			break
		}
	}
	stacks := make([]byte, 1<<16)
	return fmt.Errorf("in use are %d goroutines, %d descriptors and %d bytes of memory, before %d, %d and %d\n%s",
		now.goroutines, now.descriptors, now.heap, before.goroutines, before.descriptors, before.heap, stacks[:runtime.Stack(stacks, true)])
}

// checkUsage compares what this process uses with what it used after its first phase.
func (k *rank) checkUsage() error {
	switch {
	case !k.processes():
		return nil // the process has other ranks
	case k.baseline == nil:
		now := currentUsage()
		k.baseline = &now
		return nil
	}
	return k.baseline.check()
}
