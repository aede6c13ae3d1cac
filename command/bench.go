package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/model"
)

func newBench() *cobra.Command {
	var (
		ranks      = numbersOfRanks()
		transports = words(transportChoice("mpi"))
		bytes      = sizes("bytes", 8, 1<<10, 64<<10, 1<<20, 4<<20)
		algorithms = algorithmList()
		config     benchConfig
		root       int
		noVerify   bool
		plot       string
		mpiexec    string
		predict    bool
		profile    string
		rules      rulesFlag
	)
	cmd := &cobra.Command{
		Use:   "bench [OP[:FORM]…] -n N",
		Short: "Measure collectives and messages on this machine",
		Long: `Measure collectives on this machine; all of them if none is named.

Times are in microseconds per call, on the slowest rank. A sample is a batch of
calls, about a millisecond of them, after a barrier that is not timed; MIN,
MEDIAN, P99 and MEAN are over samples. Samples are taken until the median is
stable to 1 %, or until --time is over, but never less than 5: then ~ marks a MEDIAN
that is not stable. Every call uses the
same buffers; with --alloc they are memory that the ranks of a host share, and a
row has "alloc":true. Reductions sum float32, and a shift is by 1. The root rotates from
call to call, so that no root runs ahead of ranks that are still in the call
before; --root R measures the rate of calls with a fixed root. The root of a file with a
schedule is that of all rows of its collective.

BYTES is the size of one rank's message, as MPI counts it: the vector, or one
part where a vector is one part per rank (scatter, gather, allgather,
reduce-scatter, alltoall). MB/s is BYTES over MEDIAN, of a rate 16 times that.

With --wide, the table has all columns: CALLS, MIN, P99 and MEAN, and those below. SWITCHES is
how often the processors leave a process of the job for another one in a
call, of all ranks together, as the system counts it: what decides the time of a
short call by more ranks than processors. A switch between goroutines is none.

Beside collectives, OP is a pattern of tagged messages of BYTES between pairs of
ranks, or on a grid of ranks:
  pingpong   Send and Recv, there and back
  exchange   SendRecv by both ranks at the same time
  rate       16 messages one way by StartSend and StartRecv, and an empty answer
  halo       StartSend to and StartRecv from the 4 neighbors on a periodic 2-D grid
  split      Split into the lower and the upper half of the ranks, and Free
  send-overhead     what a message of a step takes of its sender, whose receiver comes late
  receive-overhead  what it takes of that receiver

OP:FORM is another form of the call, in a row of its own:
  nonblocking  Start, and Wait at once
  overlap      Start, computing without a call, and Wait. Every rank computes for
               20 µs, and 1 µs more for each 1000 BYTES. The times are of all three.
               What is hidden is 1 - (MEDIAN - computing) / alone, as in OSU's
               benchmarks: computing and alone are the medians of the computing and
               of the nonblocking call alone, measured before
  prepared     Start and Wait of what Prepare has returned
  uneven       ScatterV, GatherV, AllGatherV, ReduceScatterV or AllToAllV, with parts
               of BYTES/2 and 3*BYTES/2 by turns
  half         on the communicators of the lower and of the upper half of the ranks
               at the same time; N is that of all, 3 or more
  func         a reduction by a function of two elements, Op.Combine
  slices       a reduction by a function of slices, Op.CombineSlice
  columns      exchange, scatter and gather of a column of a matrix of float64, by
               strided views: of 16 columns, or of one for each rank

The limits of the machine are measured in the same run: a copy of BYTES by one
thread, the exchange of a cache line between two threads, free and pinned to
processors, and the exchange of 8 bytes between two threads over TCP. "x COPY"
and "x EXCHANGE" are MEDIAN divided by these times; the exchange is that over TCP
for tcp, and that of a cache line for the other transports. A row of ranks on
several hosts has the transport auto, where these share memory within each host
alone, and no "x EXCHANGE".

With --transport mpi, --mpiexec starts the ranks: the launcher of the MPI that this
command was built with (go build -tags mpi,mpich or mpi,ompi), with its options.

Before and after the samples, the result of a call is verified on every rank.
Flags that take lists take commas, or are given again: there is a row for each
combination. One that does not fit is skipped, and standard error says why. Of
several algorithms, * marks the fastest for each collective and size, and *? one whose
MEDIAN is not stable; the algorithm that a call selects by itself follows where it is
another.

With --predict, every call is also simulated, by the profile that chorale tune has made:
SIM is the simulated time, and "x SIM" is MEDIAN over it. Patterns and forms are not
simulated, nor are transports that the profile does not have.

Calls choose their algorithms as in any other job: by the selections that chorale tune
--select has made, if there are some, or those of --machine FILE; --machine off leaves the
built-in choices.

An interrupt ends the measurement at once, and the rows measured so far are
printed.

--format json prints one value, of the shape that docs/json.md gives.
With --format gobench, the input of benchstat: the median as ns/op.`,
		Example: `  chorale bench allreduce -n 4
  chorale bench bcast reduce -n 2,4,8 --transport inproc,shm --sizes 8,64K
  chorale bench allgather -n 8 --algorithm all --plot allgather.svg
  chorale bench pingpong exchange rate halo -n 2 --transport shm
  chorale bench allreduce allreduce:overlap -n 2 --sizes 8,1M
  chorale bench bcast allreduce -n 2 --transport shm --predict
  chorale bench -n 4 --transport mpi --mpiexec 'mpirun --oversubscribe'
  chorale bench -n 4 --format gobench --count 10 > new.txt`,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&ranks, "ranks", "n", "numbers of ranks, as in 8 or 2,4,8")
	flags.Var(&transports, "transport", "how the ranks exchange messages, one or more of auto, inproc, shm, tcp, mpi: inproc measures goroutines, the others processes")
	flags.Var(&bytes, "sizes", "bytes of one rank's message, as in 8,64K,4M")
	flags.Var(&algorithms, "algorithm", "algorithms, with parameters if need be, as in ring,tree or chain,segment=8K; or all; see chorale list (default: the one that is selected)")
	flags.IntVar(&root, "root", 0, "the root of every call (default each rank in turn)")
	flags.DurationVar(&config.Time, "time", 200*time.Millisecond, "the time for the samples of one row")
	flags.IntVar(&config.Count, "count", 1, "the number of times that everything is measured")
	flags.BoolVar(&noVerify, "no-verify", false, "do not verify the results")
	flags.BoolVar(&config.Alloc, "alloc", false, "buffers from chorale.Alloc, in memory that the ranks of a host share")
	var remote remoteFlags
	remote.add(cmd)
	format := addFormat(cmd, "table", "csv", "json", "gobench")
	wide := flags.Bool("wide", false, "a table of all columns, which may be wider than a terminal")
	flags.StringVar(&mpiexec, "mpiexec", "mpiexec", "the launcher of the MPI, and its options")
	flags.BoolVar(&predict, "predict", false, "also simulate every call on this machine, by its profile")
	addProfile(cmd, &profile)
	rules.add(cmd)
	flags.StringVar(&plot, "plot", "", "also draw time against size, into an SVG `FILE`")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		if err := rules.apply(); err != nil {
			return err
		}
		config.Root, config.Sizes, config.Verify = bench.RotatingRoot, bytes.values, !noVerify
		config.Algorithms = algorithms.orNone()
		for i, spec := range config.Algorithms {
			if algo.IsFile(spec) {
				if config.Algorithms[i], err = filepath.Abs(spec); err != nil {
					return err
				}
			}
		}
		only := func(how string) bool { return slices.Contains(transports.values, how) }
		if flags.Changed("root") {
			config.Root = root
			if root < 0 {
				return callErrorf("root %d: want 0 or more", root)
			}
		}
		if err := config.complete(args); err != nil {
			return callError{err}
		}
		config.Several = len(ranks.values)*len(config.Algorithms)*len(config.Collectives)*len(config.Sizes) > 1 || config.Algorithms[0] == all
		if flags.Changed("root") && !config.anyRooted() {
			return callErrorf("--root %d and %s: none has a root", root, strings.Join(config.Collectives, ", "))
		}
		if config.Alloc && only("tcp") && len(transports.values) == 1 {
			return callErrorf("--alloc and --transport tcp: ranks share no memory there: want auto, inproc or shm")
		}
		hosts, err := remote.parse()
		if err != nil {
			return err
		}
		if hosts != nil && only("inproc") {
			return callErrorf("--hosts and --transport inproc: goroutines are on one host: want auto or tcp")
		}
		if hosts != nil && only("mpi") {
			return callErrorf("--hosts and --transport mpi: the launcher of the MPI knows the hosts: want --mpiexec with its option")
		}
		if flags.Changed("mpiexec") && !only("mpi") {
			return callErrorf("--mpiexec and --transport %s: want mpi", &transports)
		}
		if only("mpi") && !launch.HasMPI() {
			return callErrorf("--transport mpi: this command was built without MPI: want go build -tags mpi,mpich, or -tags mpi,ompi for Open MPI (docs/transports.md)")
		}
		if hosts != nil {
			config.Hosts = len(hosts.Hosts)
		}
		m := measurement{config: config, transports: transports.values, remote: hosts, mpiexec: strings.Fields(mpiexec), wide: *wide, progress: terminal(os.Stderr)}
		if err := m.prepare(ranks.values, os.Stderr); err != nil {
			return callError{err}
		}
		if err := plottable(plot, config.Sizes); err != nil {
			return callError{err}
		}
		var machine *model.Profile
		if predict {
			if machine, err = readProfile(profile); err != nil {
				return callError{err}
			}
		} else if flags.Changed("profile") {
			return callErrorf("--profile without --predict: it has no effect")
		}
		failed := m.run(ctx)
		if machine != nil {
			m.predict(machine)
		}
		m.markWinners()
		if err := m.print(cmd.OutOrStdout(), format.value); err != nil {
			return errors.Join(failed, err)
		}
		if plot != "" && len(m.Rows) > 0 {
			return errors.Join(failed, plotRows(plot, m.Rows, m.Limits))
		}
		return failed
	}
	return cmd
}

