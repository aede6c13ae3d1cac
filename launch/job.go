package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/transport/shm"
)

// A job is a launcher's state while it runs processes.
type job struct {
	cfg     Config
	secret  proof.Secret
	guard   *guard
	control *control // nil if the ranks do not join
	memory  *os.File // the ranks' shared memory; nil if they share none
	out     *sink
	err     *sink
	events  chan event
	broken  chan error     // a sink has failed
	stops   chan os.Signal // the terminal stops this process
	over    chan struct{}  // closed when the job is over
}

// An event is the end of a process or, later and with finished set, the end of
// its output.
type event struct {
	p        *process
	finished bool

	// Of the end of the process.
	state      *os.ProcessState
	failedPeer int // the rank because of which this one failed, or -1
}

func newJob(cfg Config) (*job, error) {
	secret := proof.NewSecret()
	guard, err := startGuard(cfg.Guard)
	if err != nil {
		return nil, err
	}
	j := &job{
		cfg:    cfg,
		secret: secret,
		guard:  guard,
		events: make(chan event),
		broken: make(chan error, 2),
		stops:  make(chan os.Signal, 1),
		over:   make(chan struct{}),
	}
	notifyStop(j.stops)
	j.out, j.err = newSinks(cfg.Stdout, cfg.Stderr, j.over, func(err error) { j.broken <- err })
	guard.send(guardMessage{Token: tokenVariable(secret)})
	if guard.cmd != nil {
		j.report("guard: process %d", guard.cmd.Process.Pid)
	}
	return j, nil
}

func (j *job) close() {
	close(j.over)
	signal.Stop(j.stops)
	if j.control != nil {
		j.control.close()
	}
	if j.memory != nil {
		j.memory.Close()
	}
	j.guard.close()
}

// report prints a line of -v. It blocks while the output is blocked, so the
// supervisor does not call it.
func (j *job) report(format string, args ...any) {
	if j.cfg.Verbose {
		j.warn(fmt.Sprintf(format, args...))
	}
}

// warn prints a line. It blocks while the output is blocked.
func (j *job) warn(text string) {
	j.err.write(&stream{}, []byte("chorale: "+text+"\n"), false)
}

// run starts the ranks and waits for their end.
func (j *job) run(ctx context.Context, program string) error {
	env := JobEnv{Transport: j.cfg.Transport, Size: j.cfg.Size, Secret: j.secret, Processors: processors.Available(), Stall: max(j.cfg.Stall, 0)}
	if env.Transport == "inproc" {
		p := j.process(program, -1, env)
		if err := j.start(p, "", false); err != nil {
			return err
		}
		return j.supervise(p).wait(ctx)
	}
	err := j.share(&env)
	if err != nil {
		return err
	}
	strangers, err := checkDescriptors(j.cfg.Size)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j.control, err = newControl(controlConfig{
		size: j.cfg.Size, secret: j.secret, strangers: strangers, shared: env.Transport == "shm" && !env.Mixed, stall: j.cfg.Stall,
		controlHooks: controlHooks{report: j.report, failed: cancel, deadlocked: func(d deadlock) {
			go j.warn(d.report(j.cfg.Stall)) // it blocks while the output does
		}},
	})
	if err != nil {
		return err
	}
	env.Control = j.control.address()
	j.report("control: %s", env.Control)

	s := j.supervise()
	for env.Rank = 0; env.Rank < j.cfg.Size && s.goesOn(ctx); env.Rank++ {
		p := j.process(program, env.Rank, env)
		if err := j.start(p, j.label(env.Rank), !j.cfg.Unlabeled || j.cfg.Size > 1); err != nil {
			s.end(fmt.Errorf("starting %v of %d: %w", p, j.cfg.Size, err), syscall.SIGTERM)
			break
		}
		s.procs = append(s.procs, p)
	}
	return s.wait(ctx)
}

// firstExtra is the file descriptor of the first file in exec.Cmd.ExtraFiles.
const firstExtra = 3

