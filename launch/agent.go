package launch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/launch/internal/remote"
)

const (
	// aliveInterval is how often a launcher and its agents tell each other that they are
	// there.
	aliveInterval = time.Second

	// aliveTimeout is how long an agent hears nothing from its launcher before it takes
	// the connection for broken.
	aliveTimeout = 60 * time.Second

	// silentIntervals is for how many intervals a launcher hears nothing from an agent before
	// it takes the host for lost. Where ranks of the host have joined, their connections tell
	// earlier, and whatever the agent's processor does meanwhile.
	silentIntervals = 10

	// lastWordTimeout bounds how long an agent that ends tries to say why.
	lastWordTimeout = 2 * time.Second

	// maxPendingSignals bounds the signals for a rank that has not been started.
	maxPendingSignals = 16
)

// Agent is the main loop of an agent, which starts and watches the ranks of its host for
// a launcher on another one. R and w are the connection to the launcher, normally standard
// input and standard output; see [Remote]. Agent returns when r ends, for whatever reason,
// or when the launcher is silent for long. It leaves no rank and no file behind; guard is
// [Config.Guard], in case it is killed.
//
// The caller ends the process when Agent returns: a read of r may still be waiting.
func Agent(r io.Reader, w io.Writer, guard []string) error {
	// The kernel kills a child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signal.Notify(make(chan os.Signal, 1), brokenPipes...) // else a write to w could end this process

	dir, copied := os.LookupEnv(remote.EnvAgentDir)
	os.Unsetenv(remote.EnvAgentDir)
	greeting, err := json.Marshal(remote.Hello{Version: remote.AgentVersion, OS: runtime.GOOS, Arch: runtime.GOARCH, Processors: processors.Available()})
	if err != nil {
		return err
	}
	// What the login shell has printed may lack a newline.
	if _, err := fmt.Fprintf(w, "\n%s%s\n", remote.AgentMagic, greeting); err != nil {
		return err
	}
	in := bufio.NewReaderSize(r, remote.MaxFrame)
	line, err := remote.ReadLine(in, remote.MaxOrders)
	if err != nil {
		return fmt.Errorf("reading the orders of the launcher: %w", err)
	}
	frames := remote.NewFrameWriter(w, func(io.Writer) error { return nil })
	a, err := newAgent(frames, line, guard)
	if err == nil {
		if copied {
			a.job.guard.Remove(filepath.Clean(dir))
		}
		defer a.job.close()
		stop := make(chan struct{})
		defer close(stop)
		go a.sayAlive(stop)
		err = a.run(in)
	}
	if err != nil && !errors.Is(err, errGone) {
		frames.Send(remote.FrameFailed, 0, []byte(err.Error())[:min(len(err.Error()), remote.MaxFrame)])
	}
	frames.Close()
	frames.Flush(lastWordTimeout)
	return err
}

// errGone says that nobody listens to an agent any more.
var errGone = errors.New("the connection to the launcher has ended")

// stopName is the name of the signal of a terminal that stops the ranks.
const stopName = "TSTP"

// An agent is the launcher's deputy on a host.
type agent struct {
	orders remote.Orders
	secret proof.Secret
	job    *job
	frames *remote.FrameWriter
	notes  *remote.Outlet
	input  *remote.Inlet // of rank 0; nil if it has none, or is elsewhere
	silent *time.Timer

	respawns chan int // ranks to start anew

	mu      sync.Mutex
	ranks   map[int]*agentRank
	goneFor error         // why gone is closed
	gone    chan struct{} // closed when the launcher is gone
}

// An agentRank is a rank of the agent's host.
type agentRank struct {
	process  *process    // nil until it is started
	pending  []os.Signal // that came before
	out      [2]*remote.Outlet
	finished bool // nothing is left of it
}

