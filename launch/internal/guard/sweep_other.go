//go:build !linux

package guard

// sweep returns 0: other systems do not show a process's environment.
func sweep(string) (found int) { return 0 }
