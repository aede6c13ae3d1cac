//go:build !amd64

package shm

import "sync/atomic"

// publish stores a word that says that what was written before is there.
func publish(word *atomic.Uint32, value uint32) { word.Store(value) }

// retract takes a word back before what it stands for is written anew.
func retract(word *atomic.Uint32) { word.Swap(0) }

// write stores a word after what was stored before.
func write(word *atomic.Uint64, value uint64) { word.Store(value) }
