package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/sched"
)

// A figure is a kind of picture.
type figure struct {
	name      string
	extension string // of its files
	scene     func(w io.Writer, s draw.Scene) error
	against   quantity // of a chart: the horizontal axis
}

// figures lists all figures. The first one with an extension is the default for
// files with that extension.
var figures = []figure{
	{name: "network", extension: ".svg", scene: networkWith(draw.NetworkOptions{})},
	{name: "steps", extension: ".svg", scene: networkWith(draw.NetworkOptions{Panels: true})},
	{name: "contents", extension: ".svg", scene: networkWith(draw.NetworkOptions{Panels: true, Blocks: true})},
	{name: "blocks", extension: ".svg", scene: draw.Blocks},
	{name: "spacetime", extension: ".svg", scene: draw.SpaceTime},
	{name: "cost-m", extension: ".svg", against: byWords},
	{name: "cost-p", extension: ".svg", against: byRanks},
	{name: "page", extension: ".html", scene: draw.Page},
	{name: "trace", extension: ".json", scene: draw.Trace},
}

func networkWith(o draw.NetworkOptions) func(io.Writer, draw.Scene) error {
	return func(w io.Writer, s draw.Scene) error { return draw.Network(w, s, o) }
}

func newDraw() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "draw OP -n P -o PICTURE | draw FILE -o PICTURE",
		Short: "Draw a schedule, where and when it runs, and what it costs",
		Long: `Draw what chorale sim says of a schedule on a network, as SVG, or as a page of
HTML that plays it in any browser.

The figures:
  network    the network, each message an arrow with the number of its step
  steps      the same, one picture per step
  contents   the same, with what each rank holds before each step and at the end
  blocks     ranks across, time down: what each rank holds after each step
  spacetime  ranks down, time across: sending, receiving, waiting, combining
  cost-m     a chart of the time against m, from 1 to that of -m
  cost-p     a chart of the time against the number of ranks, from 2 to P
  page       all of it, step by step (.html)
  trace      a timeline for https://ui.perfetto.dev or another viewer (.json)

A schedule in a FILE that is wrong is drawn as its programs, with messages that
lack a partner, steps that never end and the fault in red; the exit status is 1.

Links that several messages of one step want are red, with their load.

For a PNG or a PDF, convert the SVG with librsvg or a browser:
  rsvg-convert --zoom 2 -o FILE.png FILE.svg
  rsvg-convert --format pdf -o FILE.pdf FILE.svg

A chart compares algorithms: name each with an --algorithm of its own, or none for
the six that are the cheapest. Lines are the formulas of the catalog, marks are
simulated, on up to 1024 ranks. Where another algorithm becomes the cheapest by
the formulas, the chart says at which m or p, with a hollow disc where the marks
say otherwise. best is the cheapest at each m or p. Unless --ports is given, each
algorithm is simulated with the ports that it is made for.

` + simulationHelp,
		Example: `  chorale draw bcast -n 8 --topology ring -o bcast.svg
  chorale draw scatter -n 8 --topology hypercube --figure blocks -o scatter.svg
  chorale draw allreduce -n 16 --topology torus:4x4 -o allreduce.html
  chorale draw bcast -n 64 --figure cost-m --algorithm binomial,chain -o m.svg`,
		Args: cobra.ExactArgs(1),
	}
	s := addSimulation(cmd)
	flags := cmd.Flags()
	flags.Lookup("algorithm").Usage = "an algorithm, with parameters if need be; for a chart, several (default: the one that a call would take)"
	output := flags.StringP("output", "o", "", "the picture's file, .svg, .html or .json; - for standard output")
	name := choice{candidates: figureNames()}
	flags.Var(&name, "figure", "what to draw, as above (default: network; page for .html, trace for .json)")
	title := flags.String("title", "", "what to call it (default: what it shows)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := figureFor(name.value, *output)
		if err != nil {
			return callError{err}
		}
		var picture bytes.Buffer
		if f.scene != nil {
			err = s.drawScene(cmd, &picture, f, args[0], *title)
		} else {
			err = s.drawChart(cmd, &picture, f, args[0], *title)
		}
		if faults := sched.FaultsOf(err); faults != nil && s.drawFault(&picture, f, args[0], *title, faults) {
			err = fmt.Errorf("%w; the picture shows it in red", err)
		} else if err != nil {
			return err
		}
		var written error
		if *output == "-" {
			_, written = cmd.OutOrStdout().Write(picture.Bytes())
		} else {
			written = writeAtomically(*output, picture.Bytes())
		}
		return cmp.Or(written, err)
	}
	return cmd
}

