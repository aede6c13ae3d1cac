// Package progress runs the operations of an endpoint whose ranks are processes. It
// is the same for shared memory and for TCP.
//
// An [Engine] has a lock, the operations that wait (steps, probes, flushes, waits for
// messages), and the tagged messages in progress. An endpoint has no thread of its own.
// The goroutine of one operation is the progress owner: it polls all links, for all
// operations and messages, until its own is over ([Transport.Progress]). The goroutines
// of the other operations sleep meanwhile. When the owner's operation is over, it hands
// ownership to another that is still waiting ([Engine.Leave]). A message that was started
// ([Message]) has no goroutine: it is done when some owner has made its progress.
//
//	Begin ── Await ── owner: Progress … ──┐
//	              └── others: sleep ───┴── Leave: wakes the next owner
//
// A transport keeps the bytes: how links are polled and written, how the owner
// spins, yields, sleeps and is woken. The engine calls it through [Transport], with
// the lock held; so it calls the engine.
//
// The tagged-message protocol ([Engine.StartSend], [Engine.StartRecv], [Engine.Probe])
// is here as well. A short message is eager: it is copied, and counted by credits that
// the receiver returns. A long one is sent by rendezvous: the sender announces it (RTS,
// ready to send), the receiver that picks it answers (CTS, clear to send), and the
// contents follow in fragments, or as the transport has it. The transport gives each of
// these a frame ([Wire]).
package progress
