// Package network finds the addresses at which the processes of a job reach each other
// over several hosts, connects to them, and notices a host that is lost.
//
// [Candidates] says at which addresses other hosts may reach this one, best first. A
// process listens there with [Listen], and publishes the text of [Join]. [Dial] tries the
// addresses of such a text and takes the first whose handshake succeeds: behind an address
// that several hosts have, as that of docker0, there may be another process than the one
// wanted.
//
// [WatchHost] has the system end a connection with a host from which no packet comes any
// more. For data, which a receiver may leave unread for as long as it computes, there are
// [WatchDataHost] and [HostIsSilent].
package network
