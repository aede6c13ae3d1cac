//go:build !linux

package mixed

func yield() {}
