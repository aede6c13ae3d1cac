//go:build race

package inproc

// The race detector takes no more than 8128 goroutines.
const manyRanks = 1000