// share makes the ranks' shared memory and adds it to their environment. If the
// system cannot share memory, auto becomes tcp.
func (j *job) share(env *JobEnv) error {
	auto := env.Transport == "auto"
	switch {
	case env.Transport == "tcp" || auto && env.Size == 1:
		env.Transport = "tcp"
		return nil
	case env.Transport != "shm" && !auto:
		return errTransport(env.Transport)
	}
	bytes, err := shm.MemoryLen(env.Size)
	if err == nil {
		j.memory, err = shm.NewMemory(env.Size, j.secret.Job())
	}
	switch {
	case err == nil:
		j.report("shared memory: %.1f MiB for %d ranks", float64(bytes)/(1<<20), env.Size)
		env.Transport, env.Mixed, env.Memory = "shm", auto, firstExtra
	case auto:
		j.report("transport tcp: %v", err)
		env.Transport = "tcp"
	default:
		return fmt.Errorf("no shared memory: %w: --transport auto or tcp does without", err)
	}
	return nil
}

// hasJoined reports whether a rank is attached to the launcher.
func (j *job) hasJoined() bool { return j.control != nil && j.control.hasMembers() }

// label returns the prefix of a rank's lines, as in "[ 3] " for more than 10 ranks.
func (j *job) label(rank int) string {
	if j.cfg.Unlabeled {
		return ""
	}
	return fmt.Sprintf("[%*d] ", len(strconv.Itoa(j.cfg.Size-1)), rank)
}

// process prepares a process that runs the program. Rank 0, or the process that
// runs all ranks, reads the launcher's standard input.
func (j *job) process(program string, rank int, env JobEnv) *process {
	p := &process{rank: rank, cmd: &exec.Cmd{
		Path: program,
		Args: append([]string{j.cfg.Program}, j.cfg.Args...),
		Dir:  j.cfg.Dir,
		Env:  append(slices.Clone(j.cfg.Env), env.environ()...),
	}}
	if rank <= 0 {
		p.input = j.cfg.Stdin
	}
	return p
}

// start starts a process and watches it: its end will be an event. With lines, its
// output is forwarded in whole lines, each behind the label.
func (j *job) start(p *process, label string, lines bool) error {
	var childEnds []*os.File // of the pipes
	defer func() {
		for _, f := range childEnds {
			f.Close()
		}
	}()
	hold := 0
	if lines {
		hold = maxLine
	}
	for _, to := range []*sink{j.out, j.err} {
		pipe, w, err := newOutputPipe(&stream{to: to, label: label, hold: hold})
		if err != nil {
			return err
		}
		childEnds = append(childEnds, w)
		p.outputs = append(p.outputs, pipe)
	}
	p.cmd.Stdout, p.cmd.Stderr = childEnds[0], childEnds[1]
	var input *os.File
	if p.input != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		childEnds = append(childEnds, r)
		p.cmd.Stdin, input = r, w
	}
	if p.rank >= 0 && j.memory != nil {
		p.cmd.ExtraFiles = []*os.File{j.memory}
	}
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		if input != nil {
			input.Close()
		}
		return err
	}
	j.guard.send(guardMessage{Group: p.cmd.Process.Pid})
	if input != nil {
		go feed(input, p.input, j.over)
	}
	go j.watch(p)
	return nil
}

// watch waits for the end of a process and of its output.
func (j *job) watch(p *process) {
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		j.report("%v: process %d", p, p.cmd.Process.Pid)
	}()
	p.cmd.Wait() // a failure is in the state
	state, failedPeer := p.cmd.ProcessState, -1
	if p.rank >= 0 {
		j.control.end(p.rank, howEnded(state), state.Success())
		failedPeer = j.control.failedPeer(p.rank)
	}
	j.emit(event{p: p, state: state, failedPeer: failedPeer})
	select {
	case <-reported:
	case <-j.over:
	}
	j.report("%v %s", p, endPhrase(state))
	p.finish(j.over)
	j.guard.send(guardMessage{Ended: p.cmd.Process.Pid})
	j.emit(event{p: p, finished: true})
}

// emit passes an event to the supervisor, if it still runs.
func (j *job) emit(e event) {
	select {
	case j.events <- e:
	case <-j.over:
	}
}
