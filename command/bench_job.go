package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/launch"
)

// runJob measures one number of ranks.
func (m *measurement) runJob(ctx context.Context, job benchJob) error {
	if job.transport == "inproc" {
		return chorale.Run(ctx, job.ranks, func(ctx context.Context, c *chorale.Comm) error {
			return measure(ctx, c, "inproc", &m.config, func(row bench.Row) error {
				m.add(row)
				return nil
			})
		})
	}
	return m.runProcesses(ctx, job.ranks, job.transport)
}

// measure runs on each rank. Rank 0 emits the rows.
func measure(ctx context.Context, c *chorale.Comm, transport string, config *benchConfig, emit func(bench.Row) error) error {
	cells, _, err := config.cells(c.Size())
	if err != nil {
		return err
	}
	b := bench.Bench{Comm: c, Transport: transport, Time: config.Time, Verify: config.Verify, Alloc: config.Alloc}
	if err := b.Reserve(cells); err != nil {
		return err
	}
	for _, cell := range cells {
		row, err := b.Measure(ctx, cell)
		if err == nil && c.Rank() == 0 {
			err = emit(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runProcesses starts this command again as the ranks, and reads the rows that rank 0
// prints.
func (m *measurement) runProcesses(ctx context.Context, ranks int, transport string) error {
	if transport == "mpi" {
		command, err := rankCommand("bench-rank", m.config)
		if err != nil {
			return err
		}
		return readMeasured(m.add, func(printed io.Writer) error {
			return runMPI(ctx, slices.Concat(m.mpiexec, []string{"-n", strconv.Itoa(ranks)}, command), printed, untilDone{ctx, os.Stderr})
		})
	}
	return runMeasured(ctx, launch.Config{Size: ranks, Transport: transport, Remote: m.remote}, "bench-rank", m.config, m.add)
}

// rankCommand returns this command as a rank that measures: a verb of newRankVerb, and what the
// ranks have to know.
func rankCommand(verb string, config any) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	return []string{self, verb, string(text)}, err
}

// newRankVerb is a hidden verb of ranks that another verb starts, and to which it has written
// what they have to know.
func newRankVerb[T any](name, startedBy string, run func(ctx context.Context, c *chorale.Comm, config *T) error) *cobra.Command {
	return &cobra.Command{
		Use:    name + " CONFIG",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			config := new(T)
			if err := json.Unmarshal([]byte(args[0]), config); err != nil {
				return callErrorf("want a configuration that chorale %s has written: %w", startedBy, err)
			}
			chorale.Main(func(ctx context.Context, c *chorale.Comm) error { return run(ctx, c, config) })
			return nil
		},
	}
}

// runMeasured starts this command again as the ranks of a job, and calls add with every value
// that rank 0 prints.
func runMeasured[T any](ctx context.Context, cfg launch.Config, verb string, config any, add func(T)) error {
	command, err := rankCommand(verb, config)
	if err != nil {
		return err
	}
	cfg.Program, cfg.Args, cfg.Stderr = command[0], command[1:], untilDone{ctx, os.Stderr}
	cfg.Unlabeled, cfg.Grace, cfg.Guard = true, time.Second, []string{"guard"}
	return readMeasured(add, func(printed io.Writer) error {
		cfg.Stdout = printed
		return launch.Run(ctx, cfg)
	})
}

// readMeasured calls add with every value that run writes as JSON.
func readMeasured[T any](add func(T), run func(printed io.Writer) error) error {
	values, printed := io.Pipe()
	read := make(chan error)
	go func() {
		for d := json.NewDecoder(values); ; {
			var value T
			if err := d.Decode(&value); err != nil {
				values.CloseWithError(err) // so that a write does not block
				read <- err
				return
			}
			add(value)
		}
	}()
	err := run(printed)
	printed.Close()
	if bad := <-read; err == nil && !errors.Is(bad, io.EOF) {
		err = fmt.Errorf("reading what rank 0 measured: %w", bad)
	}
	return err
}

// runMPI runs ranks that exchange their messages over an MPI, by the launcher of that MPI.
// The launcher is asked to end when ctx ends.
func runMPI(ctx context.Context, command []string, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "CHORALE_TRANSPORT=mpi")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	return nil
}

// untilDone forwards writes until the context ends: errors of ranks that are being
// ended do not matter.
type untilDone struct {
	ctx context.Context
	w   io.Writer
}

func (u untilDone) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return len(p), nil
	}
	return u.w.Write(p)
}

// newBenchRank is the verb of the ranks that bench starts.
func newBenchRank() *cobra.Command {
	return newRankVerb("bench-rank", "bench", func(ctx context.Context, c *chorale.Comm, config *benchConfig) error {
		env, err := launch.Environment()
		if err != nil {
			return err
		}
		transport := env.Transport
		if env.Mixed && config.Hosts > 1 {
			transport = "auto" // shared memory within a host, TCP between hosts
		}
		return measure(ctx, c, transport, config, func(row bench.Row) error { return printJSON(os.Stdout, row) })
	})
}
