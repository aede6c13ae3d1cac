package launch

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/launch/internal/guard"
	"github.com/chorale-go/chorale/launch/internal/remote"
)

// A Config says what to run, and how. The zero value of a field that is not
// marked as required is a sensible choice. Run does not modify it.
type Config struct {
	// Size is the number of ranks, at least 1. Required, unless Remote is set: then 0
	// means as many as the hosts have slots.
	Size int
	// Program is an executable, looked up as a shell does, or the directory of
	// a Go package, which is built first. It is taken for a directory only if it
	// contains a path separator, or is "." or "..". Required.
	Program string
	// Args are the program's arguments, without its name.
	Args []string
	// Transport is how the ranks exchange messages: one of [Transports], or ""
	// for auto.
	Transport string
	// Env is the environment of the ranks; the variables that describe the job
	// are added to it. Nil means this process's own. Its CHORALE_MACHINE names the profile by
	// whose selections all ranks choose algorithms, on whichever host they run: "off" means
	// none, and "" the user's own profile.
	Env []string
	// Dir is the directory in which the ranks run. "" means this process's own; on a
	// host that has no such directory, the one in which the login shell starts.
	Dir string
	// Remote says on which hosts the ranks run; nil means this one.
	Remote *Remote

	// Encrypt has the data connections that leave a host use TLS. The control connections
	// that leave it always do.
	Encrypt bool

	// Stdin is the standard input of rank 0; the other ranks have none. Nil means
	// that rank 0 has none either. A read of Stdin that blocks may outlast Run.
	Stdin io.Reader
	// Stdout and Stderr receive the output of the ranks. Nil discards it. A write that
	// blocks makes the ranks wait.
	//
	// Each line is one Write, up to a length of 1 MiB. A longer line is written as it
	// comes, and the lines of other ranks wait for its end: until it has not grown for
	// 1 s, 2 s at most. Then it is cut: its first part ends in "[...]" and a newline,
	// and its rest follows later, behind the rank and "[...]". The other lines do not wait
	// for the rest.
	Stdout, Stderr io.Writer
	// Unlabeled omits the rank that otherwise precedes each line. The bytes that a rank
	// prints are then forwarded unchanged: no mark where a line is cut, and no newline
	// after a last line that has none. The bytes of a single rank are forwarded as they
	// come, without waiting for the end of a line.
	Unlabeled bool
	// Verbose reports on Stderr every process that starts or ends.
	Verbose bool

	// Signals are forwarded to the ranks. An interrupt or a termination ends the
	// job: ranks that still run after Grace are killed, or at once if a second
	// signal comes. See [Notify].
	Signals <-chan os.Signal
	// Grace is the time from asking the ranks to end to killing them; 0 means
	// 5 s.
	Grace time.Duration

	// Stall is how long a rank may wait for others, in one step of a call or for one
	// message, before Run explains on Stderr what all ranks do, and which of them is the
	// likely cause. The ranks go on waiting. A wait is explained once. 0 means 30 s; a
	// negative one, that nothing is explained. A SIGQUIT among Signals has the same
	// printed at once, whatever Stall is, and is not forwarded.
	Stall time.Duration
	// StallAbort has Run end the job, with a [*StallError], when ranks have waited for as
	// long as Stall.
	StallAbort bool

	// Continue lets the others go on when a rank is lost: when its process is killed or ends
	// with another status than 0, or when its host is lost. Every endpoint is told of it, a
	// line on Stderr says so, and Run returns nil if some rank ends with success. Without it,
	// a lost rank ends the job. Not with inproc, whose ranks are one process.
	Continue bool
	// Respawn is how many lost ranks in all are started anew, each on its host if that is
	// there still. More than 0 means Continue. The new process has the rank of the lost one; its Join
	// waits until other ranks call [Regroup]. If the job ends before, the process ends in its
	// Join, with status 0.
	Respawn int

	// Profile is called at the end of the job, also of one that has failed, with what each
	// rank has recorded that was told to by CHORALE_PROFILE=- in Env. Ranks that were killed
	// and those of inproc have sent nothing. Nil drops it.
	Profile func(record []byte)

	// Metrics is called with the sums of a rank's calls each second while the job runs, and
	// when the rank leaves, if it was told to by CHORALE_METRICS=- in Env. It must not block.
	// Ranks of inproc send nothing. Nil drops it.
	Metrics func(rank int, totals []byte)

	// Trace is the same for the timeline that a rank has recorded which was told to by
	// CHORALE_TRACE=- in Env.
	Trace func(record []byte)

	// Guard are the arguments with which this process's own executable calls
	// [Guard]. Nil means that there is no guard: if the launcher is killed,
	// processes and files that the kernel does not remove by itself remain.
	Guard []string

	answer control.JoinedMessage // what ranks are told that join, but for their hosts
}

