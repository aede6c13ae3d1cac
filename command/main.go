package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/sched"
)

// Main runs the command line of this process, and exits with its status. It does not
// return. The processes that it starts as ranks run this same executable, so what main has
// registered before is registered in them, too.
//
// In help and errors the command has the name of this executable.
func Main() { os.Exit(run(os.Args[1:])) }

// program is the name of this executable.
func program() string {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if name == "." || strings.ContainsAny(name, " \t") { // cobra takes the first word for the name
		return "chorale"
	}
	return name
}

// run executes a command line and returns its exit status: 0 for success, 1 if the
// work failed, 2 if the call was wrong, and a job's own status for chorale run.
func run(args []string) int {
	root := newRoot()
	began := false // before that, an error is one of the call
	root.PersistentPreRun = func(*cobra.Command, []string) { began = true }
	root.SetArgs(args)
	var unwritten error // help has no error to return
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { unwritten = printHelp(c) })
	verb, err := root.ExecuteC()
	if err == nil {
		began, err = true, unwritten
	}
	if err == nil {
		return 0
	}
	if !errors.Is(err, syscall.EPIPE) { // the reader that closed the pipe needs no message
		fmt.Fprintf(os.Stderr, "%s: %v\n", verb.CommandPath(), err)
	}
	var call callError
	if !began || errors.As(err, &call) {
		return 2
	}
	return launch.Status(err)
}

// A callError says that the call was wrong: exit status 2.
type callError struct{ error }

func callErrorf(format string, args ...any) error {
	return callError{fmt.Errorf(format, args...)}
}

func (e callError) Unwrap() error { return e.error }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   program() + " VERB",
		Short: "Collective communication: run it, see it, check it",
		Long: `Collective communication: run it, see it, check it.

Start with a run, then look at what it did: list names the algorithms, show lists the steps of one, sim says what it takes on a network and why, bench what it takes here. Each verb has examples under --help, and docs/guide.md explains the rest.`,
		Example: `  chorale run -n 4 ./examples/globalsum           four processes add up
  chorale show allreduce -n 4                     what they send to each other
  chorale sim allreduce -n 4 --topology ring      how long that takes, and why
  chorale list allreduce                          the other ways to do it`,
		Version:       version(),
		SilenceErrors: true,

		DisableFlagsInUseLine: true,

		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return &sched.UnknownError{What: "verb", Name: args[0], Known: verbs(cmd)}
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd == root && len(words) > 0 { // before the flag
			return root.Args(cmd, words)
		}
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			if near := nearestFlag(cmd, unknown.GetSpecifiedName()); near != "" {
				err = fmt.Errorf("%w: want --%s", err, near)
			}
		}
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newRun(), newList(), newShow(), newCheck(), newSim(), newDraw(), newBench(), newTune(), newExplain(), newEnv(), newProfile(), newTrace(), newGuard(), newAgent(), newBenchRank(), newTuneRank(), newRaceRank())
	onlyOnce(root)
	if name := program(); name != "chorale" {
		rename(root, name)
	}
	return root
}

// rename has the help texts of a verb, and of those below it, call the command by a name.
func rename(cmd *cobra.Command, name string) {
	for _, text := range []*string{&cmd.Use, &cmd.Long, &cmd.Example} {
		*text = command.ReplaceAllString(*text, "${1}"+name+" ${2}")
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		f.Usage = command.ReplaceAllString(f.Usage, "${1}"+name+" ${2}")
	})
	for _, c := range cmd.Commands() {
		rename(c, name)
	}
}

// command is a call of the command in a text.
var command = regexp.MustCompile(`(^|[\s|(])chorale (run|list|show|check|sim|draw|bench|tune|explain|env|profile|trace)\b`)

// nearestFlag returns the flag of a verb that may be meant by a name, or nothing.
func nearestFlag(cmd *cobra.Command, name string) string {
	flags := &sched.UnknownError{What: "flag", Name: name}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags.Known = append(flags.Known, f.Name) })
	return flags.Nearest()
}

// verbs returns the names of the verbs that are not hidden.
func verbs(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}
