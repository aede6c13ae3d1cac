// Package control is the control protocol between the ranks of a job and its launcher,
// with both of its ends.
//
// The [Server] is the launcher's, or rank 0's where another launcher has started the
// job. A rank joins with [Dial], which returns its [Client]. Through the server, a rank
// learns the addresses of the others, which of them share its memory, and which are lost;
// from the ranks, the server learns because of whom they fail, and for whom they wait.
// Messages between ranks do not pass here. protocol.go defines what is said.
//
// Both ends prove to each other that they know the secret of the job (package proof)
// before either says anything else.
package control
