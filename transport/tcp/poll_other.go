//go:build !linux

package tcp

var newPoller = newGoroutineStreams
