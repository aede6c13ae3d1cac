package chorale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
)

// A Func is the function that each rank runs. Its context ends when the job does.
type Func = func(ctx context.Context, c *Comm) error

// Main joins the job that the process was started in, calls f, and exits. It is
// all that a program's main does. A process that chorale run has started is one
// rank of the job; under --transport inproc it runs f once per rank. A process
// started by hand is the only rank of its job.
//
// If f fails, panics or calls [runtime.Goexit], Main tells the other ranks, writes the
// error to standard error, and exits with status 1. In a job of chorale run, the launcher
// writes the error, once for all ranks that share it. An interrupt or a
// termination signal ends the context. If f then fails, the exit status is 128 plus
// the signal's number.
//
// When f has returned, Main leaves the job as [Comm.Close] does, which may wait for
// receivers. A signal ends that wait, with an error.
//
// Messages that f leaves unreceived are an error: the ranks did not make the same calls,
// or one has sent a tagged message that nobody wants.
func Main(f Func) {
	ctx := signalContext()
	exit := func(err error) {
		if err == nil {
			os.Exit(0)
		}
		fmt.Fprintln(os.Stderr, withStack(err))
		os.Exit(failureStatus(ctx))
	}
	env, err := launch.Environment()
	if err != nil {
		exit(err)
	}
	if env.Transport == "inproc" {
		exit(runRecorded(ctx, env.Size, stallPolicy{after: env.Stall, abort: env.StallAbort, quit: env.Launched}, f))
	}
	endpoint, env, err := launch.Join(ctx)
	if err != nil {
		exit(err)
	}
	c := newWorld(endpoint, env)
	runRank(ctx, c, f, func(err error) {
		sent := err != nil && env.ReportError != nil && env.ReportError(*failureOf(err, env.Rank))
		left := c.leave(ctx, err)
		if sent && left == nil {
			os.Exit(failureStatus(ctx)) // the launcher prints the error
		}
		if !sent {
			left = errors.Join(err, left)
		}
		exit(left)
	})
}

// signalContext returns a context that an interrupt or a termination ends, unless
// this process was started with that signal ignored. A second signal has its
// default effect: it ends the process.
func signalContext() context.Context {
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		stop(signalError{<-signals})
		signal.Stop(signals)
	}()
	return ctx
}

// signalError is the cause of a context that a signal has ended.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return "signal: " + e.String() }

// failureStatus returns the exit status of a rank that has failed.
func failureStatus(ctx context.Context) int {
	var by signalError
	if errors.As(context.Cause(ctx), &by) {
		if s, ok := by.Signal.(syscall.Signal); ok {
			return 128 + int(s)
		}
	}
	return 1
}

func configOf(env launch.JobEnv) CommConfig {
	return CommConfig{Transport: env.Transport, Processors: env.Processors, Hosts: env.Hosts}
}

// newWorld returns the communicator of all ranks of a job that launch has joined.
func newWorld(endpoint transport.Endpoint, env launch.JobEnv) *Comm {
	c := newRecordedComm(endpoint, configOf(env), env, environmentRecorder(), environmentTracer(env))
	if c.job.recorder == nil && c.job.tracer == nil {
		return c
	}
	stop := c.reportMetrics(env)
	c.job.handOn = sync.OnceFunc(func() {
		stop()
		if c.job.recorder != nil {
			c.handOnRecord(env)
		}
		if c.job.tracer != nil {
			c.handOnTrace(env)
		}
	})
	return c
}

// errGoexit is the error of a function that has returned in no other way.
var errGoexit = errors.New("left by runtime.Goexit")

// runRank runs a rank's function, and calls leave with its error in the end. If
// the function calls runtime.Goexit, leave runs while the goroutine ends.
func runRank(ctx context.Context, c *Comm, f Func, leave func(error)) {
	err := errGoexit
	defer func() { leave(err) }()
	err = callRecovered(ctx, c, func(ctx context.Context, c *Comm) error {
		if err := f(ctx, c); err != nil {
			return err
		}
		return c.job.family.each(func(e transport.Endpoint) error { return e.CheckUnreceived() })
	})
}

// leave ends this rank's part in the job because its function has returned err. It returns
// why messages are lost that the rank had sent, or nil. If err is nil, leaving may wait for
// receivers, but not for long when ctx has ended.
func (c *Comm) leave(ctx context.Context, err error) error {
	if err != nil {
		c.abort(err)
	} else {
		defer context.AfterFunc(ctx, func() {
			time.Sleep(leaveTime)
			c.abort(context.Cause(ctx))
		})()
	}
	return c.Close()
}

// abort ends this rank's part in the job, and tells its peers why.
func (c *Comm) abort(why error) {
	_ = c.job.family.each(func(e transport.Endpoint) error { // which returns no error here
		e.Abort(why)
		return nil
	})
}

