// Package inproc is the transport between goroutines of one process.
//
// [New] makes a job, and [Job.Endpoint] gives each rank its endpoint. Nothing is
// made for two ranks before they exchange a message, so that the memory of a job of
// many thousand ranks grows with the pairs that communicate.
//
// # How the message of a step travels
//
// Each ordered pair of ranks has one link per context: a ring of two cells, each of
// one cache line. A message's size selects its protocol:
//
//   - inline, up to 32 bytes: the sender copies the bytes into the cell, beside the
//     header (the call that the message belongs to, its size, an acknowledgment).
//     The message is one cache line. The sender goes on at once.
//   - buffered, up to 1 KiB: the sender copies the bytes into the cell's buffer and
//     goes on at once. To wait for the receiver would cost a round trip, and often
//     a sleep; to copy 1 KiB costs a tenth of that.
//   - rendezvous, longer: the cell refers to the sender's memory, the receiver
//     reads it there, and the sender's Exchange returns when all its receivers have
//     read. The bytes are read once, from cache if they are there.
//
// In a job of two ranks, a message of up to 1 KiB goes into a pair cell instead if its
// sender holds one: see pair.go.
//
// So 20 bytes are inline, 500 bytes are buffered, and 10 MiB are a rendezvous
// message. In all three the receiver combines while it reads: a reduction needs no
// receive buffer. A sender that finds all cells in use queues its message and
// completes receives until its receiver has freed a cell.
//
// # Waiting and waking
//
// There is no progress goroutine. A rank makes progress inside Exchange: it polls
// its links, writing the sends that find a free cell and completing the receives
// whose messages have arrived. A rank that makes none backs off: it spins, then
// yields its processor now and then, then sleeps. If the ranks outnumber the
// processors, it sleeps at once.
//
// Before a rank sleeps, it publishes in its wait word what it waits for: the message
// of one rank or of several, a free cell, or the completion of its rendezvous
// messages. The rank that causes the event wakes it: the sender of the message that
// is due, the receiver that has freed the cell, the receiver that was the last to
// read. The end of the context.Context, the stall timeout, and a rank that ends wake
// it too. File ordering.go describes the memory accesses.
//
// # Tagged messages
//
// Each rank has a queue of tagged messages and a list of its posted receives, with a
// lock. A message of up to 1 KiB goes into a ring of its sender's, which the receiver reads
// as it looks for a message: see ring.go. Two ranks have pair cells beside it: see
// ring_pair.go. One of up to 8 KiB is copied by its sender, under
// the lock, to the first posted receive that takes it, or else into the queue. It is eager:
// its send is done. A longer one is a rendezvous message: the ring, or the queue, refers to
// it, and its send is done when the receiver has copied it. So is any message of a sender
// whose eager messages in this queue hold 1 MiB. A rank that waits for a send, and polls in
// vain for some microseconds, reads the ring in place of the receiver; then it copies its
// message into the queue if that has up to 64 KiB, so that the message becomes eager.
// Receives and probes search the queue in order of arrival. A rank that waits for a request
// spins, and then sleeps on a channel until the request is done or a rank has ended.
//
// # When a rank leaves or fails
//
// A rank leaves by Close. It fails by a mistake in an Exchange, by [Endpoint.Abort], or by
// [Job.Abort]. Its endpoint then ends: it sets its wait words to a value that stays, leaves a
// termination notice, and wakes the ranks that have links with it or wait for tagged
// messages. The notice is a [transport.PeerError] with [transport.ErrLeft] or
// [transport.ErrAborted].
//
// Any other error of an Exchange revokes its communicator, and so does [Endpoint.Revoke]. The
// wait words of all its ranks in its contexts get that value, and a step that finds it there
// fails. What lies in the cells of these contexts stays unread until they are released. Queued
// tagged messages are dropped, but for those of the resilient context. A rank that gives up
// revokes every communicator that it belongs to.
//
// Messages that the rank has written are still received. The exception are its
// rendezvous messages, if its Exchange returns an error: the Exchange first cancels
// those that no receiver has begun to read, and waits for the receivers that have
// begun. A peer fails with the notice if its step needs a message from this rank
// that was not written, or needs this rank to receive one: a message that waits for
// a free cell, an unread rendezvous message, or any message that is written after
// the rank has ended. An inline or buffered message that was written before is
// complete for its sender. [Endpoint.CheckUnreceived], called before Close, finds a
// message that the rank has not received.
//
// Ranks whose calls differ get a [transport.MismatchError]. A receiver compares the
// header of each message with its own call. Where no message arrives, a rank that
// sleeps for longer than the stall timeout (10 ms plus 50 µs per rank) compares
// its call with those of the ranks that it has links with.
package inproc
