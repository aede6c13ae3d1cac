package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/sim"
)

func newSim() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim OP… -n P | sim FILE… | sim [OP] --against TIMELINE",
		Short: "Simulate a schedule on a network",
		Long: `Simulate a schedule on a network: when every message starts and ends, what it waits
for, which links are congested, and how the time compares with the formula and with
the lower bound for any algorithm.

` + simulationHelp + `

A rank begins a step when its own previous step is done. A message of m words over
h links takes ts + h·th + m·tw; with store and forward, ts + h·(th + m·tw). It
starts when both its ends have reached it and all its links are free in its
direction. Combining m words takes m·top. Times are in the unit of ts, tw, th and
top. The whole and the comparison come first; the tables of steps, ranks, the
critical path and links follow with --tables, and all but that of ranks where
messages wait for links. docs/simulator.md explains each table.

With --profile or --transport, this machine is simulated, as chorale tune has measured
it: times are microseconds, a message takes what its length and transport tell, calls
and steps cost what they do, messages share the memory, and ranks that outnumber the
processors share these. On a topology of hosts, each host is such a machine, and
--transport shm,tcp names the transports within a host and between hosts. Then ts, tw
and top are those of a message of m words, for the formula and the bound alone.
Without --algorithm, a call takes what it takes in a job on that machine: with
--profile, the processors and the selections of FILE count. docs/tune.md says what a
simulation leaves out.

Steps are counted from 1. A link such as 1→2 is one direction. Its load is the
number of messages of one step that cross it; it is congested if that is more than
one. Tables of more than 32 lines are abridged, and above 1024 ranks links are
omitted, and from the JSON ranks too, unless --all is given.

Of several operations, numbers of ranks, algorithms, topologies and m, each
combination is simulated: a line for each, with the time, its ratios to the formula
and to the lower bound, and the highest load of a link. A combination that does not
fit is skipped, and standard error says why. --format csv has more columns.

--best 3 simulates every algorithm of the catalog, or those that --algorithm names, and
lists the three that take the least time for each call and network. On hosts it tries
the algorithms of two levels with each algorithm between hosts, and with several
numbers of leaders, and says what two levels are worth.

--format trace writes a timeline for https://ui.perfetto.dev or another viewer of
Chrome's Trace Event Format: a track per rank and per link, and an arrow for each
message.

--against lays the simulation of a call beside the real ones in a timeline that
chorale run --trace has written: of each step the share of the whole time, where
they part, and which ranks came late. The call is the one that took the most time;
OP, -n, --algorithm, --root and -m select another. With -o, a picture shows both on
one axis, with a pair of bars for each rank, and outlines in red where they part: an
SVG, a page of HTML with the table, or (.json) two processes for Perfetto.

--format json prints one value for each combination, of the shape that docs/json.md
gives.`,
		Example: `  chorale sim bcast -n 8 --topology hypercube
  chorale sim bcast -n 8 --topology linear --algorithm binomial,order=ascending
  chorale sim allreduce -n 64 --topology torus:8x8 --ts 50 --top 0.5 -m 64K
  chorale sim bcast -n 64 -m 64K --ts 50 --algorithm best
  chorale sim allreduce -n 4 -m 1K --transport shm
  chorale sim allreduce --topology hosts:8x16 --ts-between 100 --best 3
  chorale sim matvec -n 16
  chorale sim bcast -n 4..64 --algorithm binomial,chain --topology full,ring
  chorale sim mine.txt --topology net.dot
  chorale sim allgather -n 8 --algorithm ring --format trace > ring.json
  chorale sim --against run.json --ts 50 -o compared.svg`,
	}
	s := addSimulation(cmd)
	against := cmd.Flags().String("against", "", "compare the calls in the timeline of a real run with their simulation")
	output := cmd.Flags().StringP("output", "o", "", "of --against: draw both timelines in this file too, .svg, .html or .json; - for an SVG alone")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *against != "" {
			return nil
		}
		return cobra.MinimumNArgs(1)(cmd, args)
	}
	for name, usage := range map[string]string{
		"ranks":     "the number of ranks, or several, as in 8, 1..64 or 2,4,10..20",
		"algorithm": "algorithms, with parameters if need be, see chorale list; or best, for the cheapest (default: the one that a call over tcp would select, or one on the machine that is simulated)",
		"topology":  "networks (default: full, so that no two messages share a link; for matvec the mesh)",
		"words":     "the m of the formulas, in words, or several (default: 1024, or a little more where that makes equal pieces; for matvec 1)",
	} {
		cmd.Flags().Lookup(name).Usage = usage
	}
	s.machine.add(cmd)
	fastest := cmd.Flags().Int("best", 0, "simulate every algorithm, or those of --algorithm, and list so many that take the least time")
	all := cmd.Flags().Bool("all", false, "every table, and abridge none")
	tables := words(choice{"", partialTables})
	tables.values = nil
	cmd.Flags().Var(&tables, "tables", "tables to print, one or more of "+oneOfText(partialTables)+" (default: those that say something)")
	format := addFormat(cmd, "table", "csv", "json", "trace")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *against != "" {
			for _, name := range []string{"best", "all", "tables"} {
				if cmd.Flags().Changed(name) {
					return callErrorf("--%s and --against: want one of them", name)
				}
			}
			return s.against(cmd, *against, args, format.value, *output)
		}
		if *output != "" {
			return callErrorf("-o %s: want --against TIMELINE, or chorale draw for a picture of a simulation alone", *output)
		}
		if cmd.Flags().Changed("best") && *fastest < 1 {
			return callErrorf("--best %d: want 1 or more", *fastest)
		}
		each := s.each()
		if len(each)*len(args) > 1 || *fastest > 0 {
			return simulateSeveral(cmd, each, args, format.value, *fastest)
		}
		e, err := each[0].scenario(cmd, args[0])
		if err != nil {
			return err
		}
		detailed := *all || e.p <= detailedRanks || format.value == "trace"
		r, err := e.simulate(detailed)
		if err != nil {
			return err
		}
		return reportSim(cmd.OutOrStdout(), e, r, format.value, detailed, *all, tables.values)
	}
	return cmd
}

// detailedRanks is the largest number of ranks for which a report has every link.
const detailedRanks = 1024

// reportSim prints the result of a simulation.
func reportSim(w io.Writer, e *scenario, r *sim.Result, format string, detailed, all bool, tables []string) error {
	switch format {
	case "csv":
		return printCSV(w, []simulated{newSimulated(e, r, false)})
	case "json":
		return printJSON(w, newSimulated(e, r, detailed))
	case "trace":
		return draw.Trace(w, draw.Scene{Title: e.title, Parts: e.parts, Result: r})
	}
	return newSimTables(w, e, r, all, tables).print()
}
