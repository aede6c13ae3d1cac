// Package launch starts the ranks of a job as processes of this machine, and
// joins the job in which a process was started.
//
// [Run] is the launcher's side: it starts the ranks, forwards what they print,
// and ends the job as a whole. [Join] is the rank's side. Between them lie the
// environment (see [Environment]) and the control protocol (see protocol.go).
//
// A job leaves nothing behind, however it ends. Every rank has a process group
// of its own, and a guard process outlives a launcher that is killed: it ends
// the groups and removes the files. On Linux it also finds processes that have
// left their group, by the environment that they inherited, and a rank whose
// launcher dies is killed by the kernel, should the guard be dead as well. Memory
// that ranks share has no name, and ends with the last process that has it. On
// Windows there are no groups: a rank ends with its launcher, but what the rank
// itself has started may not.
package launch

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Config says what to run, and how. The zero value of a field that is not
// marked as required is a sensible choice.
type Config struct {
	// Size is the number of ranks, at least 1. Required.
	Size int
	// Program is an executable, looked up as a shell does, or the directory of
	// a Go package, which is built first. A directory is told from the name of
	// an executable by a path separator in it, or by being "." or "..".
	// Required.
	Program string
	// Args are the program's arguments, without its name.
	Args []string
	// Transport is how the ranks exchange messages: one of [Transports], or ""
	// for auto.
	Transport string
	// Env is the environment that the ranks get in addition to their place in
	// the job. Nil means this process's own.
	Env []string
	// Dir is the directory in which the ranks run. "" means this process's own.
	Dir string

	// Stdin is read for rank 0; the other ranks have none. Nil means that rank
	// 0 has none either. A read of Stdin that blocks may outlast Run.
	Stdin io.Reader
	// Stdout and Stderr take what the ranks print, each line in one Write.
	// Nil discards it. A write that blocks makes the ranks wait.
	Stdout, Stderr io.Writer
	// Unlabelled leaves out the rank that otherwise stands before each line.
	Unlabelled bool
	// Verbose reports on Stderr what is started and what has ended.
	Verbose bool

	// Signals are passed on to the ranks. An interrupt or a termination ends
	// the job: what still runs after Grace is killed, or at once when a second
	// one comes. See [Notify].
	Signals <-chan os.Signal
	// Grace is the time from asking the ranks to end to killing them; 0 means
	// 5 s.
	Grace time.Duration

	// Guard are the arguments with which this process's own executable calls
	// [Guard]. Nil means that there is no guard: whatever the kernel does not
	// end by itself survives a launcher that is killed.
	Guard []string
}

// Transports are the names of the ways in which ranks exchange messages: inproc
// runs all ranks as goroutines of a single process; shm is for processes of one
// host, which share memory; tcp is for processes anywhere; and auto is for
// processes, shm between those of one host where that can be, and tcp otherwise.
var Transports = []string{"auto", "inproc", "shm", "tcp"}

// maxRanks is more processes than a machine can run, and few enough to say so
// before it has tried.
const maxRanks = 1 << 16

// Run starts the job and returns when it is over: every rank has ended, and
// everything that they printed has been passed on. When a rank fails, the
// others are ended too, and Run returns an [*EndError] that names the rank that
// failed first. See [Status] for the exit status that an error stands for.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.complete()
	if err != nil {
		return err
	}
	program, isPackage, err := find(cfg.Program)
	if err != nil {
		return err
	}
	// The kernel ends a child together with the thread that started it. This
	// goroutine's thread lives until Run returns.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	j, err := newJob(cfg)
	if err != nil {
		return err
	}
	defer j.close()
	if isPackage {
		if program, err = j.build(ctx, program); err != nil {
			return err
		}
	}
	return j.run(ctx, program)
}

// complete returns the configuration with its defaults filled in, or what is
// wrong with it.
func (c Config) complete() (Config, error) {
	switch {
	case c.Size < 1:
		return c, usagef("%d ranks: want at least 1", c.Size)
	case c.Size > maxRanks && c.Transport != "inproc":
		return c, usagef("%d ranks: want at most %d processes", c.Size, maxRanks)
	case c.Program == "":
		return c, usagef("no program to run: want an executable or the directory of a Go package")
	case c.Grace < 0:
		return c, usagef("a grace of %v: want 0 or more", c.Grace)
	}
	switch c.Transport {
	case "":
		c.Transport = "auto"
	default:
		if !slices.Contains(Transports, c.Transport) {
			return c, usagef("no transport %q: want one of %s", c.Transport, strings.Join(Transports, ", "))
		}
	}
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	c.Env = withoutPlace(c.Env)
	if c.Stdout == nil {
		c.Stdout = io.Discard
	}
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	return c, nil
}

// Notify relays to c the signals that a launcher passes on to its ranks, and
// makes writing to a closed pipe an error instead of the end of this process.
// The signal that says that the terminal is gone is left alone where nohup has
// switched it off.
func Notify(c chan<- os.Signal) {
	for _, sig := range forwarded {
		if sig != hangup || !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}

// newToken returns the secret that tells the processes of a job from others.
func newToken() (token [16]byte, err error) {
	if _, err = rand.Read(token[:]); err != nil {
		err = fmt.Errorf("making the job's token: %w", err)
	}
	return token, err
}
