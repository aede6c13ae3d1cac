//go:build !linux

package tcp

var newPoller = newPumps