// A measurement is the state of a call of bench. Its JSON form is that of --format
// json.
type measurement struct {
	Rows   []bench.Row  `json:"rows"`
	Limits bench.Limits `json:"limits"`

	config     benchConfig
	transports []string
	remote     *launch.Remote // the ranks' hosts; nil for this one
	mpiexec    []string       // what starts the ranks of an MPI
	jobs       []benchJob
	all        int       // the number of rows when it is complete
	progress   io.Writer // nil unless progress is shown
	wide       bool      // the table has all columns
}

// A benchJob is the cells for one number of ranks over one transport.
type benchJob struct {
	ranks     int
	transport string
	cells     []bench.Cell
}

// prepare lists the cells to measure. It prints on stderr which ones are skipped.
func (m *measurement) prepare(ranks []int, stderr io.Writer) error {
	if ranks == nil {
		return fmt.Errorf("no number of ranks: want -n N")
	}
	m.Rows = []bench.Row{}
	var notes skips
	for _, p := range ranks {
		cells, skipped, err := m.config.cells(p)
		if err != nil {
			return err
		}
		notes = append(notes, skipped...)
		if len(cells) == 0 {
			continue
		}
		if err := affordable(cells, p); err != nil {
			return err
		}
		for _, transport := range m.transports {
			m.jobs = append(m.jobs, benchJob{p, transport, cells})
			m.all += len(cells)
		}
	}
	if m.all == 0 {
		return notes[0]
	}
	notes.print(stderr)
	return nil
}

