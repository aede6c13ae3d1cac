//go:build race

package transporttest

func init() { underRace = true }
