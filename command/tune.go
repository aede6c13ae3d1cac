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
		Short: "Measure this machine, for predictions and the choice of algorithms",
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
  chorale bench allreduce -n 2 --transport shm --predict`,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&transports, "transport", "the transports to measure, one or more of "+oneOfText(tunedTransports))
	flags.BoolVar(&quick, "quick", false, "fewer sizes and shorter samples")
	addProfile(cmd, &file)
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
		t := tuning{effort: thoroughly, progress: terminal(os.Stderr)}
		if quick {
			t.effort = quickly
		}
		missing := transports.values
		if s != nil {
			missing = unmeasured(profile, missing)
			s.quick, s.progress = quick, t.progress
		}
		if len(missing) > 0 {
			err = t.measure(ctx, missing, profile)
		}
		for i := 0; s != nil && err == nil && i < len(transports.values); i++ {
			err = s.run(ctx, profile, transports.values[i])
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
	p, err := readProfile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &model.Profile{Version: model.ProfileVersion}, nil
	}
	return p, err
}

// writeProfile replaces a file at once, so that nobody reads a part of it.
func writeProfile(file string, p *model.Profile) error {
	path, err := profilePath(file)
	if err != nil {
		return err
	}
	if file == "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		return err
	}
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(fresh, text.Bytes(), 0o666); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		os.Remove(fresh)
		return err
	}
	return nil
}

// An effort is how thoroughly a machine is measured.
type effort struct {
	octaves int           // between two sizes of a message
	repeats int           // of every row
	time    time.Duration // for the samples of a row
}

var (
	thoroughly = effort{octaves: 1, repeats: 5, time: 120 * time.Millisecond}
	quickly    = effort{octaves: 2, repeats: 3, time: 30 * time.Millisecond}
)

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
	by := commandVersion()
	var err error
	m := measurement{progress: t.progress}
	m.showProgress("measuring copies, sums and the memory")
	defer m.showProgress("")
	if into.Node, err = tune.MeasureNode(ctx, t.repeats); err != nil {
		return err
	}
	into.Node.Origin.Command = by
	for _, transport := range transports {
		link, err := t.link(ctx, transport, into.Node.Processors)
		if err != nil {
			return err
		}
		link.Origin.Command = by
		into.SetLink(link)
	}
	return nil
}

// commandVersion returns the version of chorale that measures.
func commandVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionOf(info)
	}
	return "unknown"
}

// unmeasured returns the transports of which a profile has nothing.
func unmeasured(p *model.Profile, transports []string) (missing []string) {
	for _, t := range transports {
		if _, err := p.Link(t); err != nil || p.Node.Processors == 0 {
			missing = append(missing, t)
		}
	}
	return missing
}

// link measures a transport.
func (t *tuning) link(ctx context.Context, transport string, processors int) (model.Link, error) {
	rows := tune.Rows{Before: tune.Observe()}
	short, pieces := []int{8}, []int{tune.PieceBytes, 4 * tune.PieceBytes, 16 * tune.PieceBytes, 64 * tune.PieceBytes}
	jobs := []struct {
		into          *[]bench.Row
		op, algorithm string
		ranks         int
		sizes         []int
	}{
		{&rows.OneWay, "bcast", "binomial", 2, t.sizes()},
		{&rows.Exchange, "shift", "direct", 2, t.sizes()},
		{&rows.Pipeline, "bcast", fmt.Sprintf("chain,segment=%d", tune.PieceBytes), 2, pieces},
		{&rows.Call, "allreduce:half", "", 2, short},
		{&rows.Rate, "rate", "", 2, short},
		{&rows.Alone, "pingpong", "", 2, short},
		{&rows.Together, "pingpong", "", max(2, processors*tune.PerProcessor), short},
	}
	m := measurement{progress: t.progress}
	for _, job := range jobs {
		m.all += len(job.sizes) * t.repeats
	}
	for _, job := range jobs {
		m.config = benchConfig{
			Collectives: []string{job.op}, Named: true, Algorithms: []string{job.algorithm}, Root: bench.RotatingRoot,
			Sizes: job.sizes, Count: t.repeats, Time: t.time, Verify: true,
		}
		before := len(m.Rows)
		if err := m.runJob(ctx, benchJob{ranks: job.ranks, transport: transport}); err != nil {
			return model.Link{}, fmt.Errorf("%s: %w", transport, err)
		}
		*job.into = m.Rows[before:]
	}
	return tune.Link(transport, processors, rows)
}
