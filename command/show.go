package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

func newShow() *cobra.Command {
	var (
		ranks      = numbersOfRanks()
		algorithms = algorithmList()
		hosts      string
		available  count
		root       int
		bytes      size
		transport  = transportChoice("mpi")
		rules      rulesFlag
	)
	cmd := &cobra.Command{
		Use:   "show OP -n P | show FILE",
		Short: "Show a schedule, step by step",
		Long: `Show the schedule of a collective among P ranks, or the one in a file. If no
algorithm is named, it is the one that a call of that size would select in a job
on this machine: chorale run and bench with the same --transport and --machine run it.

The first table lists the messages of each step: 0→4 goes from rank 0 to rank 4,
0↔1 is one each way. The second shows the blocks that move and where they land. A range of
blocks is half open; left means that incoming ⊕ held is stored, right held ⊕
incoming. A copy is within a rank, and comes before the rank's messages.

Where the sends and receives of a file do not match, or ranks wait for each other,
the table is of each rank's program, with the fault marked; the exit status is 1.

With lists, as in -n 4,8, there is a schedule for each combination; one that does not
fit is skipped, and standard error says why. --hosts places the ranks on several hosts,
as in 4+4, 2x4 or cyclic:2: then the selection knows them, and the algorithms named
hierarchical are for them.

The text is a schedule's canonical form, which a file may hold, and the JSON is
complete as well: a program that knows nothing of chorale can replay it.

--format json prints one value, of the shape that docs/json.md gives.`,
		Example: `  chorale show bcast -n 8
  chorale show allreduce -n 7 --algorithm butterfly
  chorale show allreduce -n 8 --hosts 4+4
  chorale show bcast -n 8 --root 3 --format text > mine.txt`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&ranks, "ranks", "n", "numbers of ranks, as in 8 or 4,8")
	flags.Var(&algorithms, "algorithm", "algorithms, with parameters if need be; see chorale list (default: the one that a call would select)")
	flags.StringVar(&hosts, "hosts", "", "the ranks of each host, as in 4+4, or cyclic:2 (default: one host)")
	flags.IntVar(&root, "root", 0, "the root, or the distance of a shift")
	flags.Var(&bytes, "bytes", "the size of the vector, or of each rank's part of it")
	flags.Var(&transport, "transport", "the transport for which the algorithm is selected: "+oneOfText(transport.candidates))
	flags.Var(&available, "processors", "the number of processors for which it is selected (default: this machine's)")
	rules.add(cmd)
	var memory size
	addMemory(cmd, &memory)
	format := addFormat(cmd, "table", "csv", "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := rules.apply(); err != nil {
			return err
		}
		c, s, err := collectiveOrFile(args[0], memory)
		if err != nil {
			return err
		}
		if s != nil {
			if err := noneOf(cmd, "ranks", "algorithm", "root", "bytes", "transport", "processors", "hosts"); err != nil {
				return err
			}
			err := s.CheckWithin(int64(memory)) // it may be too large for that, and be shown
			if faults := sched.FaultsOf(err); faults != nil && format.value == "table" {
				return cmp.Or(showFaults(cmd.OutOrStdout(), s, faults), err)
			}
			return show(cmd.OutOrStdout(), s, "", format.value, memory)
		}
		if ranks.values == nil {
			return callErrorf("no number of ranks: want -n P")
		}
		several := len(ranks.values)*len(algorithms.orNone()) > 1
		if several && (format.value == "csv" || format.value == "text") {
			return callErrorf("--format %s with several schedules: want one, or table or json", format.value)
		}
		var notes skips
		shown := 0
		for _, p := range ranks.values {
			for _, algorithm := range algorithms.orNone() {
				if err := checkBytes(int(bytes), p); err != nil {
					return callError{err}
				}
				if hosts != "" {
					if _, _, err := algo.PlaceHosts(hosts, p); err != nil {
						return callErrorf("--hosts %w", err)
					}
				}
				why := ""
				if algorithm == "" {
					q := selection.Query{Collective: c, Ranks: p, Bytes: int(bytes), Transport: transport.value, Processors: int(available), Hosts: hosts}
					q, err := here(q, nil)
					if err != nil {
						return callError{err}
					}
					choice, err := selection.Choose(q)
					if err != nil {
						return callError{err}
					}
					algorithm, why = choice.Algorithm, choice.Why()
				}
				s, err := newSchedule(c, selection.WithHosts(c, algorithm, hosts), p, root, whole(c, p, int(bytes)), memory)
				var unknown *sched.UnknownError
				switch {
				case err != nil && several && !errors.As(err, &unknown):
					notes = append(notes, err)
					continue
				case err != nil:
					return callError{err}
				}
				if shown++; shown > 1 && format.value == "table" {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if why != "" && format.value == "table" {
					why = chosenFor(c, int(bytes)) + why
				}
				if err := show(cmd.OutOrStdout(), s, why, format.value, memory); err != nil {
					return err
				}
			}
		}
		if shown == 0 {
			return callError{notes[0]}
		}
		notes.print(os.Stderr)
		return nil
	}
	return cmd
}

// chosenFor says for which size an algorithm was chosen.
func chosenFor(c sched.Collective, bytes int) string {
	switch {
	case c == sched.Barrier:
		return ": "
	case bytes == 0:
		return " for 0 bytes, since there is no --bytes: "
	}
	return fmt.Sprintf(" for %s bytes: ", algo.FormatBytes(bytes))
}

// here completes a query with the transport, the processors and the rules of a job on this
// machine, or of one on the machine of a profile, unless that is nil. Processors that the query
// has stay. Ranks on several hosts use TCP, and have a processor each.
func here(q selection.Query, of *model.Profile) (_ selection.Query, err error) {
	switch {
	case q.Processors > 0, q.Hosts != "":
	case of != nil:
		q.Processors = of.Node.Processors
	case q.Transport == "inproc":
		q.Processors = processors.Parallel()
	default:
		q.Processors = processors.Available()
	}
	if q.Machine, err = machineRules(of); err != nil {
		return q, err
	}
	switch {
	case q.Transport == "inproc", q.Transport == "mpi":
	case q.Hosts != "":
		q.Transport = "tcp"
	default:
		if q.Transport, err = launch.Resolve(q.Transport, q.Ranks); err != nil {
			return q, err
		}
	}
	return q, nil
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
		return showJSON(w, s, why)
	}
	t, err := s.TimelineWithin(int64(memory))
	switch {
	case err != nil:
		return err
	case format == "csv":
		return printCSV(w, shownTransfers(t))
	}
	fmt.Fprintln(w, hang(title(s, t), "  "))
	if why != "" {
		fmt.Fprintln(w, hang("chosen"+why, "  "))
	}
	fmt.Fprintln(w)
	if err := showPattern(w, t); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return showTransfers(w, t)
}

// showJSON prints a schedule with the reason for its selection behind it.
func showJSON(w io.Writer, s *sched.Schedule, why string) error {
	if why == "" {
		return printJSON(w, s)
	}
	schedule, err := json.Marshal(s)
	if err != nil {
		return err
	}
	reason, err := json.Marshal(why)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s,\"chosen\":%s}\n", bytes.TrimSuffix(schedule, []byte("}")), reason)
	return err
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