// newAgent returns an agent with these orders.
func newAgent(frames *remote.FrameWriter, line []byte, guard []string) (*agent, error) {
	o, secret, err := remote.ParseOrders(line)
	if err != nil {
		return nil, err
	}
	a := &agent{orders: o, secret: secret, frames: frames, respawns: make(chan int, len(o.Ranks)), ranks: make(map[int]*agentRank), gone: make(chan struct{})}
	a.notes = remote.NewOutlet(frames, remote.FrameNote, 0, a.gone)
	cfg := Config{
		Size: o.Size, Program: o.Program, Args: o.Args, Transport: o.Transport,
		Env:    append(withoutJobEnv(os.Environ()), o.Env...),
		Stdout: io.Discard, Stderr: noteWriter{a.notes}, Verbose: o.Verbose, Guard: guard,
	}
	if o.Input && o.Ranks[0] == 0 {
		a.input = remote.NewInlet(frames, remote.FrameInput, 0)
		cfg.Stdin = a.input
	}
	if a.job, err = newJob(cfg, secret); err != nil {
		return nil, err
	}
	for _, rank := range o.Ranks {
		a.ranks[rank] = a.newRank(rank)
	}
	return a, nil
}

func (a *agent) newRank(rank int) *agentRank {
	return &agentRank{out: [2]*remote.Outlet{
		remote.NewOutlet(a.frames, remote.FrameStdout, rank, a.gone),
		remote.NewOutlet(a.frames, remote.FrameStderr, rank, a.gone),
	}}
}

// A noteWriter sends the lines of -v. The launcher puts its own words in front of them.
type noteWriter struct{ to *remote.Outlet }

func (n noteWriter) Write(line []byte) (int, error) {
	_, err := n.to.Write(bytes.TrimPrefix(line, []byte(linePrefix)))
	return len(line), err
}

// run starts the ranks, and returns when the launcher is gone. Then no rank is alive.
func (a *agent) run(in *bufio.Reader) error {
	defer a.kill()
	o := a.orders
	path, err := a.program(in)
	if err != nil {
		return err
	}
	if a.job.cfg.Dir, err = a.dir(); err != nil {
		return err
	}
	env := JobEnv{
		Transport: o.Transport, Size: o.Size, Control: o.Control, Secret: a.secret,
		Processors: o.Processors, Stall: time.Duration(o.Stall),
	}
	if err := a.job.share(&env); err != nil {
		return err
	}
	if o.Transport == "auto" { // also without memory: all hosts must agree on how the transport is chosen
		env.Transport, env.Mixed = "shm", true
	}
	a.silent = time.AfterFunc(aliveTimeout, func() {
		a.leave(fmt.Errorf("the launcher has been silent for %v", aliveTimeout))
	})
	defer a.silent.Stop()
	go a.read(in)
	for _, rank := range o.Ranks {
		env.Rank = rank
		if err := a.start(path, env); err != nil {
			return fmt.Errorf("starting rank %d of %d: %w", rank, o.Size, err)
		}
	}
	for running := len(o.Ranks); ; {
		select {
		case rank := <-a.respawns:
			env.Rank, env.Respawned, env.Memory = rank, true, 0
			if err := a.start(path, env); err != nil {
				return fmt.Errorf("starting rank %d of %d anew: %w", rank, o.Size, err)
			}
			running++
		case e := <-a.job.events:
			rank, _ := e.task.place()
			if e.finished {
				running--
				a.setFinished(rank)
				a.frames.Send(remote.FrameFinished, rank, nil)
			} else {
				exit, err := json.Marshal(e.exit)
				if err != nil {
					return err
				}
				a.frames.Send(remote.FrameEnded, rank, exit)
			}
		case <-a.gone:
			if running == 0 && errors.Is(a.goneFor, io.EOF) {
				return nil
			}
			return fmt.Errorf("%w: %w", errGone, a.goneFor)
		}
	}
}

// sayAlive tells the launcher that the agent is there, also while a program is copied.
func (a *agent) sayAlive(stop <-chan struct{}) {
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.frames.Send(remote.FrameAlive, 0, nil)
		case <-stop:
			return
		}
	}
}

// program returns the path of the executable, which it has copied if that is ordered.
func (a *agent) program(in *bufio.Reader) (path string, err error) {
	if a.orders.Bytes == 0 {
		if path, err = exec.LookPath(a.orders.Path); err == nil || errors.Is(err, exec.ErrDot) {
			return filepath.Abs(path)
		}
		return "", fmt.Errorf("%w: want an executable of this host", err)
	}
	dir, err := a.job.guard.TempDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(a.orders.Program))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return "", fmt.Errorf("copying the program: %w", err)
	}
	_, err = io.CopyN(file, in, a.orders.Bytes)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("copying the program: %w", err)
	}
	return path, nil
}

