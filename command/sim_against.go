package command

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/internal/trace"
)

// against compares a timeline with the simulation of its calls: those that the command line
// selects, or else the kind that took the most time.
func (s *simulation) against(cmd *cobra.Command, name string, args []string, format, output string) error {
	if format != "table" && format != "json" {
		return callErrorf("--format %s: want table or json with --against", format)
	}
	if output != "" {
		if _, err := comparisonPicture(output); err != nil {
			return err
		}
	}
	if len(args) > 1 || len(s.each()) > 1 {
		return callErrorf("--against compares one kind of call: want at most one OP, and one value of each flag")
	}
	in, err := os.Open(name)
	if err != nil {
		return callError{err}
	}
	defer in.Close()
	f, err := trace.Read(in)
	if err != nil {
		return callErrorf("%s: %w", name, err)
	}
	wanted := s.each()[0]
	kinds := realCalls(f)
	kind, others, err := wanted.pick(cmd, kinds, args)
	if err != nil {
		return callErrorf("%s: %w", name, err)
	}
	one := *wanted
	one.combination = combination{kind.p, kind.words, wanted.topology, kind.algorithm}
	one.root = kind.root
	cmd.Flags().Lookup("words").Changed = true
	e, err := one.scenario(cmd, kind.collective)
	if err != nil {
		return err
	}
	r, err := e.simulate(true)
	if err != nil {
		return err
	}
	c := newComparison(kind, kinds[kind], r)
	c.Transport = e.transport
	c.Notes = append([]string{}, f.Notes...)
	if len(others) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("the timeline has other calls, as %v", others[0]))
	}
	if output != "" {
		if err := c.writePicture(cmd, output, "Simulated and real: "+e.title, r); err != nil || output == "-" {
			return err
		}
	}
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), c)
	}
	return c.print(cmd.OutOrStdout(), e.title)
}

// pick returns the kind of calls that the command line selects, of several the one that took
// the most time, and the others.
func (s *simulation) pick(cmd *cobra.Command, kinds map[realKind][]realCall, args []string) (kind realKind, others []realKind, err error) {
	time := func(k realKind) (ns int64) {
		for _, call := range kinds[k] {
			ns += call.time()
		}
		return ns
	}
	var all, fit []realKind
	for k := range kinds {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b realKind) int {
		return cmp.Or(cmp.Compare(time(b), time(a)), strings.Compare(a.String(), b.String()), cmp.Compare(a.root, b.root))
	})
	for _, k := range all {
		if (len(args) == 0 || args[0] == k.collective) && (s.p == 0 || s.p == k.p) && (s.algorithm == "" || s.algorithm == k.algorithm) &&
			(s.root == k.root || !cmd.Flags().Changed("root")) && (s.words == k.words || !cmd.Flags().Changed("words")) {
			fit = append(fit, k)
		}
	}
	switch {
	case len(all) == 0:
		return kind, nil, fmt.Errorf("no call that all ranks of a communicator have recorded, with parts of one length")
	case len(fit) == 0:
		return kind, nil, fmt.Errorf("it has no such call: most time took %v", all[0])
	}
	return fit[0], fit[1:], nil
}
