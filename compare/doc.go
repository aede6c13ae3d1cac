// Command compare measures chorale side by side with Open MPI, MPICH and Gloo on this
// machine, and prints the ratios of their times. With --write it also writes
// docs/performance.md, .json and .svg. make compare runs it.
//
// A side is a library over a transport in one configuration. All sides run the loop of
// package internal/bench; mpi/loop.h is the same loop in C, which the programs in mpi and
// gloo include. The sides alternate: a group of three calls is measured by each of ours
// right before its peers, all groups make up a full run, and there are several runs. A
// disturbance that lasts longer than a group slows down both sides.
// docs/performance-method.md describes the method to users.
//
// parts.go says what is compared; build.go and sides.go build and start the programs, and
// estimate.go says how long that takes; measure.go makes the runs; limit.go models what the
// machine allows; report.go computes the ratios, and text.go, page.go and chart.go print them.
package main
