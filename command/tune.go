package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/tune"
	"github.com/chorale-go/chorale/model"
)

func newTune() *cobra.Command {
	transports := words(choice{"inproc", tunedTransports})
	transports.values = slices.DeleteFunc(slices.Clone(tunedTransports), func(t string) bool {
		return t == "shm" && runtime.GOOS != "linux"
	})
	var (
		quick bool
		file  string
		mode  = choice{"", []string{"measured", "predicted"}}
		ranks = numbersOfRanks()
	)
	cmd := &cobra.Command{
		Use:   "tune [--select [OP…]]",
		Short: "Measure this machine or a job's hosts, for predictions and choices",
		Long: `Measure this machine, and write what it takes into a profile: a JSON file from which
sim --profile and bench --predict tell how long a collective takes here.

For each transport: the time of a message, one way and in an exchange, as lines over
the number of bytes, a new one where the protocol changes; how fast messages can be
issued; what a call and a step cost a rank beside them; and what it costs a
processor to switch between ranks. For the machine: copies and sums by size, and the
bandwidth of its memory. Every number has the interval that holds it with a
confidence of 95 %, and every line the median distance of what was measured from it.
docs/tune.md explains the methods.

It takes about a minute for each transport, or with --quick ten seconds. Nothing else
should run meanwhile: the profile says whether the machine was quiet. An interrupt
ends the measurement, and writes nothing. Transports that are not measured keep what
the profile has of them.

With --hosts or --hostfile, each of the hosts measures itself, all of them at the same time,
and then pairs of hosts measure the messages between them, one pair after another. Pairs
that take the same are a class, and each class takes about half a minute. Hosts are reached
as by chorale run; slots have no effect.

With --select, the profile also gets selections: which algorithms calls take from then
on, in place of the built-in choices, over each transport, by the number of ranks and
bytes. What the profile lacks for that is measured first. For each call, the algorithms
of the catalog are simulated, and those that may be the fastest race the built-in choice:
they make calls by turns, and who is slower drops out. A rule is written where one of
them is faster by more than 5 % with a confidence of 95 %, in three jobs; all else stays
as it is. --select=predicted writes one where the simulation promises 30 %, and races
nothing. OP… and -n name the collectives and the numbers of ranks, and rules for others
stay. Jobs on this machine read the selections when they start: see chorale run
--machine.

--format json prints the profile.`,
		Example: `  chorale tune
  chorale tune --quick --transport inproc --profile quick.json
  chorale tune --select --transport shm
  chorale tune --select allreduce -n 4,8 --transport shm
  chorale sim allreduce -n 2 --profile quick.json --transport inproc
  chorale bench allreduce -n 2 --transport shm --predict
  chorale tune --hosts node1,node2,node3 --transport shm --profile cluster.json`,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&transports, "transport", "the transports to measure, one or more of "+oneOfText(tunedTransports))
	flags.BoolVar(&quick, "quick", false, "fewer sizes and shorter samples")
	addProfile(cmd, &file)
	var remote remoteFlags
	remote.add(cmd)
	flags.Var(&mode, "select", "also find the fastest algorithms for calls: "+oneOfText(mode.candidates))
	flags.Lookup("select").NoOptDefVal = "measured"
	flags.VarP(&ranks, "ranks", "n", "with --select: the numbers of ranks, as in 4 or 2,4,8 (default: up to twice the processors, and a larger one)")
	format := addFormat(cmd, "table", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := newSelecting(args, ranks.values, mode.value)
		if err != nil {
			return callError{err}
		}
		if err := os.Setenv(machine.Variable, machine.Off); err != nil { // what is measured is built in
			return err
		}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		profile, err := oldProfile(file)
		if err != nil {
			return callError{err}
		}
		hosts, err := hostsToTune(cmd, &remote)
		if err != nil {
			return err
		}
		if hosts != nil && s != nil {
			return callErrorf("--select and --hosts: selections are for jobs on this machine: want one of them")
		}
		if err := mayWriteProfile(file); err != nil {
			return callError{err}
		}
		t := tuning{effort: effortOf(quick), progress: terminal(os.Stderr)}
		switch {
		case hosts != nil:
			err = t.measureHosts(ctx, hosts, hostsTuning{Transports: transports.values, Quick: quick}, profile)
		case s != nil:
			s.quick, s.progress = quick, t.progress
			err = s.runEach(ctx, &t, transports.values, profile)
		default:
			err = t.measure(ctx, transports.values, profile)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: no profile is written", context.Cause(ctx))
			}
			return err
		}
		if err := writeProfile(file, profile); err != nil {
			return err
		}
		if format.value == "json" {
			return profile.Write(cmd.OutOrStdout())
		}
		if s != nil {
			return printSelections(cmd.OutOrStdout(), profile, transports.values, file)
		}
		return printTuned(cmd.OutOrStdout(), profile, file)
	}
	return cmd
}

// tunedTransports are the transports that tune can measure: shm on Linux alone.
var tunedTransports = []string{"inproc", "shm", "tcp"}

// addProfile adds the flag --profile, whose default is the user's own profile.
func addProfile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "profile", "", "the `FILE` of the machine's profile (default chorale/profile.json in the user's configuration directory)")
}

// profilePath returns the file of the flag, or the user's own.
func profilePath(file string) (string, error) {
	if file != "" {
		return file, nil
	}
	path, err := machine.Path()
	if err != nil {
		return "", fmt.Errorf("%w: want --profile FILE", err)
	}
	return path, nil
}

