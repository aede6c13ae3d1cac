package command

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/sched"
)

func newCheck() *cobra.Command {
	var (
		want  = scheduleFilter{ranks: numbersOfRanks(), algorithms: algorithmList()}
		bytes size
	)
	cmd := &cobra.Command{
		Use:   "check [OP] -n P|LO..HI[,…] | check FILE",
		Short: "Verify schedules",
		Long: `Verify the schedules of a collective, or of all; of an algorithm, or of all;
or the one in a file.

A schedule is replayed symbolically. It is right if every send matches one receive
of the same size, ranks do not deadlock, no step writes blocks that it also sends,
and every rank ends with the result of the collective: each contribution once and,
unless the algorithm is for commutative operators, in rank order. The faults of the
first of these that fails are listed, up to ten, with the lines of the file.

If no algorithm is named, each is checked with several values of its parameters.
Every root is checked up to 64 ranks, and the first, the middle and the last one
above. An algorithm that does not take a number of ranks is skipped for it, unless
it is named together with that one number.

--format json prints one value, of the shape that docs/json.md gives.`,
		Example: `  chorale check -n 1..64
  chorale check allreduce -n 7,100 --algorithm recursive-halving
  chorale check mine.txt`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&want.ranks, "ranks", "n", "numbers of ranks, as in 8, 1..64 or 2,4,10..20")
	flags.Var(&want.algorithms, "algorithm", "algorithms, with parameters if need be; see chorale list (default: all)")
	flags.IntVar(&want.root, "root", 0, "a root, or the distance of a shift (default several)")
	flags.Var(&bytes, "bytes", "the size of the vector, or of each rank's part of it")
	var memory size
	addMemory(cmd, &memory)
	format := addFormat(cmd, "table", "csv", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want.collectives = sched.Collectives()
		if len(args) == 1 {
			c, s, err := collectiveOrFile(args[0], memory)
			if err != nil {
				return err
			}
			if s != nil {
				if err := noneOf(cmd, "ranks", "algorithm", "root", "bytes"); err != nil {
					return err
				}
				report, err := checkAll([]*sched.Schedule{s}, memory, nil)
				if err != nil {
					return callErrorf("%s: %w", args[0], err)
				}
				return printCheck(cmd.OutOrStdout(), format.value, report)
			}
			want.collectives = []sched.Collective{c}
		}
		if want.ranks.values == nil {
			return callErrorf("no number of ranks: want -n P or -n LO..HI")
		}
		want.rooted, want.bytes, want.memory = flags.Changed("root"), int(bytes), memory
		schedules, err := want.schedules()
		if err != nil {
			return callError{err}
		}
		report, err := checkAll(schedules, memory, terminal(os.Stderr))
		if err != nil {
			return callError{err}
		}
		return printCheck(cmd.OutOrStdout(), format.value, report)
	}
	return cmd
}

// terminal returns the file if it is a terminal, where progress is shown, and
// otherwise nil. Tests replace it.
var terminal = func(f *os.File) io.Writer {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return f
}

// A checkReport is the result of check. Its JSON form is that of --format json.
type checkReport struct {
	Checked int       `json:"checked"`
	Failed  []failure `json:"failed"`
}

type failure struct {
	Collective string `json:"collective"`
	Algorithm  string `json:"algorithm"`
	P          int    `json:"p"`
	Root       int    `json:"root"`
	Error      string `json:"error"`

	faults []error // one by one
}

// printCheck prints a report, and returns an error if a schedule is wrong.
func printCheck(w io.Writer, format string, r checkReport) error {
	var err error
	switch {
	case format == "json":
		err = printJSON(w, r)
	case format == "csv":
		err = printCSV(w, r.Failed)
	case len(r.Failed) == 0:
		_, err = fmt.Fprintf(w, "%s checked, none is wrong\n", plural(r.Checked, "schedule"))
	default:
		lines := [][]string{{"COLLECTIVE", "ALGORITHM", "P", "ROOT", "FAULT"}}
		for _, f := range r.Failed {
			line := []string{f.Collective, f.Algorithm, strconv.Itoa(f.P), strconv.Itoa(f.Root)}
			for _, fault := range f.faults {
				lines = append(lines, append(line, fault.Error()))
				line = make([]string, 4)
			}
			if len(f.faults) == sched.MaxFaults {
				lines = append(lines, append(line, fmt.Sprintf("no more than %d faults are listed", sched.MaxFaults)))
			}
		}
		err = printTable(w, lines)
	}
	if err == nil && len(r.Failed) > 0 {
		err = fmt.Errorf("%s checked, %d wrong", plural(r.Checked, "schedule"), len(r.Failed))
	}
	return err
}
