package network

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// watchUnread bounds how long data may be under way.
func watchUnread(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unansweredMax/time.Millisecond))
}

// watchRead undoes watchUnread: that bound ends also the connection of a peer that is there
// and does not read. The system asks such a peer whether it has room, in pauses that
// become longer; a bound for them, which Linux has since version 6.15, lets
// HostIsSilent notice within LossTimeout that no answer comes.
func watchRead(fd uintptr) error {
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
	if bound := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(probePause/time.Millisecond)); bound != unix.ENOPROTOOPT {
		err = errors.Join(err, bound)
	}
	return err
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
