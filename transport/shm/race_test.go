//go:build race

package shm

func init() { underRace = true }