// interruptible returns a context that ends at an interrupt or a termination.
func interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case sig := <-signals:
			signal.Stop(signals) // a second one ends the process
			cancel(&launch.SignalError{Signal: sig})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// run measures. When it fails, the rows measured so far remain.
func (m *measurement) run(ctx context.Context) (err error) {
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // other errors follow from it
		}
	}()
	m.showProgress("measuring the limits of the machine")
	defer m.showProgress("")
	m.Limits = bench.MeasureLimits(ctx, m.config.Sizes)
	for _, job := range m.jobs {
		m.showProgress("%d of %d rows", len(m.Rows), m.all)
		if err := m.runJob(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// add adds a row.
func (m *measurement) add(row bench.Row) {
	row.Compare(m.Limits)
	m.Rows = append(m.Rows, row)
	m.showProgress("%d of %d rows: %s %s, %s of %d bytes: %s µs", len(m.Rows), m.all,
		row.Collective, row.Algorithm, plural(row.Ranks, "rank"), row.Bytes, digits(row.Median))
}

// showProgress replaces the line of progress on a terminal.
func (m *measurement) showProgress(format string, args ...any) {
	showProgress(m.progress, format, args...)
}

// showProgress replaces the line of progress on a terminal, or does nothing if w is nil.
func showProgress(w io.Writer, format string, args ...any) {
	if w != nil {
		fmt.Fprintf(w, clearLine+format, args...)
	}
}

// clearLine clears the line of a terminal.
const clearLine = "\r\x1b[K"

// markWinners marks the fastest algorithm for each call, if there are several.
func (m *measurement) markWinners() {
	type call struct {
		collective, transport string
		ranks, bytes          int
	}
	fastest, algorithms := make(map[call]int), make(map[call]map[string]bool)
	for i, r := range m.Rows {
		c := call{r.Collective, r.Transport, r.Ranks, r.Bytes}
		if algorithms[c] == nil {
			algorithms[c], fastest[c] = make(map[string]bool), i
		}
		algorithms[c][r.Algorithm] = true
		if r.Median < m.Rows[fastest[c]].Median {
			fastest[c] = i
		}
	}
	for c, i := range fastest {
		m.Rows[i].Winner = len(algorithms[c]) > 1
	}
}
