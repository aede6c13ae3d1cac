package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/chorale-go/chorale/sched"
)

// showFault prints the programs of a schedule whose sends and receives do not match,
// or whose ranks wait for each other. The step with the fault is marked, in red on a
// terminal. Steps count from 1, as in its text.
func showFault(w io.Writer, s *sched.Schedule, fault *sched.Fault) error {
	mark := "✗ %s"
	if terminal(os.Stdout) != nil {
		mark = "\x1b[31m" + mark + "\x1b[0m"
	}
	fmt.Fprintf(w, "%v %s: %s, wrong\n\n", s.Collective, s.Algorithm, plural(s.P, "rank"))
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "RANK\tSTEP\tSENDS\tRECEIVES\tFAULT")
	for rank := range s.P {
		program := s.Program(rank)
		last := len(program) - 1
		for k, step := range program {
			var sends, recvs []string
			for _, send := range step.Sends {
				for _, to := range send.To {
					sends = append(sends, "→"+strconv.Itoa(to))
				}
			}
			for _, recv := range step.Recvs {
				recvs = append(recvs, "←"+strconv.Itoa(recv.From))
			}
			what := ""
			if fault.Rank == rank && (fault.Step == k || fault.Step < 0 && k == last) {
				what = fmt.Sprintf(mark, fault.What)
			}
			line := fmt.Sprintf("%d\t%d\t%s\t%s\t%s", rank, k+1, strings.Join(sends, " "), strings.Join(recvs, " "), what)
			fmt.Fprintln(tab, line)
		}
	}
	return tab.Flush()
}
