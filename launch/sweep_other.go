//go:build !linux

package launch

// sweep finds nothing where the environment of a process cannot be read.
func sweep(string) (found int) { return 0 }
