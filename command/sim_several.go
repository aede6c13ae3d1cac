package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/topo"
)

// simulateSeveral simulates each combination, and prints a line for each; or if best is
// above 0, for so many algorithms of each call and network that take the least time. Those
// that do not fit are skipped, unless none fits.
func simulateSeveral(cmd *cobra.Command, each []*simulation, args []string, format string, best int) error {
	if format == "trace" {
		return callErrorf("a trace of %d simulations: want one", len(each)*len(args))
	}
	var (
		rows  []simulated
		notes skips
		rules string
		free  = make(map[string]string) // a topology that adds nothing to a call
		same  bool                      // another one adds nothing either
		half  bool                      // messages share links halfway round
	)
	for _, arg := range args {
		for _, s := range withCandidates(each, arg, best) {
			e, err := s.scenario(cmd, arg)
			if err == nil {
				r, failed := e.simulate(false)
				if failed == nil {
					row := newSimulated(e, r, false)
					if best > 0 && nameOfSpec(s.algorithm) == twoLevels {
						row.Algorithm = s.algorithm // with the parameters that have their default, too
					}
					rows = append(rows, row)
					if e.free(r) {
						call := fmt.Sprintln(row.Collective, row.Algorithm, row.P, row.Root, row.M)
						free[call] = cmp.Or(free[call], row.Topology)
						same = same || free[call] != row.Topology
					}
					half = half || e.sharesHalfway(r)
					rules = e.rules()
				}
				err = failed
			}
			switch {
			case err != nil && !misfit(err):
				return err
			case err != nil:
				notes = append(notes, err)
			}
		}
	}
	if len(rows) == 0 {
		return notes[0]
	}
	var levels []string
	if best > 0 {
		rows, levels = fastest(rows, best)
	} else {
		notes.print(cmd.ErrOrStderr())
	}
	w := cmd.OutOrStdout()
	switch format {
	case "csv":
		return printCSV(w, rows)
	case "json":
		for _, row := range rows {
			if err := printJSON(w, row); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Fprintf(w, "%s\n\n", hang(rules, ""))
	if err := printSimulated(w, rows); err != nil {
		return err
	}
	for _, note := range levels {
		if _, err := fmt.Fprintf(w, "\n%s\n", hang(note, "")); err != nil {
			return err
		}
	}
	for _, note := range []struct {
		holds bool
		text  string
	}{{same, freeNote}, {half, halfwayNote}, {slices.ContainsFunc(rows, belowBound), boundNote}} {
		if !note.holds {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", hang(note.text, "")); err != nil {
			return err
		}
	}
	return nil
}

// boundNote says why a ratio to the lower bound is below 1.
const boundNote = "note: the bound is for a single port: with --ports all, a schedule can take less"

func belowBound(r simulated) bool { return r.LowerBoundRatio != nil && *r.LowerBoundRatio < 1-exact }

// misfit reports whether an error is that of a combination alone, and not of a name that
// is wrong in all.
func misfit(err error) bool {
	var (
		unknown *sched.UnknownError
		syntax  *topo.SyntaxError
		wrong   callError
	)
	return errors.As(err, &wrong) && !errors.As(err, &unknown) && !errors.As(err, &syntax) && !errors.Is(err, errNoRanks)
}

// printSimulated prints a line for each simulation.
func printSimulated(w io.Writer, rows []simulated) error {
	lines := [][]string{{"OP", "ALGORITHM", "P", "m", "TOPOLOGY", "TIME", "/FORMULA", "/BOUND", "LOAD"}}
	for _, r := range rows {
		lines = append(lines, []string{r.Collective, r.Algorithm, strconv.Itoa(r.P), strconv.Itoa(r.M), r.Topology,
			decimal(r.Time), ratioOrDash(r.Ratio), ratioOrDash(r.LowerBoundRatio), strconv.Itoa(r.MaxLinkLoad)})
	}
	return printRows(w, lines, 5, len(lines[0]), lineWidth)
}

func ratioOrDash(x *float64) string {
	if x == nil {
		return "-"
	}
	return strconv.FormatFloat(*x, 'g', 4, 64)
}
