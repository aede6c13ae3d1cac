// Package sched holds the schedule: the one value that says what every rank of a
// collective does.
//
// A [Schedule] is a [Collective] and, for each rank, a [Program]: a list of steps
// made of sends, receives and copies. It names buffers and ranges of blocks, never
// memory, so it can be printed, compared, stored, checked, simulated, and bound to
// any element type and count.
//
// Most schedules come from package algo; [Parse] reads one that was written by
// hand, and [Builder] puts a program together. [Schedule.Check] proves that a
// schedule does what its collective promises. [Schedule.WriteText] writes it for
// people, and [Schedule.MarshalJSON] for programs.
//
// The analyses build on each other. [Match] pairs sends with receives.
// [Schedule.Timeline] gives every message its step, or finds that the programs
// deadlock. [Timeline.Replay] carries the steps out on symbols: each block is a
// [Value] that says of which ranks' In it is made. Check compares the values at
// the end with [Schedule.Expected]. [Schedule.Partition] says at which element
// each block begins.
package sched