// dir returns the directory in which the ranks run; "" is the agent's own.
func (a *agent) dir() (string, error) {
	info, err := os.Stat(a.orders.Dir)
	switch {
	case a.orders.Dir == "", err == nil && info.IsDir():
		return a.orders.Dir, nil
	case a.orders.AnyDir:
		go a.job.report("no directory %s here: the ranks run where the login shell starts", a.orders.Dir) // it may block
		return "", nil
	}
	return "", fmt.Errorf("no directory %s: want one that every host has", a.orders.Dir)
}

// start starts a rank.
func (a *agent) start(path string, env JobEnv) error {
	r := a.ranks[env.Rank]
	p := a.job.process(path, env.Rank, env)
	var outputs [2]func(io.Reader)
	for i, to := range r.out {
		outputs[i] = func(from io.Reader) {
			io.Copy(to, from)
			to.Close()
		}
	}
	if err := a.job.start(p, outputs); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r.process = p
	for _, sig := range r.pending {
		p.signal(sig)
	}
	r.pending = nil
	return nil
}

// setFinished records that nothing is left of a rank, so that it may be started anew.
func (a *agent) setFinished(rank int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ranks[rank].finished = true
}

// respawn has a rank started anew, which has ended. The caller has the lock.
func (a *agent) respawn(rank int) error {
	if !a.ranks[rank].finished {
		return fmt.Errorf("rank %d is to be started anew, and has not ended", rank)
	}
	a.ranks[rank] = a.newRank(rank)
	a.respawns <- rank // it has room for each rank once
	return nil
}

// kill kills all ranks.
func (a *agent) kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.ranks {
		if r.process != nil {
			r.process.signal(syscall.SIGKILL)
		}
	}
}

// leave records that the launcher is gone.
func (a *agent) leave(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.goneFor == nil {
		a.goneFor = why
		close(a.gone)
	}
}

// read handles the launcher's frames until there are no more.
func (a *agent) read(in *bufio.Reader) {
	buf := make([]byte, remote.MaxFrame)
	for {
		f, err := remote.ReadFrame(in, buf)
		if err == nil {
			err = a.handle(f)
		}
		if err != nil {
			a.leave(err)
			if a.input != nil {
				a.input.End()
			}
			return
		}
	}
}

// handle handles a frame. An error is one of the launcher.
func (a *agent) handle(f remote.Frame) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silent.Reset(aliveTimeout)
	if f.Kind == remote.FrameAlive {
		return nil
	}
	r := a.ranks[f.Rank]
	if r == nil && f.Kind != remote.FrameTaken {
		return fmt.Errorf("a frame for rank %d, which is not on this host", f.Rank)
	}
	switch f.Kind {
	case remote.FrameSignal:
		return a.signal(r, string(f.Payload))
	case remote.FrameState:
		var state byte
		if r.process != nil {
			state = processState(r.process.cmd.Process.Pid)
		}
		a.frames.Send(remote.FrameState, f.Rank, []byte{state})
		return nil
	case remote.FrameRespawn:
		return a.respawn(f.Rank)
	case remote.FrameInput:
		if a.input == nil || f.Rank != 0 {
			return fmt.Errorf("input for rank %d, which has none", f.Rank)
		}
		return a.input.Push(f.Payload)
	case remote.FrameTaken:
		kind, n, err := f.Taken()
		switch {
		case err != nil:
			return err
		case kind == remote.FrameNote:
			return a.notes.Taken(n)
		case kind == remote.FrameStdout && r != nil:
			return r.out[0].Taken(n)
		case kind == remote.FrameStderr && r != nil:
			return r.out[1].Taken(n)
		}
	}
	return fmt.Errorf("a frame %q of no launcher", f.Kind)
}

// signal sends a signal to a rank, or keeps it until the rank is started. A launcher that
// stops is silent. The caller has the lock.
func (a *agent) signal(r *agentRank, name string) error {
	sig, ok := wireSignals[name]
	switch {
	case !ok:
		return fmt.Errorf("a signal %.20q, which this host does not have", name)
	case name == stopName:
		a.silent.Stop()
	}
	switch {
	case r.process != nil:
		r.process.signal(sig)
	case len(r.pending) < maxPendingSignals:
		r.pending = append(r.pending, sig)
	}
	return nil
}