// readProfile reads a profile, by the value of its flag.
func readProfile(file string) (*model.Profile, error) {
	path, err := profilePath(file)
	if err != nil {
		return nil, err
	}
	return machine.Read(path)
}

// oldProfile returns the profile that a new one replaces, or an empty one if there is none.
func oldProfile(file string) (*model.Profile, error) {
	path, err := profilePath(file)
	if err != nil {
		return nil, err
	}
	p, err := machine.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &model.Profile{Version: model.ProfileVersion}, nil
	}
	if err != nil && !errors.As(err, new(*fs.PathError)) { // what the file has in it
		err = fmt.Errorf("%w: it is not replaced: want it removed, or --profile with another file", err)
	}
	return p, err
}

// mayWriteProfile returns why the profile cannot be written, before it is measured for minutes.
func mayWriteProfile(file string) error {
	path, err := profilePath(file)
	if err != nil {
		return err
	}
	if file == "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
	}
	probe, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("the profile cannot be written there: %w", err)
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// writeProfile replaces a file at once, so that nobody reads a part of it.
func writeProfile(file string, p *model.Profile) error {
	path, err := profilePath(file)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		return err
	}
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	err = os.WriteFile(fresh, text.Bytes(), 0o666)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		os.Remove(fresh)
	}
	return err
}

// An effort is how thoroughly a machine is measured.
type effort struct {
	octaves int           // between two sizes of a message
	repeats int           // of every row
	time    time.Duration // for the samples of a row
}

var (
	thoroughly = effort{octaves: 1, repeats: 5, time: 120 * time.Millisecond}
	quickly    = effort{octaves: 2, repeats: 3, time: 10 * time.Millisecond}
)

func effortOf(quick bool) effort {
	if quick {
		return quickly
	}
	return thoroughly
}

// largest is the longest message that is measured.
const largest = 4 << 20

// sizes returns the lengths of messages, in bytes.
func (e effort) sizes() (all []int) {
	for n := 8; n < largest; n <<= e.octaves {
		all = append(all, n)
	}
	return append(all, largest)
}

// A tuning is a measurement of the machine.
type tuning struct {
	effort
	progress io.Writer // nil unless progress is shown
}

// measure measures the machine and some transports, and puts what they take into a profile.
func (t *tuning) measure(ctx context.Context, transports []string, into *model.Profile) error {
	var err error
	t.showProgress("measuring copies, sums and the memory")
	defer t.showProgress("")
	if into.Node, err = tune.MeasureNode(ctx, t.repeats); err != nil {
		return err
	}
	into.Node.Origin.Command = ownVersion()
	for _, transport := range transports {
		link, err := t.link(ctx, transport, into.Node.Processors)
		if err != nil {
			return err
		}
		link.Origin.Command = ownVersion()
		into.SetLink(link)
	}
	return nil
}

// ownVersion is the version of this command, as a profile has it.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionOf(info)
	}
	return "unknown"
}

func (t *tuning) showProgress(format string, args ...any) { showProgress(t.progress, format, args...) }

// A linkJob measures some of the rows of a link.
type linkJob struct {
	into          *[]bench.Row
	op, algorithm string
	ranks         int
	sizes         []int
}

// pairJobs lists what is measured of a link between two ranks that have a processor each.
func pairJobs(rows *tune.Rows, sizes []int) []linkJob {
	return []linkJob{
		{&rows.OneWay, "bcast", "binomial", 2, sizes},
		{&rows.Exchange, "shift", "direct", 2, sizes},
		{&rows.Call, "allreduce:half", "", 2, shortest},
		{&rows.Rate, "rate", "", 2, shortest},
	}
}

// shortest are the sizes of what is measured with short messages alone.
var shortest = []int{8}

// config returns what is to be measured for a job, a number of times.
func (t *tuning) config(job linkJob, count int) benchConfig {
	return benchConfig{
		Collectives: []string{job.op}, Named: true, Algorithms: []string{job.algorithm}, Root: bench.RotatingRoot,
		Sizes: job.sizes, Count: count, Time: t.time, Verify: true,
	}
}

// link measures a transport.
func (t *tuning) link(ctx context.Context, transport string, processors int) (model.Link, error) {
	rows := tune.Rows{Before: tune.Observe()}
	jobs := append(pairJobs(&rows, t.sizes()),
		linkJob{&rows.Send, "send-overhead", "", 2, t.sizes()},
		linkJob{&rows.Receive, "receive-overhead", "", 2, t.sizes()},
		linkJob{&rows.Shared, "shift", "direct", max(2, processors*tune.PerProcessor), t.sizes()})
	rows.Turns = make([][]bench.Row, len(tune.TurnCalls))
	for i, c := range tune.TurnCalls {
		jobs = append(jobs, linkJob{&rows.Turns[i], c.Collective.String(), c.Algorithm, max(2, processors*tune.PerProcessor), shortest})
	}
	m := measurement{progress: t.progress}
	for _, job := range jobs {
		m.all += len(job.sizes) * t.repeats
	}
	for _, job := range jobs {
		m.config = t.config(job, t.repeats)
		before := len(m.Rows)
		if err := m.runJob(ctx, benchJob{ranks: job.ranks, transport: transport}); err != nil {
			return model.Link{}, fmt.Errorf("%s: %w", transport, err)
		}
		*job.into = m.Rows[before:]
	}
	return tune.Link(transport, processors, rows)
}
