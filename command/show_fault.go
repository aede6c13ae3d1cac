package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// showFaults prints the programs of a wrong schedule. Each step with a fault is marked, in
// red on a terminal; a fault at the end of a rank marks its last step. Steps count from 1.
func showFaults(w io.Writer, s *sched.Schedule, faults sched.Faults) error {
	mark := "✗ %s"
	if terminal(os.Stdout) != nil {
		mark = "\x1b[31m" + mark + "\x1b[0m"
	}
	fmt.Fprintf(w, "%s\n\n", hang(fmt.Sprintf("%v %s: %s, wrong", s.Collective, s.Algorithm, plural(s.P, "rank")), "  "))
	lines := [][]string{{"RANK", "STEP", "SENDS", "RECEIVES", "FAULT"}}
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
			lines = append(lines, []string{strconv.Itoa(rank), strconv.Itoa(k + 1), few(sends), few(recvs), what})
		}
		if at := faults.At(rank, -1, len(program)); len(at) > 0 { // it does nothing
			lines = append(lines, []string{strconv.Itoa(rank), "-", "", "", fmt.Sprintf(mark, at[0].What)})
		}
	}
	return printTable(w, lines)
}

// few joins the first words, of which a step may have as many as there are ranks.
func few(words []string) string {
	if len(words) > 4 {
		words = append(slices.Clip(words[:3]), fmt.Sprintf("… (%d)", len(words)))
	}
	return strings.Join(words, " ")
}
