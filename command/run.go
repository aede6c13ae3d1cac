package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chorale-go/chorale/internal/logging"
	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/internal/trace"
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
		profiled  bool
		metrics   string
		level     = choice{"", logging.Levels}
		onFailure = choice{"abort", []string{"abort", "continue"}}
		traceFile string
		rules     rulesFlag
		buffer    = size(defaultBuffer)
		format    = choice{"table", []string{"table", "json"}}
	)
	cmd := &cobra.Command{
		Use:   "run -n N [--hosts A,B:SLOTS,…] PROGRAM [ARG…]",
		Short: "Start a program as the ranks of a job",
		Long: `Start PROGRAM as N ranks on this machine, or on several hosts, and wait for
their end.

PROGRAM is an executable, or the directory of a Go package, which is built
first. A directory is written with a path separator (./examples/globalsum), or
as . or .. alone. Flags of run go before PROGRAM: what follows it is passed to the
program.

Each line of a rank's output is preceded by the rank. A line of more than 1 MiB
is printed as it comes, while the lines of other ranks wait. If it keeps them
waiting and has not grown for 1 s, or goes on for 2 s, it is cut: [...] ends its
first part, and follows the rank before the rest, for which no line waits. With
--no-labels, what a rank prints is not changed by a byte.

Standard input goes to rank 0. Interrupt, terminate, hang-up and the two user
signals are forwarded to all ranks and to the processes that they have
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

When a rank has waited for others for --stall, the command explains what all ranks do:
which wait, in which call, at which line of the program and for whom, what the others
do instead, and which is the likely cause. They go on waiting, unless --stall-abort
ends the job. A quit signal (Ctrl-\\) has the same printed at once, and ends nothing.

Calls choose algorithms by the selections of the machine's profile, if chorale tune
--select has made some. The command reads them once, and every rank gets them when it
joins, on whichever host. --machine FILE names another profile, and --machine off leaves
the built-in choices.

With --profile, a table says at the end, on standard error, where the time went:
each source line that calls a collective or sends messages, how often and how
long, how much of that was waiting for ranks that came later, and how even the
ranks are.

With --metrics ADDRESS, the command serves, while the job runs, how often and how long
each rank has called what, in the format of Prometheus, at http://ADDRESS/metrics. With
port 0, as in :0, a free port is taken. The command prints the address.

With --log LEVEL, ranks log on standard error that they have joined, that other ranks
are lost, what ends their part in the job, and slower ways that they have to take.

With --trace, a file for https://ui.perfetto.dev has what each rank did: calls and
their steps, messages, waiting for other ranks, combining. The clocks of hosts are
compared over the control connections. A rank keeps the last --trace-buffer of it,
64 bytes for each call, step or message; standard error says what is missing, and
by how much the clock of a host may be wrong.

When a rank fails, the others are ended. The exit status is that of the rank that
failed first: 128 and the signal's number if a signal killed it.

With --on-failure continue, a rank that is killed, ends with another status than 0
or was on a host that is lost does not end the job. The others are told, a line
says so, and the exit status is 0 if any rank ends well. --respawn K starts K lost
ranks anew, each on its host; they wait in their start until the others take them
in, and end quietly if the job ends before.`,
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
				if flag := behindProgram(cmd.Flags(), args[1:]); flag != "" {
					return callErrorf("no number of ranks: want -n N before PROGRAM: %s is behind it, so it is an argument of the program", flag)
				}
				return callErrorf("no number of ranks: want -n N")
			}
			cfg.Continue = onFailure.value == "continue"
			if cfg.Respawn > 0 && cmd.Flags().Changed("on-failure") && !cfg.Continue {
				return callErrorf("--respawn %d starts lost ranks anew, and --on-failure abort ends the job then: want one of them", cfg.Respawn)
			}
			if cmd.Flags().Changed("format") && !profiled {
				return callErrorf("--format %s is how a profile is printed: want --profile as well", format.value)
			}
			cfg.Size, cfg.Transport = int(ranks), transport.value
			if cfg.Encrypt && (cfg.Transport == "shm" || cfg.Transport == "inproc") {
				return callErrorf("--encrypt and --transport %s: no data leaves the host: want auto or tcp", cfg.Transport)
			}
			cfg.Program, cfg.Args = args[0], args[1:]
			cfg.Unlabeled = noLabels
			switch {
			case stall < 0:
				return callErrorf("--stall %v: want 0 or more", stall)
			case stall == 0 && cfg.StallAbort:
				return callErrorf("--stall-abort ends the job after --stall, and that is 0: want more")
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
			if rules.file != "" {
				file, err := checkedMachine(rules.file)
				if err != nil {
					return callErrorf("--machine %w", err)
				}
				cfg.Env = append(cfg.Env, machine.Variable+"="+file)
			}
			if level.value != "" {
				cfg.Env = append(cfg.Env, logging.Variable+"="+level.value)
			}
			cfg.Stdin, cfg.Stdout, cfg.Stderr = os.Stdin, os.Stdout, os.Stderr
			signals := make(chan os.Signal, 16)
			launch.Notify(signals)
			cfg.Signals = signals
			cfg.Guard = []string{"guard"}
			run := func(cfg launch.Config) error { return launch.Run(cmd.Context(), cfg) }
			if profiled {
				run = func(cfg launch.Config) error { return profiledRun(cmd, cfg, format.value) }
			}
			if name := os.Getenv(trace.Variable); traceFile == "" && name != trace.Sent {
				traceFile = name
			}
			if text := os.Getenv(trace.BufferVariable); text != "" && traceFile != "" && !cmd.Flags().Changed("trace-buffer") {
				if err := buffer.Set(text); err != nil {
					return callErrorf("%s=%s: %w", trace.BufferVariable, text, err)
				}
			}
			if traceFile != "" {
				inner := run
				run = func(cfg launch.Config) error { return tracedRun(cmd, cfg, traceFile, buffer, inner) }
			}
			if metrics == "" {
				err = run(cfg)
			} else {
				err = meteredRun(metrics, cmd.ErrOrStderr(), cfg, run)
			}
			var end *launch.EndError
			if flag := behindProgram(cmd.Flags(), args[1:]); flag != "" && errors.As(err, &end) {
				err = fmt.Errorf("%w; %s was an argument of the program, since it is behind PROGRAM", err, flag)
			}
			return err
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
	rules.add(cmd)
	flags.BoolVar(&noLabels, "no-labels", false, "print what the ranks print, unchanged")
	flags.DurationVar(&cfg.Grace, "grace", 5*time.Second, "the time from asking the ranks to end to killing them")
	flags.DurationVar(&stall, "stall", 30*time.Second, "the time after which a wait for other ranks is explained; 0: never")
	flags.BoolVar(&cfg.StallAbort, "stall-abort", false, "end the job then, with an error")
	flags.Var(&onFailure, "on-failure", "what a lost rank does to the job: "+oneOfText(onFailure.candidates))
	flags.IntVar(&cfg.Respawn, "respawn", 0, "the number of lost ranks to start anew; more than 0: the job continues")
	flags.BoolVar(&profiled, "profile", false, "print at the end, on standard error, where the time went")
	flags.Var(&format, "format", "how the profile is printed: "+oneOfText(format.candidates))
	flags.StringVar(&metrics, "metrics", "", "serve the sums of calls, bytes and times at this address, as in :9090, for Prometheus")
	flags.Var(&level, "log", "ranks log events of this level, or a higher one, on standard error: "+oneOfText(level.candidates))
	flags.StringVar(&traceFile, "trace", "", "write the timeline of all ranks to a file, as CHORALE_TRACE")
	flags.Var(&buffer, "trace-buffer", "how much of the timeline each rank keeps")
	flags.BoolVarP(&cfg.Verbose, "verbose", "v", false, "print every process that starts or ends")
	return cmd
}

// behindProgram returns the first of a program's arguments that looks like -n or a long
// flag of run, or "".
func behindProgram(flags *pflag.FlagSet, args []string) string {
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		long, isLong := strings.CutPrefix(name, "--")
		if name == "-n" || isLong && long != "help" && flags.Lookup(long) != nil {
			return name
		}
	}
	return ""
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