// Transports are the names of the transports: inproc runs all ranks as goroutines
// of a single process; shm connects processes of one host through shared memory;
// tcp connects processes on any hosts; auto uses shm between the processes of one
// host if the system can share memory, and tcp otherwise.
var Transports = []string{"auto", "inproc", "shm", "tcp"}

// maxRanks is more processes than a machine can run: a larger number is refused
// before any process is started.
const maxRanks = remote.MaxRanks

// Run starts the job and returns when every rank has ended and all output has been
// forwarded. When a rank fails, the others are ended too, unless Continue is set.
//
// The error is an [*EndError] that names the root cause if a rank failed, a
// [*SignalError] after an interrupt or a termination, the context's cause if ctx
// ended, and [ErrBuild] if the package does not build. [Status] maps it to an exit
// status. Run may be called by several goroutines at once.
//
// When ctx ends, Run waits for blocked output no longer than 1 s after the grace
// period. What is not written by then is dropped.
//
// When a terminal stops this process, by SIGTSTP, Run first stops the ranks, and it
// continues them when this process is continued.
func Run(ctx context.Context, cfg Config) error {
	if ctx == nil {
		return usageError{errNoContext}
	}
	cfg, err := cfg.complete()
	if err != nil {
		return err
	}
	program, isPackage, err := cfg.find()
	if err != nil {
		return err
	}
	// The kernel kills a child when the thread that started it ends, so this
	// goroutine keeps its thread until Run returns.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	j, err := newJob(cfg, proof.NewSecret())
	if err != nil {
		return err
	}
	defer j.close()
	if isPackage {
		if program, err = j.build(ctx, program); err != nil {
			return err
		}
		j.built = true
	}
	if cfg.Remote != nil {
		return j.runRemote(ctx, program)
	}
	return j.run(ctx, program)
}

// complete returns the configuration with its defaults filled in, or an error of
// the caller.
func (c Config) complete() (Config, error) {
	if c.Env == nil {
		c.Env = os.Environ()
	}
	if c.Remote != nil {
		size, err := c.Remote.complete(c.Size, c.Transport, c.Env)
		if err != nil {
			return c, err
		}
		c.Size = size
	}
	switch {
	case c.Size < 1:
		return c, usagef("%d ranks: want at least 1", c.Size)
	case c.Size > maxRanks && c.Transport != "inproc":
		return c, usagef("%d ranks: want at most %d processes", c.Size, maxRanks)
	case c.Program == "":
		return c, usagef("no program to run: want an executable or the directory of a Go package")
	case c.Grace < 0:
		return c, usagef("a grace of %v: want 0 or more", c.Grace)
	case c.Respawn < 0:
		return c, usagef("%d ranks to start anew: want 0 or more", c.Respawn)
	}
	c.Continue = c.Continue || c.Respawn > 0
	if c.Continue && c.Transport == "inproc" {
		return c, usagef("transport inproc is one process, which loses all of its ranks: want auto, shm or tcp, whose jobs go on without a lost rank")
	}
	switch c.Transport {
	case "":
		c.Transport = "auto"
	case "mpi":
		return c, errMPI(&c)
	default:
		if !slices.Contains(Transports, c.Transport) {
			return c, errTransport(c.Transport)
		}
	}
	if c.Grace == 0 {
		c.Grace = control.EndTimeout
	}
	if c.Stall == 0 {
		c.Stall = DefaultStall
	}
	c.Env = withoutJobEnv(c.Env)
	if err := c.findSelections(); err != nil {
		return c, err
	}
	if c.Encrypt {
		c.Env = append(c.Env, envEncrypt+"=1")
	}
	if c.Stdout == nil {
		c.Stdout = io.Discard
	}
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	return c, nil
}

func errTransport(name string) error {
	return usagef("no transport %q: want one of %s", name, strings.Join(Transports, ", "))
}

// Guard is the main loop of a guard process. It reads the launcher's messages
// from r, normally standard input. When r ends, for whatever reason, it removes
// the processes and files that the job has left, and returns. [Run] starts a
// guard if [Config.Guard] is set.
func Guard(r io.Reader) {
	signal.Ignore(forwarded...) // the launcher handles them, and ends the job in good order
	guard.Run(r)
}

// Notify relays to c the signals that a launcher forwards to its ranks. From then
// on, a write to a closed pipe is an error and does not end this process. A signal
// that this process was started to ignore is not relayed: a hang-up under nohup, or
// an interrupt in the background of a script. c should be buffered.
func Notify(c chan<- os.Signal) {
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}
