// Package shm is the transport between processes that share memory. The launcher
// makes one file without a name ([NewMemory]); the ranks inherit it and map it as
// their segment ([New]). [Loopback] makes all endpoints of a job in one process. The
// package is for Linux.
//
// # Three protocols
//
// From every rank to every other leads a ring of cells of one cache line each. A cell
// holds a frame: what call it belongs to, and up to 40 bytes. Its sequence word is
// written last, so that payload and flag travel from core to core in one line.
//
//   - Inline, up to 40 bytes: the message is in the cell. In a job of 4 to 64 ranks, a
//     message of up to 24 bytes to three ranks or more is in one multicast cell, which
//     all of them read.
//     Two ranks alone also share two pair cells, which take up to 1 KiB, also of a tagged
//     message, and in which each writes where it has read last (pair.go).
//   - Staged, below 64 KiB: the message goes through staging buffers of its sender, in
//     chunks of 2 KiB. The receiver copies or combines straight from the buffer, while
//     the sender fills the next. A message to several ranks is staged once.
//   - Rendezvous, from 64 KiB on, and from 128 KiB on to several ranks: the frame says
//     where the message lies in the sender's memory, and the receiver reads it there, by
//     cross-memory attach (CMA, process_vm_readv): one copy. It takes a peer that has
//     joined and that can be read, and fewer than 12 open rendezvous with it; otherwise
//     the message is staged. If no staging buffer frees up, the rest of a staged message
//     switches to rendezvous. A receiver that cannot read its sender replies so, and the
//     sender stages the message.
//
// So 100 bytes take one staging buffer and one frame: two copies. 10 KiB take five
// chunks, of which the receiver reads one while the sender writes another. 10 MiB take
// one frame and one copy, in system calls of 512 KiB; a receive that combines reads
// pieces of 128 KiB. Tagged messages are eager up to 64 KiB: they are copied into a cell
// or a staging buffer, and wait in the receiver's queue. Longer ones are announced (RTS),
// and offered: a receiver that can read its sender's memory takes them from there (offer.go).
// Another one asks for the contents (CTS), which are staged.
//
// A message of 4 KiB or more in memory from [Endpoint.Alloc] goes by rendezvous, too; but
// the receiver has mapped that memory, and copies or combines it from there (arena.go).
//
// Memory from which messages go by rendezvous again and again is moved to huge pages.
// That halves the time of the copy, and costs up to 2 MiB at each end of a buffer.
// docs/transports.md shows the segment's layout and the protocols as state diagrams.
//
// # Progress
//
// A step of messages of up to 2 KiB takes the fast path if no other operation is in
// progress (fast_path.go). Otherwise the goroutine of one operation is the progress owner
// (package progress): it polls the rings until its own messages are complete. It spins
// for 3000 polls, or 20 where ranks are oversubscribed, then yields, then sleeps on the
// futex word of its rank state. The status word beside it says what the rank sleeps for.
// A peer that has written or taken a frame reads the status word, and wakes the rank if
// it sleeps for that.
//
// A message that arrives before its receive stays in the ring, and holds back its
// sender once the ring is full. If an operation waits for what may come behind it (a
// tagged message, a message of another context, the rest of a message), it is moved to
// the unexpected queue, in memory of the receiver's process. A rendezvous message stays
// with its sender, and only its announcement moves. When 4 MiB are unexpected, the
// receiver lets the sender go on only in the contexts in which it waits.
//
// # Failures
//
// All memory is allocated when the segment is made, so that a lack of it is an error
// then, and not a signal later; [MemoryLen] says how much it is. It is not mlocked.
// Nothing has a name in the file system: when the last process that has the file ends,
// the memory is gone.
//
// There is no lock in the segment, so that a rank that is killed at any moment leaves
// nothing that others would wait for. A rank that closes its endpoint or gives up writes a
// termination record. A rank holds a lock on a byte of the file, which the kernel releases
// when its process ends: a rank that waits for a peer checks that lock every 100 ms, and
// fails within half a second if the peer is gone. A launcher that knows sooner calls
// [Endpoint.Lost]. Where the file cannot be opened a second time, only the launcher
// knows. A rank that is stopped keeps its lock, and is waited for.
//
// Ranks in different calls learn it from the header of a message, or, where none is read,
// from the stall records that they write after 10 ms (stall.go).
package shm
