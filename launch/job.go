package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"

	"github.com/chorale-go/chorale/transport/shm"
)

// A job is what a launcher has started and not yet ended.
type job struct {
	cfg     Config
	token   [16]byte
	guard   *guard
	control *control // nil when no rank joins
	memory  *os.File // that the ranks share; nil when they share none
	out     *sink
	err     *sink
	events  chan event
	broken  chan error    // a sink has failed
	over    chan struct{} // closed when the job is over
}

// An event happens to a process: it ends, and later all that it has printed
// has been passed on.
type event struct {
	p        *process
	finished bool // the second of the two

	// Of the first.
	state  *os.ProcessState
	blames int // the rank on whose account it failed, or -1
}

func newJob(cfg Config) (*job, error) {
	token, err := newToken()
	if err != nil {
		return nil, err
	}
	guard, err := startGuard(cfg.Guard)
	if err != nil {
		return nil, err
	}
	j := &job{
		cfg:    cfg,
		token:  token,
		guard:  guard,
		events: make(chan event),
		broken: make(chan error, 2),
		over:   make(chan struct{}),
	}
	j.out, j.err = newSinks(cfg.Stdout, cfg.Stderr, func(err error) { j.broken <- err })
	guard.note(note{Token: tokenVariable(token)})
	if guard.cmd != nil {
		j.report("guard: process %d", guard.cmd.Process.Pid)
	}
	return j, nil
}

func (j *job) close() {
	close(j.over)
	if j.control != nil {
		j.control.close()
	}
	if j.memory != nil {
		j.memory.Close()
	}
	j.guard.close()
}

// report tells the user what goes on, if he wants to know. It waits while the
// output is stuck, so the supervisor does not call it.
func (j *job) report(format string, args ...any) {
	if j.cfg.Verbose {
		fmt.Fprintf(j.err, "chorale: "+format+"\n", args...)
	}
}

// run starts the ranks and waits for their end.
func (j *job) run(ctx context.Context, program string) error {
	place := Place{Transport: j.cfg.Transport, Size: j.cfg.Size, Token: j.token, Processors: runtime.NumCPU()}
	if place.Transport == "inproc" {
		p := j.process(program, -1, place)
		if err := j.start(p, "", false); err != nil {
			return err
		}
		return j.supervise(ctx, []*process{p}, nil)
	}
	err := j.share(&place)
	if err != nil {
		return err
	}
	if j.control, err = newControl(j.cfg.Size, j.token, place.Transport == "shm" && !place.Mixes, j.report); err != nil {
		return err
	}
	place.Control = j.control.address()
	j.report("control: %s", place.Control)

	var procs []*process
	for place.Rank = range j.cfg.Size {
		if ctx.Err() != nil || len(j.cfg.Signals) > 0 {
			break // supervise ends what has started
		}
		p := j.process(program, place.Rank, place)
		if err := j.start(p, j.label(place.Rank), true); err != nil {
			return j.supervise(ctx, procs, fmt.Errorf("starting %v of %d: %w", p, j.cfg.Size, err))
		}
		procs = append(procs, p)
	}
	return j.supervise(ctx, procs, nil)
}

// firstExtra is the number under which a process finds the first file that it is
// given beside its standard ones.
const firstExtra = 3

// share makes the memory that the ranks share, and says so in their place. Where
// there can be none, auto is tcp.
func (j *job) share(place *Place) error {
	auto := place.Transport == "auto"
	if place.Transport == "tcp" || auto && place.Size == 1 {
		place.Transport = "tcp"
		return nil
	}
	bytes, err := shm.MemoryLen(place.Size)
	if err == nil {
		j.memory, err = shm.NewMemory(place.Size, j.token)
	}
	switch {
	case err == nil:
		j.report("shared memory: %.1f MiB for %d ranks", float64(bytes)/(1<<20), place.Size)
		place.Transport, place.Mixes, place.Memory = "shm", auto, firstExtra
	case auto:
		j.report("transport tcp: %v", err)
		place.Transport = "tcp"
	default:
		return fmt.Errorf("no shared memory: %w: --transport auto or tcp does without", err)
	}
	return nil
}

// hasJoined reports whether a rank is attached to the launcher.
func (j *job) hasJoined() bool { return j.control != nil && j.control.hasMembers() }

// label returns what stands before each line of a rank, as in "[ 3] " where
// there are more than 10.
func (j *job) label(rank int) string {
	if j.cfg.Unlabelled {
		return ""
	}
	return fmt.Sprintf("[%*d] ", len(strconv.Itoa(j.cfg.Size-1)), rank)
}

// process prepares one of the processes that run the program. The first of
// them reads the launcher's standard input.
func (j *job) process(program string, rank int, place Place) *process {
	p := &process{rank: rank, cmd: &exec.Cmd{
		Path: program,
		Args: append([]string{j.cfg.Program}, j.cfg.Args...),
		Dir:  j.cfg.Dir,
		Env:  append(slices.Clone(j.cfg.Env), place.environ()...),
	}}
	if rank <= 0 {
		p.input = j.cfg.Stdin
	}
	return p
}

// start starts a process. From then on, its end will be an event.
func (j *job) start(p *process, label string, lines bool) error {
	var theirs []*os.File // the process's ends of the pipes
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	for _, to := range []*sink{j.out, j.err} {
		s, w, err := newStream(to, label, lines)
		if err != nil {
			return err
		}
		theirs = append(theirs, w)
		p.streams = append(p.streams, s)
	}
	p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1]
	var input *os.File
	if p.input != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		theirs = append(theirs, r)
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
	j.guard.note(note{Group: p.cmd.Process.Pid})
	j.report("%v: process %d", p, p.cmd.Process.Pid)
	if input != nil {
		go feed(input, p.input, j.over)
	}
	go j.watch(p)
	return nil
}

// watch follows a process to its end and beyond.
func (j *job) watch(p *process) {
	p.cmd.Wait() // what goes wrong is in the state
	state, blames := p.cmd.ProcessState, -1
	if p.rank >= 0 {
		j.control.end(p.rank, howEnded(state), state.Success())
		blames = j.control.blame(p.rank)
	}
	j.happened(event{p: p, state: state, blames: blames})
	j.report("%v %s", p, ended(state))
	p.finish()
	j.guard.note(note{Ended: p.cmd.Process.Pid})
	j.happened(event{p: p, finished: true})
}

func (j *job) happened(e event) {
	select {
	case j.events <- e:
	case <-j.over:
	}
}
