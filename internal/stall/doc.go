// Package stall explains why a job does not go on: which ranks wait, in which calls, where
// in the program and for whom; what the others do instead; and which ranks are the likely
// cause.
//
// A rank's process looks at its own endpoint and at the stacks of its goroutines, when it
// is asked to, with [Look]. Until then nothing is kept, and no call pays for it. A
// [Report] joins what all ranks have said. A [Tracker] decides when a report is due.
//
// A stack is joined to the operation that waits in it by an argument: the transport says
// with each [transport.Stall] which address the stack shows as the first argument of one of
// its functions.
package stall
