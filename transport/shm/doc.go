// Package shm is the transport between processes that share memory. The launcher
// makes one file without a name ([NewMemory]); the ranks inherit it and map it as
// their segment ([New]). [Loopback] makes all endpoints of a job in one process. The
// package is for Linux.
//
// # Three protocols
//
// From every rank to every other leads a ring of cells of one cache line each. A cell
// holds a frame: what call it belongs to, and up to 40 bytes. Its sequence word is
// written last, so that one line travels from core to core and brings the message
// together with the fact that it is there.
//
//   - Inline (up to 40 bytes): the message is in the cell. A message of up to 24 bytes
//     to three ranks or more is in one multicast cell, which all of them read.
//   - Staged (up to 64 KiB): the message goes through staging buffers of its sender, in
//     chunks. The receiver copies or combines straight from the buffer, while the
//     sender fills the next. A message to several ranks is staged once.
//   - Rendezvous (from 64 KiB on; from 128 KiB to several ranks): the frame says where
//     the message lies in the sender's memory, and the receiver reads it there, by
//     cross-memory attach (CMA, process_vm_readv): one copy. Where the system does not
//     allow that, the receiver makes a pull request, and the sender stages the message.
//     If no staging buffer frees up, the rest of a staged message switches to rendezvous.
//
// Memory from which messages go by rendezvous again and again is moved to huge pages:
// a buffer takes up to 2 MiB more at each end then, and a message half of the time.
// docs/transports.md shows the segment's layout and the protocols as state diagrams.
//
// # Progress
//
// A step of messages of up to 2 KiB that meets nothing else in progress is done on the
// spot (fast_path.go). Otherwise the goroutine of one operation is the progress owner
// (package progress): it polls the rings until its own messages are complete. It spins
// if every rank has a core, then yields, then sleeps on the futex word of its rank
// state, which says what it sleeps for. A peer that has written or taken a frame looks
// there, and wakes it.
//
// A message that arrives before its receive stays in the ring, and holds back its
// sender once the ring is full. If an operation waits for a tagged message, or for a
// message of another context, the message is moved to the unexpected queue, in memory
// of the receiver's process; only the senders' steps bound that queue.
//
// # Failures
//
// All memory is allocated when the segment is made, so that a lack of it is an error
// then, and not a signal later; [MemoryLen] says how much it is. It is not locked
// memory. Nothing has a name in the file system: when the last process that has the
// file ends, the memory is gone.
//
// There is no lock in the segment. Each word has one writer, so that a rank that is
// killed at any moment leaves nothing that others would wait for. A rank that closes
// its endpoint or gives up writes a termination record. A rank holds a lock on a byte
// of the file, which the kernel releases when its process ends: a rank that waits for
// a peer checks that lock every 100 ms, and fails within half a second if the peer is
// gone. A launcher that knows sooner calls [Endpoint.Lost]. A rank that is stopped
// keeps its lock, and is waited for.
package shm
