package network

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// watchUnread bounds how long data may be under way.
func watchUnread(fd uintptr) error { return bound(fd, unansweredMax) }

// watchRead undoes watchUnread: that bound ends also the connection of a peer that is there
// and does not read. The system asks such a peer whether it has room.
func watchRead(fd uintptr) error { return bound(fd, 0) }

// bound bounds for how long the system sends data again, if at all. It bounds the pauses,
// too, which become longer otherwise, so that HostIsSilent notices within LossTimeout that
// no answer comes; Linux does that since version 6.15.
func bound(fd uintptr, most time.Duration) error {
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(probePause/time.Millisecond))
	if err == unix.ENOPROTOOPT {
		err = nil
	}
	return errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(most/time.Millisecond)))
}

// HostIsSilent reports whether data or a probe is under way on a connection, and has been
// sent again, but no packet has come for so long that the host of the other end is lost.
// It is false where the system does not say, which ends such connections itself.
func HostIsSilent(fd uintptr) bool {
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return false
	}
	since := time.Duration(min(info.Last_ack_recv, info.Last_data_recv)) * time.Millisecond
	return since >= silenceMax && (info.Unacked > 0 && info.Retransmits >= 2 || info.Probes >= probesMax)
}
