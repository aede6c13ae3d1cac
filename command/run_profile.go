package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/internal/profile"
	"github.com/chorale-go/chorale/launch"
)

// profiledRun runs a job and prints where its ranks have spent their time, also if it fails.
func profiledRun(cmd *cobra.Command, cfg launch.Config, format string) error {
	var (
		records []profile.Record
		broken  error
	)
	add := func(text []byte) {
		r, err := profile.Decode(text)
		if err != nil {
			broken = err
			return
		}
		records = append(records, r)
	}
	target := profile.Sent
	if cfg.Transport == "inproc" { // one process, which has no control connection
		dir, err := os.MkdirTemp("", "chorale-profile-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		target = filepath.Join(dir, "rank")
	}
	cfg.Env = append(cfg.Env, profile.Variable+"="+target)
	cfg.Profile = add
	failed := launch.Run(cmd.Context(), cfg)
	if target != profile.Sent {
		for rank := range cfg.Size {
			if text, err := os.ReadFile(fmt.Sprintf("%s.%d", target, rank)); err == nil { // a process that was killed has left none
				add(text)
			}
		}
	}
	err := broken
	switch {
	case err != nil:
	case len(records) == 0: // the job may be right without
		fmt.Fprintln(cmd.ErrOrStderr(), "chorale: no rank has sent a profile: want a program that calls chorale.Main")
	default:
		report := profile.Join(records)
		limit := profile.CopyBandwidth()
		report.Copy = &limit
		err = printProfile(cmd.ErrOrStderr(), report, format)
	}
	if failed != nil {
		return failed
	}
	return err
}

// printProfile prints a report.
func printProfile(w io.Writer, report profile.Report, format string) error {
	if format == "json" {
		return printJSON(w, report)
	}
	return report.WriteText(w)
}

// newProfile is the verb that joins the files that ranks have left.
func newProfile() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile FILE…",
		Short: "Print where the time of a job went",
		Long: `Print where the ranks of a job have spent their time. The FILEs are those that
ranks leave under any launcher if CHORALE_PROFILE=NAME is set for all of them:
NAME.0, NAME.1 and so on, one for each rank. chorale run --profile needs no files.`,
		Example: `  CHORALE_PROFILE=/tmp/job mpirun -n 4 ./program
  chorale profile /tmp/job.*`,
		Args: cobra.MinimumNArgs(1),
	}
	format := addFormat(cmd, "table", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var records []profile.Record
		for _, name := range args {
			text, err := os.ReadFile(name)
			if err != nil {
				return callError{err}
			}
			r, err := profile.Decode(text)
			if err != nil {
				return callErrorf("%s: %w", name, err)
			}
			records = append(records, r)
		}
		return printProfile(cmd.OutOrStdout(), profile.Join(records), format.value)
	}
	return cmd
}
