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

// showFaults prints the programs of a wrong schedule. Each step with a fault is marked, in
// red on a terminal; a fault at the end of a rank marks its last step. Steps count from 1.
func showFaults(w io.Writer, s *sched.Schedule, faults sched.Faults) error {
	mark := "✗ %s"
	if terminal(os.Stdout) != nil {
		mark = "\x1b[31m" + mark + "\x1b[0m"
	}
	fmt.Fprintf(w, "%v %s: %s, wrong\n\n", s.Collective, s.Algorithm, plural(s.P, "rank"))
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "RANK\tSTEP\tSENDS\tRECEIVES\tFAULT")
	for rank := range s.P {
		program := s.Program(rank)
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
			if at := faults.At(rank, k, len(program)); len(at) > 0 {
				what = fmt.Sprintf(mark, at[0].What)
			}
			line := fmt.Sprintf("%d\t%d\t%s\t%s\t%s", rank, k+1, strings.Join(sends, " "), strings.Join(recvs, " "), what)
			fmt.Fprintln(tab, line)
		}
		if at := faults.At(rank, -1, len(program)); len(at) > 0 { // it does nothing
			fmt.Fprintf(tab, "%d\t-\t\t\t%s\n", rank, fmt.Sprintf(mark, at[0].What))
		}
	}
	return tab.Flush()
}
