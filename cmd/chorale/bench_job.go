package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/launch"
)

// runJob measures one number of ranks.
func (m *measurement) runJob(ctx context.Context, job benchJob) error {
	if m.transport == "inproc" {
		return chorale.Run(ctx, job.ranks, func(ctx context.Context, c *chorale.Comm) error {
			return measure(ctx, c, "inproc", &m.plan, func(row bench.Row) error {
				m.take(row)
				return nil
			})
		})
	}
	return m.runProcesses(ctx, job.ranks)
}

// measure is what each rank does. Rank 0 emits the rows.
func measure(ctx context.Context, c *chorale.Comm, transport string, plan *benchPlan, emit func(bench.Row) error) error {
	cells, _, err := plan.cells(c.Size())
	if err != nil {
		return err
	}
	b := bench.Bench{Comm: c, Transport: transport, Time: plan.Time, Verify: plan.Verify}
	b.Reserve(cells)
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

// runProcesses starts this command again as the ranks, and takes the rows that
// rank 0 prints.
func (m *measurement) runProcesses(ctx context.Context, ranks int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	plan, err := json.Marshal(m.plan)
	if err != nil {
		return err
	}
	rows, printed := io.Pipe()
	read := make(chan error)
	go func() {
		for d := json.NewDecoder(rows); ; {
			var row bench.Row
			if err := d.Decode(&row); err != nil {
				rows.CloseWithError(err) // so that nobody waits to print
				read <- err
				return
			}
			m.take(row)
		}
	}()
	err = launch.Run(ctx, launch.Config{
		Size: ranks, Transport: m.transport,
		Program: self, Args: []string{"bench-rank", string(plan)},
		Stdout: printed, Stderr: whileAlive{ctx, os.Stderr}, Unlabeled: true,
		Grace: time.Second, Guard: []string{"guard"},
	})
	printed.Close()
	if bad := <-read; err == nil && !errors.Is(bad, io.EOF) {
		err = fmt.Errorf("reading what rank 0 measured: %w", bad)
	}
	return err
}

// whileAlive passes on what is written until the context ends: ranks that are
// told to end have nothing to say that matters.
type whileAlive struct {
	ctx context.Context
	w   io.Writer
}

func (a whileAlive) Write(p []byte) (int, error) {
	if a.ctx.Err() != nil {
		return len(p), nil
	}
	return a.w.Write(p)
}

// newBenchRank is the ranks that bench starts.
func newBenchRank() *cobra.Command {
	return &cobra.Command{
		Use:    "bench-rank PLAN",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var plan benchPlan
			if err := json.Unmarshal([]byte(args[0]), &plan); err != nil {
				return callErrorf("a plan that only chorale bench can write: %w", err)
			}
			place, err := launch.Environment()
			if err != nil {
				return callError{err}
			}
			chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
				return measure(ctx, c, place.Transport, &plan, func(row bench.Row) error {
					return printJSON(os.Stdout, row)
				})
			})
			return nil
		},
	}
}
