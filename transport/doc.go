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
package transport
