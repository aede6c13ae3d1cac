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
	)
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Measure this machine, for predictions",
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

--format json prints the profile.`,
		Example: `  chorale tune
  chorale tune --quick --transport inproc --profile quick.json
  chorale sim allreduce -n 2 --profile quick.json --transport inproc
  chorale bench allreduce -n 2 --transport shm --predict`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&transports, "transport", "the transports to measure, one or more of "+oneOfText(tunedTransports))
	flags.BoolVar(&quick, "quick", false, "fewer sizes and shorter samples")
	addProfile(cmd, &file)
	format := addFormat(cmd, "table", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
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
		if err := t.measure(ctx, transports.values, profile); err != nil {
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
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("%w: want --profile FILE", err)
	}
	return filepath.Join(dir, "chorale", "profile.json"), nil
}

// readProfile reads a profile, by the value of its flag.
func readProfile(file string) (*model.Profile, error) {
	path, err := profilePath(file)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no profile %s: chorale tune makes one: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	p, err := model.ParseProfile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
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
	by := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		by = versionOf(info)
	}
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

// link measures a transport.
func (t *tuning) link(ctx context.Context, transport string, processors int) (model.Link, error) {
	rows := tune.Rows{Before: tune.Observe()}
	short, pair := []int{8}, 2
	jobs := []struct {
		into          *[]bench.Row
		op, algorithm string
		ranks         int
		sizes         []int
	}{
		{&rows.OneWay, "bcast", "binomial", pair, t.sizes()},
		{&rows.Exchange, "shift", "direct", pair, t.sizes()},
		{&rows.Send, "send-overhead", "", pair, t.sizes()},
		{&rows.Receive, "receive-overhead", "", pair, t.sizes()},
		{&rows.Shared, "shift", "direct", max(pair, processors*tune.PerProcessor), t.sizes()},
		{&rows.Call, "allreduce:half", "", pair, short},
		{&rows.Rate, "rate", "", pair, short},
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
