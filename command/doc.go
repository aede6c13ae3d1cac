// Package command is the command chorale, which runs programs of many ranks, and shows,
// checks, simulates, draws and measures the schedules of their collectives. chorale help
// lists the verbs. [Main] is all of cmd/chorale; a program that registers algorithms of
// its own and then calls Main is that command with these algorithms, in every verb.
//
// Each verb is a file with its flags, its help text and its output; the longer ones
// have files of the same prefix. What several verbs share:
//
//   - flags.go: the types of flags, and --format.
//   - schedule.go: the argument that is a collective or a file with a schedule.
//   - simulation.go: the flags of sim and draw, and the scenario that they describe.
//   - topology.go: networks, which may be read from DOT and GraphML files.
//
// A verb prints its result on standard output alone; --format json is one value of
// a documented shape. Errors are one line on standard error. The exit status is 0
// for success, 1 if the work failed and 2 if the call was wrong; chorale run exits
// with the status of the rank that failed. Two hidden verbs are processes that the
// command starts itself: guard cleans up after a job, and bench-rank is a rank that
// chorale bench measures.
package command
