package network

import (
	"time"

	"golang.org/x/sys/unix"
)

// watchUnread bounds how long data may be sent again. It does not concern a peer that is
// there and does not read.
func watchUnread(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RXT_CONNDROPTIME, int(unansweredMax/time.Second))
}

func watchRead(fd uintptr) error { return watchUnread(fd) }

// HostIsSilent reports whether the host of the other end of a connection is lost. It is
// false where the system does not say, which ends such connections itself.
func HostIsSilent(uintptr) bool { return false }
