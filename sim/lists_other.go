//go:build !linux

package sim

func adviseHugePages([]byte) {}
