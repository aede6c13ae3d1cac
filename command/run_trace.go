package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/trace"
	"github.com/chorale-go/chorale/launch"
)

// defaultBuffer is how many bytes of a timeline a rank keeps, unless the command line says it.
const defaultBuffer = 1 << 20

// errNoTrace is the error of a job whose ranks have recorded nothing.
var errNoTrace = errors.New("no rank has sent a timeline: want a program that calls chorale.Main")

// tracedRun runs a job and writes the timeline of its ranks, also if it fails.
func tracedRun(cmd *cobra.Command, cfg launch.Config, name string, buffer size, run func(launch.Config) error) error {
	if buffer < trace.EventBytes || buffer > trace.MaxBuffer {
		return callErrorf("--trace-buffer %d: want %d bytes to %s", int(buffer), trace.EventBytes, algo.FormatBytes(trace.MaxBuffer))
	}
	out, err := os.Create(name) // before the job, which may take long
	if err != nil {
		return callErrorf("--trace: %w", err)
	}
	defer out.Close()
	var (
		records []trace.Record
		broken  error
	)
	target := trace.Sent
	if cfg.Transport == "inproc" { // one process, which has no control connection, and writes the file
		if target, err = filepath.Abs(name); err != nil {
			return err
		}
	}
	cfg.Env = append(cfg.Env, trace.Variable+"="+target, trace.BufferVariable+"="+strconv.Itoa(int(buffer)))
	cfg.Trace = func(text []byte) {
		r, err := trace.Decode(text)
		records, broken = append(records, r), errors.Join(broken, err)
	}
	failed := run(cfg)
	err = broken
	switch {
	case err != nil:
	case target != trace.Sent:
		err = printNotesOf(cmd.ErrOrStderr(), name)
	case len(records) == 0:
		err = errNoTrace
	default:
		err = writeTrace(cmd.ErrOrStderr(), out, name, records)
	}
	if failed != nil {
		return failed
	}
	return err
}

// writeTrace writes the timeline of records to a file, and says what it lacks.
func writeTrace(notes io.Writer, out *os.File, name string, records []trace.Record) error {
	t := trace.Join(records)
	if err := errors.Join(t.Write(out), out.Close()); err != nil {
		return err
	}
	printNotes(notes, name, t.Notes())
	return nil
}

// printNotesOf says what the timeline lacks that the process of all ranks has written.
func printNotesOf(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	notes, err := trace.ReadNotes(f)
	if err != nil {
		return errNoTrace
	}
	printNotes(w, name, notes)
	return nil
}

func printNotes(w io.Writer, name string, notes []string) {
	fmt.Fprintf(w, "trace: %s is for https://ui.perfetto.dev, and chorale sim --against\n", name)
	for _, note := range notes {
		fmt.Fprintln(w, "trace: "+note)
	}
}

// newTrace is the verb that joins the files that ranks have left.
func newTrace() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace FILE… -o TIMELINE",
		Short: "Join what the ranks of a job have recorded to a timeline",
		Long: `Join what the ranks of a job have recorded to one timeline, which
https://ui.perfetto.dev opens and chorale sim --against reads. The FILEs are those
that ranks leave under any launcher if CHORALE_TRACE=NAME is set for all of them:
NAME.0, NAME.1 and so on, one for each rank. chorale run --trace needs no files.`,
		Example: `  CHORALE_TRACE=/tmp/job mpirun -n 4 ./program
  chorale trace /tmp/job.* -o job.json`,
		Args: cobra.MinimumNArgs(1),
	}
	output := cmd.Flags().StringP("output", "o", "", "the timeline's file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *output == "" {
			return callErrorf("no file for the timeline: want -o TIMELINE")
		}
		var records []trace.Record
		for _, name := range args {
			text, err := os.ReadFile(name)
			if err != nil {
				return callError{err}
			}
			r, err := trace.Decode(text)
			if err != nil {
				return callErrorf("%s: %w", name, err)
			}
			records = append(records, r)
		}
		out, err := os.Create(*output)
		if err != nil {
			return callError{err}
		}
		return writeTrace(cmd.ErrOrStderr(), out, *output, records)
	}
	return cmd
}
