// Package netns makes two hosts out of network namespaces, for tests on Linux. It needs
// root, and the programs ip, nsenter and unshare.
//
// Each host has an interface eth0 that leads to the other, with an IPv4 and an IPv6
// address, and an interface docker0 that has the same address on both. A namespace exists
// as long as a process is in it, so that nothing remains when a test is killed.
package netns
