// Package chorale is collective communication: broadcast, reduction, scatter,
// gather, and their relatives, among goroutines or processes.
//
// A program's main calls [Main], and the ranks are processes that the command
// chorale run starts. Or it calls [Run], and the ranks are goroutines:
//
//	err := chorale.Run(ctx, 4, func(ctx context.Context, c *chorale.Comm) error {
//		sum := []int{c.Rank()}
//		return chorale.AllReduce(ctx, c, sum, sum, chorale.Sum)
//	})
//
// [Join] is Main without its frame, and [NewComm] makes a communicator over an
// endpoint of any transport.
//
// # Arguments
//
// The collectives are generic functions. The destination comes before the source,
// as in copy. Lengths and counts are numbers of elements. An element is a number,
// a boolean, or an array or struct of them; a type that holds pointers is an error.
// Where a vector is one part per rank, part r belongs to rank r, and parts lie in
// the order of the ranks.
//
// Where dst may be src, they are the same slice, and where one is a part of the
// other, it is this rank's own part. Any other overlap is an error.
//
// All ranks of a communicator make the same collective calls in the same order,
// with the same lengths, operation, root and algorithm.
//
// # Completion
//
// A blocking call returns when this rank's part in it is done: its dst holds the
// result, and both buffers are the caller's again. Other ranks may not have got
// that far; only [Barrier] says that all ranks have called it. Until a call
// returns, the caller writes neither buffer and does not read dst. A nonblocking
// call ([Start] and the functions named after it) returns at once, and the same
// holds until its [Request] is done.
//
// What was sent by a call that has returned arrives, also if the sender leaves:
// Close waits for that, as [transport.Endpoint] says. A communicator may be freed
// while others still receive what was sent in it. A message that nobody receives
// before the communicator is freed is dropped, and never turns up in a later one.
//
// # Errors
//
// Collectives and tagged messages fail with an [*Error], which names the call, the
// rank, the step and the peer. After an error for which errors.Is reports
//
//   - [ErrArgument], nothing was sent. The communicator stays usable if every rank
//     got this error. If only some ranks got it, calls of the ranks no longer match.
//   - [ErrBusy], nothing was sent, and the call does not count. The communicator
//     stays usable.
//   - [ErrClosed] after [Comm.Free], this communicator alone is closed.
//
// A communicator fails, on all of its ranks, when the context of a collective ends on one
// of them, when one is lost or gives up, when one has left that others still need, or when
// one calls [Comm.Revoke]. Calls in progress on it return an error that names the rank and
// the cause, as do later ones. Communicators to which the rank does not belong go on.
// [Comm.Shrink] makes a communicator of the ranks that are left, which [Comm.Grow] extends
// by ranks that were started anew; [Comm.Agree] has them decide something alike.
//
// Calls that differ ([MismatchError]), a message of another length than its receive, an
// operation or a function of Start or [Prepare] that panics or calls runtime.Goexit: these end
// the rank's part in the job. All of its calls on all communicators fail, and only Close is
// left to do; the others take it as a rank that gives up.
//
// No call returns nil with a wrong or unfinished result: a rank that fails sends
// nothing that it has not computed, and every rank that needs it fails with an error
// that names it and the cause. A rank whose own part is complete by then keeps its
// result, which is right, and may learn of the failure only from a later call.
//
// When a call fails, the buffers are the caller's again. The contents of dst are
// unspecified, but for ErrArgument and ErrBusy, which leave it as it was.
//
// [Send], [Recv] and [Probe] leave more intact; see there.
//
// # Memory
//
// A communicator keeps the programs of the calls that it has compiled, [KeptCalls]
// and [KeptBytes] at most, and the memory that the largest call so far has computed
// in, so that the same call again allocates nothing. Each prepared call, and each of up
// to 16 nonblocking ones in progress, keeps as much for itself. [Comm.Free] drops all
// of it. Messages that were not received are bounded by the transport, which makes
// their senders wait. [Comm.Held] counts all of this.
//
// Over memory that processes share, long messages travel best from buffers of [Alloc]. A
// [Window] is memory that ranks of one host read and write without messages.
//
// # Concurrency
//
// A communicator does one collective at a time, and a second one gets ErrBusy.
// Different communicators are independent: goroutines may use one each, and split
// them at the same time.
// Start, [Prepare], [Comm.Split], [Comm.Free] and the functions that build on them
// are called by one goroutine at a time per communicator. [Send], [Recv], [Probe]
// and their variants may be called by any number of goroutines at any time, also
// during collectives. [Comm.Rank] and [Comm.Size] may be called at any time.
//
// # Algorithms
//
// What each rank does is a schedule of package sched, made by an algorithm of
// package algo. A call chooses one by the collective, the number of ranks p, the
// bytes, the transport, and whether each rank has a processor. By default:
//
//   - Bcast, Scatter, Gather and a short Reduce take a binomial tree: ⌈log₂ p⌉
//     steps. A long Reduce scatters the combining first.
//   - A short AllReduce or AllGather takes recursive doubling: ⌈log₂ p⌉ steps where
//     p is a power of two. A long AllReduce takes recursive halving, in which each
//     rank sends about twice the vector; a long AllGather takes a ring.
//   - ReduceScatter takes recursive halving, Scan and ExScan recursive doubling, and
//     Barrier dissemination: O(log p) steps.
//   - AllToAll takes p−1 pairwise exchanges, and Shift one step.
//
// Where measurements on a transport say otherwise, its table has other rules, and so may the
// machine's profile, if the command chorale tune --select has made some: the environment
// variable CHORALE_MACHINE names its file, or is off. All ranks of a job have the same ones.
// [WithAlgorithm] and [WithSchedule] choose for one call, the environment variable
// CHORALE_ALGORITHM for a program, and [WithStats] reports what was run. The
// command chorale show prints the schedule that a call takes.
package chorale
