package command

import (
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/launch"
)

func newEnv() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "env",
		Short: "What this process sees of the job it is in, and why",
		Long: `Join the job in which a launcher has started this process, say what this rank sees
of it, and leave. It is started as a program of the user's would be:

  srun --mpi=pmi2 -n 4 chorale env
  mpirun -n 4 chorale env

Without a launcher it says that it is the only rank, and which variables were not enough
to say more. If the rank cannot join, the error follows what is known until then.

A report of a problem with a launcher or a network should contain what it prints. The
job's secret is not in it.

--format json prints one value for each rank, of the shape that docs/json.md gives.`,
		Args: cobra.NoArgs,
	}
	format := addFormat(cmd, "table", "csv", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		report, err := launch.Describe(ctx)
		var printed error
		switch format.value {
		case "csv":
			printed = printCSV(cmd.OutOrStdout(), []launch.Report{report})
		case "json":
			printed = printJSON(cmd.OutOrStdout(), report)
		default:
			printed = printEnv(cmd.OutOrStdout(), report)
		}
		if err != nil {
			return err
		}
		return printed
	}
	return cmd
}

// printEnv prints a report in one piece, since all ranks print theirs at the same time.
func printEnv(w io.Writer, r launch.Report) error {
	var b strings.Builder
	var lines [][]string
	line := func(name, format string, args ...any) {
		lines = append(lines, []string{name, fmt.Sprintf(format, args...)})
	}
	if r.Rank < 0 {
		line("rank", "unknown")
	} else {
		line("rank", "%d of %d", r.Rank, r.Size)
	}
	line("launcher", "%s", r.Launcher)
	if r.Reason != "" {
		line("reason", "%s", r.Reason)
	}
	if r.Hosts > 1 {
		line("host", "%s, one of %d hosts", r.Host, r.Hosts)
	} else {
		line("host", "%s", r.Host)
	}
	line("version", "%s", r.Version)
	if r.Processors > 0 {
		line("processors", "%d, which the ranks of a host share", r.Processors)
	}
	if r.Transport != "" {
		line("transport", "%s", r.Transport)
	}
	switch {
	case r.Selections > 0:
		line("selections", "%s of the machine's profile (digest %s)", plural(r.Selections, "rule"), r.SelectionsDigest)
	case r.SelectionsReason != "":
		line("selections", "none: %s", r.SelectionsReason)
	}
	switch {
	case r.Transport == "":
	case r.FallbackReason != "":
		line("shared memory", "none: %s", r.FallbackReason)
	case len(r.SharesMemory) == 0:
		line("shared memory", "with no other rank")
	default:
		line("shared memory", "with ranks %s", strings.Trim(fmt.Sprint(r.SharesMemory), "[]"))
	}
	if r.Control != "" {
		encrypted := "not encrypted: they stay on this host"
		if r.TLS {
			encrypted = "encrypted"
		}
		line("control", "%s (%s)", r.Control, encrypted)
		line("secret", "from %s", r.Secret)
	}
	if r.Address != "" {
		line("address", "%s", r.Address)
	}
	for _, a := range r.Rejected {
		line("not used", "%s (%s): %s", a.Address, a.Interface, a.Reason)
	}
	if err := printTable(&b, lines); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}