// leaveTime is for receivers to take what they were sent, after a signal.
const leaveTime = 200 * time.Millisecond

// Join attaches the process to the job that it was started in, as one rank. A
// process that no launcher has started is the only rank of its job. The caller
// closes the communicator. A process joins once. Most programs use [Main] instead.
func Join(ctx context.Context) (*Comm, error) {
	if ctx == nil {
		return nil, fmt.Errorf("chorale: join: %w", errNoContext)
	}
	endpoint, env, err := launch.Join(ctx)
	if err != nil {
		return nil, err
	}
	return newWorld(endpoint, env), nil
}

// Run runs f on n ranks, each a goroutine of this process, and returns when all of
// them have returned. The first error or panic ends the job: contexts end, calls
// that wait for other ranks return, and Run returns that error, with its rank and with the
// others that have failed with the same one. Where ranks have called different things, it
// names the calls of all of them, with the lines of the program. A panic is a [PanicError].
//
// Ranks that wait for each other, in calls of two communicators or for tagged messages, are
// named on standard error after 30 s, or as long as the environment variable CHORALE_STALL
// says; they go on waiting. If CHORALE_TRACE names a file, Run leaves the timeline of the job
// there, in the place of an earlier one: see [Trace].
//
// Calls choose algorithms by the rules of the machine's profile, if chorale tune --select has
// made some: those of the user's own profile, or of the file that the environment variable
// CHORALE_MACHINE names, as they are at the first Run of the process; off means none. An
// error of a file that is named is one of Run.
//
// Messages that f leaves unreceived are an error: the ranks did not make the same calls,
// or one has sent a tagged message that nobody wants.
func Run(ctx context.Context, n int, f Func) error { return run(ctx, n, f, recording{}) }

// A recording is what a job, whose ranks are goroutines, is to record of its calls.
type recording struct {
	profile *Profile // nil if nobody asks for it
	trace   *Trace   // the same
	metrics bool     // [Comm.Metrics] has sums
	sums    string   // the file of these while the job runs; "" if there is none
}

func run(ctx context.Context, n int, f Func, r recording) error {
	if ctx == nil {
		return fmt.Errorf("chorale: run: %w", errNoContext)
	}
	if n < 1 {
		return fmt.Errorf("chorale: run on %d ranks: want at least 1", n)
	}
	stall, err := launch.Stall()
	if err != nil {
		return fmt.Errorf("chorale: run: %w", err)
	}
	r.metrics = metricsTarget() != ""
	return runTraced(ctx, n, stallPolicy{after: stall, deadlocks: true}, f, r)
}

// runJob is Run, which explains on standard error why ranks wait for long, as the policy
// says, and fills in the recording.
func runJob(ctx context.Context, n int, policy stallPolicy, f Func, r recording) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	job := inproc.New(n)
	members := newLocalRanks(job, n)
	if policy != (stallPolicy{}) {
		defer members.watch(policy)()
	}
	config := CommConfig{Transport: "inproc", Processors: processors.Parallel()}
	machine, err := machineOfEnvironment()
	if err != nil {
		return fmt.Errorf("chorale: run: %w", err)
	}
	var kept *keptPrograms
	if r == (recording{}) {
		kept = keptJobsOf(jobShape{n, config.Processors, machine})
	}
	recorders, tracers := r.newRecorders(n), r.newTracers(n)
	if r.sums != "" {
		defer writeMetrics(r.sums, recorders)()
	}
	compiled := kept.take(n)
	var (
		ranks sync.WaitGroup
		once  sync.Once
		first = -1 // the rank that failed first
		errs  = make([]error, n)
	)
	for rank := range n {
		run := func() {
			growStack(rank)
			c := newRecordedComm(job.Endpoint(rank), config, launch.JobEnv{}, recorders[rank], tracers[rank])
			c.job.ranks, c.job.machine = members, machine
			c.adopt(compiled[rank])
			defer func() {
				compiled[rank] = c.surrender()
				c.Close()
				members.returned[rank].Store(true)
			}()
			runRank(ctx, c, f, func(err error) {
				if errs[rank] = err; err == nil {
					return
				}
				once.Do(func() {
					first = rank
					job.Abort(&transport.PeerError{Peer: rank, Err: transport.ErrAborted, Reason: err.Error()})
					cancel()
				})
			})
		}
		ranks.Go(func() { asRank(job.Endpoint(rank), run) })
	}
	ranks.Wait()
	r.profile.fill(recorders)
	r.trace.fill(tracers)
	if first < 0 {
		rank, err := job.CheckUnreceived()
		if err == nil {
			kept.keep(compiled)
			return nil
		}
		first, errs[rank] = rank, err
	}
	return newRanksError(first, errs)
}

// callRecovered calls f, and turns a panic into an error.
func callRecovered(ctx context.Context, c *Comm, f Func) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = newPanicError("", r)
		}
	}()
	return f(ctx, c)
}
