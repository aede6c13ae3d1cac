//go:build !race

package inproc

const manyRanks = 10_000
