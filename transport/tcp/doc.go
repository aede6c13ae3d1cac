// Package tcp is the transport between processes over TCP: one connection for each
// pair of ranks that exchanges messages, made when either of the two first needs it.
//
// [New] makes the endpoint of one rank. [Loopback] makes all endpoints of a job in one
// process.
//
// # Messages
//
// A message of a step is one frame, or several of up to 4 MiB each: a header, in the
// first frame the text of the call, and bytes of the message. A body of up to 8 KiB is
// copied behind its header; a longer one is written from where it lies, by the same
// system call. The receiver reads into a buffer of 32 KiB, parses, and copies or combines
// from there. Once a header announces 4 KiB or more that are still to come, it reads them
// straight to where they go, or, where they are combined, into a buffer of 256 KiB.
// Tagged messages are eager up to 64 KiB, and go by rendezvous (RTS, CTS, fragments)
// beyond. Short ones that are started one after the other are written together
// (burst.go), and so are those of calls that only send and follow each other (streak.go).
// frame.go has the wire format, docs/transports.md the protocols.
//
// # Progress
//
// No goroutine reads or writes on its own. The goroutine of one operation is the
// progress owner (package progress): it reads and writes all connections until its own
// messages are complete. A message goes from the caller of one rank to the caller of
// the other without a goroutine in between. The owner spins, then yields, then sleeps
// in an epoll instance of the endpoint. Where there is no epoll, and for encrypted
// connections, two goroutines for each connection read and write (goroutine_stream.go).
//
// A message that arrives before its receive waits in the socket, and holds back its
// sender once the socket is full. If an operation waits for a tagged message, or for a
// message of another context, the message is moved to the unexpected queue.
//
// # Failures
//
// A rank that closes its endpoint or gives up writes a termination notice on every
// connection. A connection that ends without one is a lost rank. So is a rank from whose
// host no packet comes any more (hosts.go), and one of which the launcher says so
// ([Endpoint.Lost]). Either revokes the communicators of the rank, and the others go on
// (revoke.go). A rank that waits for a silent peer sends it a stall probe with its call after 10 ms; if
// the peer is in another call, both get a mismatch.
package tcp
