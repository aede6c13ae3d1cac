package main

import (
	"fmt"
	"slices"
	"time"
)

// What a comparison takes, as measured on a machine with two processors.
const (
	startTime   = 450 * time.Millisecond // to start and end a side's processes, and to measure the limits
	rowOverhead = 12 * time.Millisecond  // beside warm-up and samples
	moveRate    = 2e9                    // bytes that all ranks move in a second
	longCalls   = 10                     // of a row that exceeds its time
)

// estimate says how long the comparison will take, and how often a cell is measured.
func (s settings) estimate(sides []side) string {
	run, rows, commands := s.runTime(sides)
	return fmt.Sprintf("%s of about %v each: about %v. A run has %d rows by %d commands. No run begins that would end after %v.",
		plural(s.rounds, "run"), run.Round(time.Second), (time.Duration(s.rounds) * run).Round(time.Second), rows, commands, s.limit)
}

// runTime returns about how long one run takes, and the number of its rows and commands.
func (s settings) runTime(sides []side) (total time.Duration, rows, commands int) {
	for _, g := range s.groups() {
		for _, side := range sides {
			g := side.restrict(s, g)
			if len(g.ops) == 0 {
				continue
			}
			commands++
			total += startTime
			for _, op := range g.ops {
				sizes := g.sizes
				if op == "split" || op == "barrier" || op == "barrier:nonblocking" {
					sizes = []int{0}
				}
				for _, bytes := range sizes {
					n := side.rowsOf(op, bytes)
					rows += n
					total += time.Duration(n) * s.rowEstimate(op, g, bytes)
				}
			}
		}
	}
	return total, rows, commands
}

// rowsOf returns how many rows a side measures for a cell: a peer has two kinds of pages, and
// some calls by several functions.
func (s side) rowsOf(op string, bytes int) int {
	n := 1
	if s.ours() {
		return n
	}
	if op == "reduce-scatter" && s.name != gloo.name {
		n = 2
	}
	if op == "allreduce" && s.name == gloo.name {
		n = 3
	}
	if bytes >= 64<<10 {
		n *= 2
	}
	return n
}

// rowEstimate returns about how long a row takes. Warm-up and samples take as long; a call
// that exceeds both is made a few times all the same.
func (s settings) rowEstimate(op string, g group, bytes int) time.Duration {
	row := 2*s.rowTime + rowOverhead
	if bytes >= 64<<10 { // the two rows of a peer share the time; ours ends when it is stable
		row = s.rowTime + s.rowTime/4 + rowOverhead
	}
	moved := float64(g.ranks * bytes)
	if slices.Contains([]string{"allgather", "reduce-scatter", "alltoall"}, op) {
		moved *= float64(g.ranks)
	}
	call := time.Duration(moved / moveRate * float64(time.Second))
	return max(row, time.Duration(longCalls+g.ranks)*call)
}
