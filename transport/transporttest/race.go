//go:build race

package transporttest

func init() { UnderRace = true }
