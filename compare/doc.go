// Command compare measures chorale side by side with Open MPI and MPICH on this
// machine, and prints the ratios of their times. With --write it also writes
// docs/performance.md, .json and .svg. make compare runs it.
//
// A side is a library over a transport. Both sides run the loop of package
// internal/bench; mpi/mpi.c is the same loop in C. The sides alternate: a group of
// three collectives is measured by each of ours right before its peers, all groups
// make up a round, and there are several rounds. A disturbance that lasts longer
// than a group slows down both sides. docs/performance-method.md describes the
// method to users.
//
// sides.go builds and starts the programs, measure.go runs the rounds, report.go
// computes the ratios, and text.go, page.go and chart.go print them.
package main
