package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

func newShow() *cobra.Command {
	var (
		p         count
		algorithm string
		root      int
		bytes     size
	)
	cmd := &cobra.Command{
		Use:   "show OP -n P | show FILE",
		Short: "Show a schedule, step by step",
		Long: `Show the schedule of a collective among P ranks, or one that a file holds.

The first table lists the messages of each step: 0→4 goes from rank 0 to rank 4,
0↔1 is one each way. The second says what moves and where it lands. A range of
blocks is half open; left means that incoming ⊕ held is left there, right held ⊕
incoming. Copies are a rank's own, and come before its messages.

The text is a schedule's canonical form, which a file may hold, and the JSON is
complete as well: a program that knows nothing of chorale can replay it.

With --format json:
{"collective":…,"algorithm":…,"p":…,"root":…,"blocks":…,"scratch":…,"steps":[
{"copies":[{"rank":…,"src":…,"blocks":[lo,hi],"dst":…,"at":…,"combine":…}],
"messages":[{"from":…,"to":…,"src":…,"blocks":[lo,hi],"dst":…,"at":…,
"combine":…}]}]}`,
		Example: `  chorale show bcast -n 8
  chorale show allreduce -n 7 --algorithm butterfly
  chorale show bcast -n 8 --root 3 --format text > mine.txt`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&p, "ranks", "n", "the number of ranks")
	flags.StringVar(&algorithm, "algorithm", "", "an algorithm, with parameters if need be; see chorale list")
	flags.IntVar(&root, "root", 0, "the root")
	flags.Var(&bytes, "bytes", "the size of the vector, where an algorithm depends on it")
	format := addFormat(cmd, "table", "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, s, err := collectiveOrFile(args[0])
		switch {
		case err != nil:
			return err
		case s != nil:
			err = noneOf(cmd, "ranks", "algorithm", "root", "bytes")
		case p == 0:
			err = callErrorf("no number of ranks: want -n P")
		default:
			if algorithm == "" {
				algorithm = usual(c, int(p))
			}
			if s, err = algo.New(c, algorithm, int(p), root, int(bytes)); err != nil {
				err = callError{err}
			}
		}
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), s, format.value)
	}
	return cmd
}

// usual returns the algorithm to show where none is named: the first that takes
// p ranks and has more to show than one rank that does it all.
func usual(c sched.Collective, p int) (name string) {
	for _, a := range algo.For(c) {
		if a.Restrictions.Allow(p) == nil && (name == "" || name == "linear") {
			name = a.Name
		}
	}
	return name
}

func show(w io.Writer, s *sched.Schedule, format string) error {
	switch format {
	case "text":
		return s.WriteText(w)
	case "json":
		return printJSON(w, s)
	}
	t, err := s.Timeline()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n\n", title(s, t))
	if err := showPattern(w, t); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return showDeeds(w, t)
}

// title says in a line what a schedule is and what it adds up to.
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
