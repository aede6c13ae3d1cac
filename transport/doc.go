// Package transport defines how bytes move between the ranks of a job.
//
// An [Endpoint] is one rank's attachment to a job. It does the steps of collective
// calls ([Exchanger]) and carries tagged messages between two ranks ([Messenger]).
// A transport knows nothing of schedules or algorithms: a [Step] is a list of byte
// slices to send and a list of byte slices to fill.
//
// The packages below implement Endpoint: inproc between goroutines of one process,
// shm between processes that share memory, tcp over connections, and mixed by
// joining two others. Package transporttest is the contract that each of them
// passes.
//
// A transport outside of this module implements Endpoint and runs the contract of
// package transporttest in its tests. Programs use it with chorale.NewComm, which
// makes a communicator over an endpoint of any transport.
//
// # How messages travel
//
// The transports name their protocols alike:
//
//	             inproc              shm                      UCX
//	inline       up to 32 bytes      up to 40 bytes           short   in the cache line of the header
//	buffered     up to 1 KiB                                  bcopy   in a buffer of the cell
//	staged                           below 64 KiB             bcopy   in chunks through buffers of the sender
//	rendezvous   longer              longer                   zcopy   read from the sender's memory
//
// Over tcp the socket is the buffer. A tagged message is eager up to 64 KiB: it is
// copied, and waits at its receiver. A longer one is sent by rendezvous: it is announced,
// and stays with its sender until a receive asks for it. An [EagerMessenger] copies short
// ones without a request, where nothing has to be waited for.
package transport
