// Package chorale is collective communication: broadcast, reduction, scatter,
// gather, and their relatives, among goroutines or processes.
//
// A program's main is [Main], and the ranks are processes that the command
// chorale run starts; or it calls [Run], and the ranks are goroutines:
//
//	err := chorale.Run(ctx, 4, func(ctx context.Context, c *chorale.Comm) error {
//		sum := []int{c.Rank()}
//		return chorale.AllReduce(ctx, c, sum, sum, chorale.Sum)
//	})
//
// The collectives are generic functions. They take any element type of fixed
// size without pointers; the destination comes before the source, as in copy.
// What each rank does is a schedule of package sched, made by an algorithm of
// package algo; [WithAlgorithm] chooses one.
package chorale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
)

// A Func is what one rank does. Its context ends when the job does.
type Func = func(ctx context.Context, c *Comm) error

// Main is a program's main: it joins the job that the process was started in,
// calls f, and exits. Started by chorale run, the process is one rank of the
// job, or, under --transport inproc, runs f once per rank. Started by hand, it
// is the only rank.
//
// When f fails, Main says so on standard error and exits with status 1. An
// interrupt or a termination signal ends the context; a process that ends for
// it exits with 128 plus the signal's number.
func Main(f Func) {
	os.Exit(run(f))
}

func run(f Func) (status int) {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		stop(signalError{<-signals})
		// A second signal finds the process as it was born, and ends it.
		signal.Stop(signals)
	}()
	err := join(ctx, f)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	var by signalError
	if errors.As(context.Cause(ctx), &by) {
		if s, ok := by.Signal.(syscall.Signal); ok {
			return 128 + int(s)
		}
	}
	return 1
}

// signalError is the cause of a context that a signal has ended.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return "signal: " + e.String() }

// join runs f in the job that the process was started in.
func join(ctx context.Context, f Func) error {
	place, err := launch.Environment()
	if err != nil {
		return err
	}
	if place.Transport == "inproc" {
		return Run(ctx, place.Size, f)
	}
	c, err := Join(ctx)
	if err != nil {
		return err
	}
	err = perform(ctx, c, f)
	if err != nil {
		c.abort(err)
	}
	return errors.Join(err, c.Close())
}

// abort ends this rank's part in the job, and tells its peers why: that is what
// an Exchange does whose context has ended.
func (c *Comm) abort(why error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	c.job.endpoint.Exchange(ctx, transport.Step{}) // its error is why
}

// perform calls f. A rank whose f returns has received all that was sent to it,
// or else the ranks did not call the same.
func perform(ctx context.Context, c *Comm, f Func) error {
	if err := protect(ctx, c, f); err != nil {
		return err
	}
	return c.job.endpoint.CheckUnreceived()
}

// Join attaches the process to the job that it was started in, as one rank; a
// process that no launcher has started is the only rank of its job. The caller
// closes the communicator. Most programs use [Main] instead.
func Join(ctx context.Context) (*Comm, error) {
	place, err := launch.Environment()
	if err != nil {
		return nil, err
	}
	endpoint, _, err := launch.Join(ctx)
	if err != nil {
		return nil, err
	}
	return newComm(endpoint, place.Transport, place.Processors), nil
}

// Run runs f on n ranks, each a goroutine of this process, and returns when all
// have returned. The first error ends the job: contexts end, calls that wait
// for others return, and Run returns that error with its rank.
func Run(ctx context.Context, n int, f Func) error {
	if n < 1 {
		return fmt.Errorf("chorale: run on %d ranks: want at least 1", n)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	job, processors := inproc.New(n), runtime.GOMAXPROCS(0)
	var (
		ranks sync.WaitGroup
		once  sync.Once
		first error
	)
	for rank := range n {
		ranks.Go(func() {
			c := newComm(job.Endpoint(rank), "inproc", processors)
			defer c.Close()
			err := errors.New("left by runtime.Goexit") // unless perform returns
			defer func() {
				if err == nil {
					return
				}
				once.Do(func() {
					first = fmt.Errorf("rank %d: %w", rank, err)
					job.Abort(&transport.PeerError{Peer: rank, Err: transport.ErrAborted, Reason: err.Error()})
					cancel()
				})
			}()
			err = perform(ctx, c, f)
		})
	}
	ranks.Wait()
	return first
}

// protect calls f, and turns a panic into an error.
func protect(ctx context.Context, c *Comm, f Func) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f(ctx, c)
}
