package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/launch"
)

func newRun() *cobra.Command {
	var (
		cfg       launch.Config
		ranks     count
		noLabels  bool
		algorithm string
		transport = transportChoice()
		stall     time.Duration
		remote    remoteFlags
	)
	cmd := &cobra.Command{
		Use:   "run -n N [--hosts A,B:SLOTS,…] PROGRAM [ARG…]",
		Short: "Start a program as the ranks of a job",
		Long: `Start PROGRAM as N ranks on this machine, or on several hosts, and wait for
their end.

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

With --hosts a,b:4,c or --hostfile FILE, the ranks run on other hosts, and without
-n as many as the hosts have slots. A host has one slot, or as many as a colon and a
number say; a host file has a host on each line, as in b:4 or b slots=4. Ranks fill
the hosts in order; --map-by host places them by turns. A host is reached by ssh,
which must ask for no password. If it has no chorale at the same path as here, and
--agent names none, it gets a copy for the time of the job. CHORALE_SSH is another
ssh with its first arguments, and --launcher 'kubectl exec -i {host} --' another
command. PROGRAM is copied to each host if it has a path separator, unless --no-copy
says that every host has it. The ranks get the environment of their host, variables
whose names begin with CHORALE_, and those that --env names. If the connection to a
host ends, so does the job.

Ranks that wait for each other, because they make the calls of two communicators in
different orders, are named after --stall; they go on waiting.

When a rank fails, the others are ended. The exit status is that of the rank that
failed first: 128 and the signal's number if a signal killed it.`,
		Example: `  chorale run -n 7 ./examples/globalsum
  chorale run -n 4 --transport inproc ./examples/globalsum
  chorale run -n 2 hostname
  chorale run --hosts node1:4,node2:4 ./examples/globalsum`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no program: want an executable or the directory of a Go package")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cfg.Remote, err = remote.parse(); err != nil {
				return err
			}
			if ranks == 0 && cfg.Remote == nil {
				return callErrorf("no number of ranks: want -n N")
			}
			cfg.Size, cfg.Transport = int(ranks), transport.value
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
				if algorithm, err = programAlgorithm(algorithm); err != nil {
					return callErrorf("--algorithm %w", err)
				}
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
	remote.add(cmd)
	flags.Var(&transport, "transport", "how the ranks exchange messages: "+oneOfText(transport.candidates))
	flags.BoolVar(&cfg.Encrypt, "encrypt", false, "data connections between hosts use TLS, as CHORALE_ENCRYPT=1")
	flags.StringVar(&algorithm, "algorithm", "", "the algorithms for the program's collectives, as in ring, allreduce=ring;bcast=chain,segment=8K or mine.txt")
	flags.BoolVar(&noLabels, "no-labels", false, "print what the ranks print, unchanged")
	flags.DurationVar(&cfg.Grace, "grace", 5*time.Second, "the time from asking the ranks to end to killing them")
	flags.DurationVar(&stall, "stall", 30*time.Second, "the time after which ranks that wait for each other are named; 0: never")
	flags.BoolVarP(&cfg.Verbose, "verbose", "v", false, "print every process that starts or ends")
	return cmd
}

// programAlgorithm returns the value of CHORALE_ALGORITHM for a value of --algorithm, with
// files by their absolute names.
func programAlgorithm(list string) (string, error) {
	if err := selection.Validate(list); err != nil {
		return "", fmt.Errorf("%s: %w", list, err)
	}
	return selection.Absolute(list)
}

// newAgent is the verb of the agent that launch.Run starts on another host.
func newAgent() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return launch.Agent(os.Stdin, os.Stdout, []string{"guard"})
		},
	}
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