func figureNames() (names []string) {
	for _, f := range figures {
		names = append(names, f.name)
	}
	return names
}

// figureFor returns the named figure, or the default for the output's extension.
func figureFor(name, output string) (figure, error) {
	if output == "" {
		return figure{}, fmt.Errorf("nowhere to draw: want -o with a file that ends in .svg, .html or .json")
	}
	extension := strings.ToLower(filepath.Ext(output))
	if output == "-" {
		extension = ""
	}
	if recipe := conversion(output, extension); recipe != "" {
		return figure{}, fmt.Errorf("-o %s: want a file that ends in .svg, then %s", output, recipe)
	}
	for _, f := range figures {
		switch {
		case name != "" && f.name != name:
		case output == "-" || f.extension == extension:
			return f, nil
		case name != "":
			return figure{}, fmt.Errorf("-o %s with --figure %s: want a file that ends in %s", output, name, f.extension)
		}
	}
	return figure{}, fmt.Errorf("-o %s: want a file that ends in .svg, .html or .json", output)
}

// conversion returns the command that converts a figure for an output in another
// format, or "". The program rsvg-convert comes with librsvg.
func conversion(output, extension string) string {
	from := strings.TrimSuffix(output, filepath.Ext(output)) + ".svg"
	switch extension {
	case ".png":
		return fmt.Sprintf("rsvg-convert --zoom 2 -o %s %s", output, from)
	case ".pdf":
		return fmt.Sprintf("rsvg-convert --format pdf -o %s %s", output, from)
	}
	return ""
}

// maxDrawnRanks is how many ranks any picture may have. The figures have stricter
// limits, but apply them after the simulation.
const maxDrawnRanks = 4096

// drawScene draws one schedule.
func (s *simulation) drawScene(cmd *cobra.Command, w io.Writer, f figure, arg, title string) error {
	if n := len(s.lists.algorithms.values); n > 1 {
		return callErrorf("%d algorithms: %s shows one, charts such as --figure cost-m compare several", n, f.name)
	}
	one, err := s.drawn()
	if err != nil {
		return err
	}
	e, err := one.scenario(cmd, arg)
	if err != nil {
		return err
	}
	if e.p > maxDrawnRanks && f.name != "trace" {
		return callErrorf("a picture of %d ranks: want at most %d, to be legible", e.p, maxDrawnRanks)
	}
	r, err := e.simulate(true)
	if err != nil {
		return err
	}
	if title == "" {
		title = e.title
	}
	if err := f.scene(w, draw.Scene{Title: title, Parts: e.parts, Result: r}); err != nil {
		return callError{err}
	}
	return nil
}

// drawFault draws the programs of a wrong schedule in a file, and reports whether there is
// such a figure.
func (s *simulation) drawFault(w io.Writer, f figure, file, title string, faults sched.Faults) bool {
	draws := map[string]func(io.Writer, string, *sched.Schedule, sched.Faults) error{".svg": draw.Programs, ".html": draw.ProgramsPage}[f.extension]
	_, schedule, err := collectiveOrFile(file, s.memory)
	if err != nil || schedule == nil || draws == nil {
		return false
	}
	if all := sched.FaultsOf(schedule.Check()); all != nil {
		faults = all
	}
	title = cmp.Or(title, fmt.Sprintf("%v %s, which is wrong", schedule.Collective, schedule.Algorithm))
	return draws(w, title, schedule, faults) == nil
}

// writeAtomically writes a file by renaming a temporary file.
func writeAtomically(name string, data []byte) (err error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, data, 0o666) // do not replace a device, a pipe or a symbolic link
	}
	temp, err := os.OpenFile(fmt.Sprintf("%s.%d.part", name, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return err
}

// drawn returns the simulation of a picture's one network. The algorithm is that of a
// figure that shows one.
func (s *simulation) drawn() (*simulation, error) {
	for _, list := range []struct {
		what string
		n    int
	}{
		{"numbers of ranks", len(s.lists.ranks.values)},
		{"numbers of words", len(s.lists.words.values)},
		{"topologies", len(s.lists.topologies.values)},
	} {
		if list.n > 1 {
			return nil, callErrorf("%d %s: want one, as a picture shows", list.n, list.what)
		}
	}
	return s.each()[0], nil
}
