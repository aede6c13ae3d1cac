package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/sched"
)

func newShow() *cobra.Command {
	var (
		p         count
		available count
		algorithm string
		root      int
		bytes     size
		transport = transportChoice("mpi")
	)
	cmd := &cobra.Command{
		Use:   "show OP -n P | show FILE",
		Short: "Show a schedule, step by step",
		Long: `Show the schedule of a collective among P ranks, or the one in a file. If no
algorithm is named, it is the one that a call of that size would select in a job
on this machine: chorale run and bench with the same --transport run it.

The first table lists the messages of each step: 0→4 goes from rank 0 to rank 4,
0↔1 is one each way. The second shows the blocks that move and where they land. A range of
blocks is half open; left means that incoming ⊕ held is stored, right held ⊕
incoming. A copy is within a rank, and comes before the rank's messages.

Where the sends and receives of a file do not match, or ranks wait for each other,
the table is of each rank's program, with the fault marked; the exit status is 1.

The text is a schedule's canonical form, which a file may hold, and the JSON is
complete as well: a program that knows nothing of chorale can replay it.

--format json prints one value, of the shape that docs/json.md gives.`,
		Example: `  chorale show bcast -n 8
  chorale show allreduce -n 7 --algorithm butterfly
  chorale show bcast -n 8 --root 3 --format text > mine.txt`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&p, "ranks", "n", "the number of ranks")
	flags.StringVar(&algorithm, "algorithm", "", "an algorithm, with parameters if need be; see chorale list (default: the one that a call would select)")
	flags.IntVar(&root, "root", 0, "the root, or the distance of a shift")
	flags.Var(&bytes, "bytes", "the size of the vector, or of each rank's part of it")
	flags.Var(&transport, "transport", "the transport for which the algorithm is selected: "+oneOfText(transport.candidates))
	flags.Var(&available, "processors", "the number of processors for which it is selected (default: this machine's)")
	var memory size
	addMemory(cmd, &memory)
	format := addFormat(cmd, "table", "csv", "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, s, err := collectiveOrFile(args[0], memory)
		if err != nil {
			return err
		}
		if s != nil {
			if err := noneOf(cmd, "ranks", "algorithm", "root", "bytes", "transport", "processors"); err != nil {
				return err
			}
			err := s.CheckWithin(int64(memory)) // it may be too large for that, and be shown
			if faults := sched.FaultsOf(err); faults != nil && format.value == "table" {
				return cmp.Or(showFaults(cmd.OutOrStdout(), s, faults), err)
			}
			return show(cmd.OutOrStdout(), s, "", format.value, memory)
		}
		if p == 0 {
			return callErrorf("no number of ranks: want -n P")
		}
		if err := checkBytes(int(bytes), int(p)); err != nil {
			return callError{err}
		}
		why := ""
		if algorithm == "" {
			choice, err := selectedHere(c, int(p), int(bytes), transport.value, int(available))
			if err != nil {
				return callError{err}
			}
			algorithm, why = choice.Algorithm, choice.Why
		}
		if s, err = newSchedule(c, algorithm, int(p), root, whole(c, int(p), int(bytes)), memory); err != nil {
			return callError{err}
		}
		return show(cmd.OutOrStdout(), s, why, format.value, memory)
	}
	return cmd
}

// selectedHere returns the algorithm that a call selects in a job on this machine, or on one
// with some number of processors, unless that is 0.
func selectedHere(c sched.Collective, p, bytes int, transport string, available int) (choice selection.Choice, err error) {
	q := selection.Query{Collective: c, Ranks: p, Bytes: bytes, Transport: transport, Processors: available}
	switch {
	case available > 0:
	case transport == "inproc":
		q.Processors = processors.Parallel()
	default:
		q.Processors = processors.Available()
	}
	switch transport {
	case "inproc", "mpi":
	default:
		if q.Transport, err = launch.Resolve(transport, p); err != nil {
			return choice, err
		}
	}
	return selection.Choose(q)
}

// checkBytes returns an error for a size of a rank's message that cannot be counted
// on p ranks.
func checkBytes(bytes, p int) error {
	if bytes > wordBytes*maxWords/p {
		return fmt.Errorf("--bytes %s: want %s or less with %s", algo.FormatBytes(bytes), algo.FormatBytes(wordBytes*maxWords/p), plural(p, "rank"))
	}
	return nil
}

// whole returns the size of the whole vector, given the size of a rank's message.
func whole(c sched.Collective, p, bytes int) int {
	if s := (sched.Schedule{Collective: c}); s.Partitioned() {
		return p * bytes
	}
	return bytes
}

// perShown is the memory that a message takes on its way to each format, beside the
// timeline.
var perShown = map[string]float64{"table": 300, "csv": 300, "json": 1200}

// show prints a schedule, and the reason for its selection if it was not named.
func show(w io.Writer, s *sched.Schedule, why, format string, memory size) error {
	if format == "text" {
		return s.WriteText(w)
	}
	size := s.Size()
	if need := s.TimelineMemory() + perShown[format]*(size.Messages+size.Copies); need > float64(memory) {
		return callError{&sched.TooLargeError{Doing: "show", P: s.P, Bytes: need, Limit: int64(memory)}}
	}
	if format == "json" {
		return printJSON(w, s)
	}
	t, err := s.TimelineWithin(int64(memory))
	switch {
	case err != nil:
		return err
	case format == "csv":
		return printCSV(w, shownTransfers(t))
	}
	fmt.Fprintln(w, title(s, t))
	if why != "" {
		fmt.Fprintln(w, "chosen:", why)
	}
	fmt.Fprintln(w)
	if err := showPattern(w, t); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return showTransfers(w, t)
}

// title summarizes a schedule in a line.
func title(s *sched.Schedule, t *sched.Timeline) string {
	words := []string{fmt.Sprintf("%v %s: %s", s.Collective, s.Algorithm, plural(s.P, "rank"))}
	if s.Collective.Rooted() {
		words = append(words, fmt.Sprintf("root %d", s.Root))
	}
	words = append(words, plural(s.Blocks, "block"))
	if s.Scratch > 0 {
		words = append(words, fmt.Sprintf("%d of scratch", s.Scratch))
	}
	if s.Commutative {
		words = append(words, "for operators that commute")
	}
	words = append(words, plural(t.Steps(), "step"), plural(t.MessageCount(), "message"))
	return strings.Join(words, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
