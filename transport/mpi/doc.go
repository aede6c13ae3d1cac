// Package mpi is the transport over an installed MPI: its messages go by MPI's
// point-to-point calls, so that a network is used for which that MPI has the code, as
// InfiniBand, Slingshot or Omni-Path.
//
// The package needs cgo and an MPI library where a program is built with the tag mpi.
// Without the tag [New] returns an error that says how to build, and nothing of cgo is
// linked. The tags choose the library:
//
//	go build -tags mpi,mpich   MPICH, as pkg-config knows it
//	go build -tags mpi,ompi    Open MPI, as pkg-config knows it
//	go build -tags mpi         the library that CGO_CFLAGS and CGO_LDFLAGS name
//
// A program works with the library that it was built with, and has to be started by the
// launcher of that library.
//
// # Messages
//
// All frames between two ranks have one tag, so that they arrive in order; frame.go has
// their format. A message of a step of up to 16 KiB is one frame, as long as the sender has
// credits: its eager messages that the receiver has not received are 1 MiB at most. A longer
// message, or one beyond the credits, is announced (RTS). The receiver posts a receive for
// a piece of it and asks for that piece (CTS), and the sender sends it from where it lies,
// under a tag of its own. A piece goes to where the message goes, or, where messages
// are combined, through a buffer of 256 KiB. Tagged messages are eager up to 64 KiB.
//
// # Progress
//
// MPI moves messages only while it is called. The goroutine that owns the progress
// (package progress) polls MPI_Improbe and MPI_Testsome. It spins, then yields, then
// sleeps between polls, for 1 ms at most. Where MPI does not allow calls of several threads at a
// time (MPI_THREAD_MULTIPLE), a lock orders them; MPI_THREAD_SERIALIZED is needed at
// least.
//
// # Failures
//
// A rank that leaves or gives up sends a termination notice to every other rank. A rank
// whose process ends without MPI_Finalize is noticed by the MPI launcher, which ends the
// job. A communicator therefore does not fail alone, as [transport.Revoker] has it: what
// revokes one, as the end of a call's context, ends the endpoint's part in the job.
//
// MPI cannot take back a transfer that both ends have begun. An operation that fails waits until MPI
// has let go of its memory: while the peer's process is stopped, that is until it goes on.
package mpi
