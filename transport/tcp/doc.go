// Package tcp is the transport between processes over TCP: one connection for each
// pair of ranks that exchanges messages, made when either of the two first needs it.
//
// [New] makes the endpoint of one rank. [Loopback] makes all endpoints of a job in one
// process.
//
// # Messages
//
// A message of a step is one frame, or several of 4 MiB each: a header, the text of the
// call, and bytes of the message. A short body is copied behind its header, so that one
// system call writes both. The receiver reads a long body straight into the memory
// where it goes, and combines from its read buffer. Tagged messages are eager up to
// 64 KiB, and go by rendezvous (RTS, CTS, fragments) beyond. frame.go has the wire
// format, docs/transports.md the protocols.
//
// # Progress
//
// No goroutine reads or writes on its own. The goroutine of one operation is the
// progress owner (package progress): it reads and writes all connections until its own
// messages are complete. A message goes from the caller of one rank to the caller of
// the other without a goroutine in between. The owner spins, then yields, then sleeps
// in an epoll instance of the endpoint. Where there is no epoll, two goroutines for
// each connection read and write (goroutine_stream.go).
//
// A message that arrives before its receive waits in the socket, and holds back its
// sender once the socket is full. If an operation waits for a tagged message, or for a
// message of another context, the message is moved to the unexpected queue.
//
// # Failures
//
// A rank that closes its endpoint or gives up writes a termination notice on every
// connection. A connection that ends without one is a lost rank. A rank that waits for
// one that says nothing sends it a stall probe with its call; if the peer is in another
// call, both get a mismatch.
package tcp
