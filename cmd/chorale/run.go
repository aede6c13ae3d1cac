package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/launch"
)

func newRun() *cobra.Command {
	var (
		cfg       launch.Config
		ranks     count
		noLabels  bool
		algorithm string
		stall     time.Duration
	)
	cmd := &cobra.Command{
		Use:   "run -n N PROGRAM [ARG…]",
		Short: "Start a program as the ranks of a job",
		Long: `Start PROGRAM as N ranks on this machine and wait for their end.

PROGRAM is an executable, or the directory of a Go package, which is built
first. A directory is written with a path separator (./examples/globalsum), or
as . or .. alone. Arguments after PROGRAM are passed to the program.

Each line of a rank's output is preceded by the rank. A line of more than 1 MiB
is printed as it comes, while the lines of other ranks wait. If it keeps them
waiting and has not grown for 1 s, or goes on for 10 s, it is cut: [...] ends its
first part, and follows the rank before the rest. With --no-labels, what a rank
prints is not changed by a byte.

Standard input goes to rank 0. Interrupt, terminate, quit, hang-up and the two
user signals are forwarded to all ranks and to the processes that they have
started. After an interrupt or a termination, the ranks have a grace period; a
second one ends them at once. A stop (Ctrl-Z) stops the ranks, too, until the
command is continued.

Ranks exchange messages through shared memory (shm), over TCP (tcp), or as
goroutines of one process (inproc). Auto uses shared memory between ranks of one
host if the system can share memory, and TCP otherwise; -v prints the size of
the memory, or the reason why there is none. Ranks with different values of
CHORALE_HOST in their environment count as being on different hosts.

A rank whose part is done waits until the others have taken its messages, for an
hour at most, or as long as CHORALE_LINGER says (90s, 10m).

Ranks that wait for each other, because they make the calls of two communicators in
different orders, are named after --stall; they go on waiting.

When a rank fails, the others are ended. The exit status is that of the rank that
failed first: 128 and the signal's number if a signal killed it.`,
		Example: `  chorale run -n 7 ./examples/globalsum
  chorale run -n 4 --transport inproc ./examples/globalsum
  chorale run -n 2 hostname`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no program: want an executable or the directory of a Go package")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if ranks == 0 {
				return callErrorf("no number of ranks: want -n N")
			}
			cfg.Size = int(ranks)
			cfg.Program, cfg.Args = args[0], args[1:]
			cfg.Unlabeled = noLabels
			switch {
			case stall < 0:
				return callErrorf("--stall %v: want 0 or more", stall)
			case stall == 0:
				cfg.Stall = -1
			default:
				cfg.Stall = stall
			}
			cfg.Env = os.Environ()
			if algorithm != "" {
				cfg.Env = append(cfg.Env, "CHORALE_ALGORITHM="+algorithm)
			}
			cfg.Stdin, cfg.Stdout, cfg.Stderr = os.Stdin, os.Stdout, os.Stderr
			signals := make(chan os.Signal, 16)
			launch.Notify(signals)
			cfg.Signals = signals
			cfg.Guard = []string{"guard"}
			return launch.Run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.SortFlags = false
	flags.VarP(&ranks, "ranks", "n", "the number of ranks")
	flags.StringVar(&cfg.Transport, "transport", "auto", "how the ranks exchange messages: "+strings.Join(launch.Transports, ", "))
	flags.StringVar(&algorithm, "algorithm", "", "the algorithm for the program's collectives, as CHORALE_ALGORITHM")
	flags.BoolVar(&noLabels, "no-labels", false, "print what the ranks print, unchanged")
	flags.DurationVar(&cfg.Grace, "grace", 0, "the time from asking the ranks to end to killing them (default 5s)")
	flags.DurationVar(&stall, "stall", 30*time.Second, "the time after which ranks that wait for each other are named; 0: never")
	flags.BoolVarP(&cfg.Verbose, "verbose", "v", false, "print every process that starts or ends")
	return cmd
}

// newGuard is the verb of the guard process that launch.Run starts.
func newGuard() *cobra.Command {
	return &cobra.Command{
		Use:    "guard",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run:    func(*cobra.Command, []string) { launch.Guard(os.Stdin) },
	}
}
