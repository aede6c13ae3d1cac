package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/internal/ranklist"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/launch/internal/guard"
	"github.com/chorale-go/chorale/launch/internal/output"
	"github.com/chorale-go/chorale/transport/shm"
)

// A job is a launcher's state while it runs processes.
type job struct {
	cfg     Config
	secret  proof.Secret
	guard   *guard.Guard
	groups  *groups                      // nil if the ranks do not join
	restart func(rank int) (task, error) // starts a lost rank anew
	memory  *os.File                     // the ranks' shared memory; nil if they share none
	out     *output.Sink
	err     *output.Sink
	events  chan event
	broken  chan error     // a sink has failed
	stops   chan os.Signal // the terminal stops this process
	stalls  chan error     // the job ends because ranks have waited for too long
	calls   chan func()    // what the supervisor's goroutine is to do
	over    chan struct{}  // closed when the job is over
	mu      sync.Mutex
	pids    map[int]int // of the ranks of this host, by rank

	explaining sync.Mutex // the ranks are asked what they do
	printing   sync.Mutex // errors are printed
	hosts      []*host    // that run ranks, if they are not all on this one
	built      bool       // the program is a Go package that this job has built
}

// An event is the end of a process or, later and with finished set, the end of
// its output.
type event struct {
	task     task
	finished bool

	// Of the end of the process.
	exit       Exit
	failedPeer int   // the rank because of which this one failed, or -1
	lost       error // why its end, or the end of its output, is not known; nil if it is
	respawn    bool  // another one is to be started in its place
	dismissed  bool  // it was started in the place of a lost one, and nobody needed it
}

func newJob(cfg Config, secret proof.Secret) (*job, error) {
	g, err := guard.Start(cfg.Guard, withoutJobEnv(os.Environ()))
	if err != nil {
		return nil, err
	}
	j := &job{
		cfg:    cfg,
		secret: secret,
		calls:  make(chan func()),
		stalls: make(chan error, 1),
		guard:  g,
		events: make(chan event),
		broken: make(chan error, 2),
		stops:  make(chan os.Signal, 1),
		over:   make(chan struct{}),
		pids:   make(map[int]int),
	}
	notifyStop(j.stops)
	j.out, j.err = output.NewSinks(cfg.Stdout, cfg.Stderr, j.over, func(err error) { j.broken <- err })
	if pid := g.Pid(); pid != 0 {
		j.report("guard: process %d", pid)
	}
	return j, nil
}

func (j *job) close() {
	closeHosts(j.hosts)
	close(j.over)
	signal.Stop(j.stops)
	if j.groups != nil {
		j.groups.close()
	}
	if j.memory != nil {
		j.memory.Close()
	}
	j.guard.Close()
}

// report prints a line of -v. It blocks while the output is blocked, so the
// supervisor does not call it.
func (j *job) report(format string, args ...any) {
	if j.cfg.Verbose {
		j.warn(fmt.Sprintf(format, args...))
	}
}

// linePrefix begins the lines that a launcher prints.
const linePrefix = "chorale: "

// warn prints a line. It blocks while the output is blocked.
func (j *job) warn(text string) {
	j.err.WriteLine(linePrefix + text + "\n")
}

// run starts the ranks and waits for their end.
func (j *job) run(ctx context.Context, program string) error {
	env := JobEnv{Transport: j.cfg.Transport, Size: j.cfg.Size, Secret: j.secret, Processors: processors.Available(), Stall: max(j.cfg.Stall, 0), StallAbort: j.cfg.StallAbort}
	if env.Transport == "inproc" {
		p := j.process(program, -1, env)
		if err := j.start(p, j.forward("", false)); err != nil {
			return err
		}
		return j.supervise(p).wait(ctx)
	}
	if err := j.share(&env); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := j.listen(env.Transport == "shm" && !env.Mixed, cancel); err != nil {
		return err
	}
	env.Control = j.groups.first().server.Address()
	j.restart = func(rank int) (task, error) { return j.respawn(program, rank, env) }

	s := j.supervise()
	for env.Rank = 0; env.Rank < j.cfg.Size && s.goesOn(ctx); env.Rank++ {
		p := j.process(program, env.Rank, env)
		if err := j.start(p, j.forwardRank(env.Rank)); err != nil {
			s.end(fmt.Errorf("starting %v of %d: %w", p, j.cfg.Size, err), syscall.SIGTERM)
			break
		}
		s.tasks = append(s.tasks, p)
	}
	return s.wait(ctx)
}

// respawn starts a process in the place of a lost rank. It has no standard input.
func (j *job) respawn(program string, rank int, env JobEnv) (task, error) {
	env.Rank, env.Respawned, env.Memory = rank, true, 0
	p := j.process(program, rank, env)
	return p, j.start(p, j.forwardRank(rank))
}

// listen begins to serve the ranks. It calls failed if they cannot be accepted any more. With
// shared, all ranks must share memory.
func (j *job) listen(shared bool, failed func(error)) error {
	strangers, err := checkDescriptors(j.cfg.Size)
	if err != nil {
		return err
	}
	answer := j.cfg.answer
	answer.Hosts, answer.Errors = j.layout(), true
	if answer.Unselected != "" {
		j.report("the machine's profile is not used: %s", answer.Unselected)
	} else if n := machine.Count(answer.Selections); n > 0 {
		j.report("selections: %d rules of the machine's profile", n)
	}
	j.groups, err = newGroups(j, control.Config{
		Size: j.cfg.Size, Secret: j.secret, Strangers: strangers, Shared: shared, Stall: j.cfg.Stall, Host: hostName(),
		Layout: answer,
		Hooks:  control.Hooks{Report: j.report, Failed: failed},
	})
	if err != nil {
		return err
	}
	j.report("control: %s", j.groups.first().server.Address())
	return nil
}

// layout returns the number of each rank's host, in the order of their lowest ranks; nil if
// all ranks are on this host.
func (j *job) layout() []int {
	if len(j.hosts) == 0 {
		return nil
	}
	hosts := slices.Clone(j.hosts)
	slices.SortFunc(hosts, func(a, b *host) int { return slices.Min(a.ranks) - slices.Min(b.ranks) })
	numbers := make([]int, j.cfg.Size)
	for number, h := range hosts {
		for _, rank := range h.ranks {
			numbers[rank] = number
		}
	}
	return numbers
}

// dropped handles that the connection of a rank, which has not left, has ended. On this
// host, the rank is about to end. On another one, the host may be gone; it is if the
// connection is silent.
func (j *job) dropped(rank int, silent bool) {
	for _, h := range j.hosts {
		if slices.Contains(h.ranks, rank) {
			select {
			case j.calls <- func() { h.task(rank).mustEnd(silent) }:
			case <-j.over:
			}
		}
	}
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
func (j *job) hasJoined() bool { return j.groups != nil && j.groups.first().server.HasMembers() }

// label returns the prefix of a rank's lines, as in "[ 3] " for more than 10 ranks.
func (j *job) label(rank int) string {
	if j.cfg.Unlabeled {
		return ""
	}
	return fmt.Sprintf("[%*d] ", len(strconv.Itoa(j.cfg.Size-1)), rank)
}

// printErrors prints the errors that ranks have sent and that are not printed yet, each once,
// with the ranks that share it. It blocks while the output is blocked.
func (j *job) printErrors() {
	if j.groups == nil {
		return
	}
	j.printing.Lock()
	defer j.printing.Unlock()
	for _, e := range j.groups.takeErrors() {
		label := j.label(e.Ranks[0])
		switch {
		case j.cfg.Unlabeled && j.cfg.Size > 1 && e.Named:
			label = ""
		case j.cfg.Unlabeled && j.cfg.Size > 1:
			label = ranklist.Name(e.Ranks) + ": "
		case !j.cfg.Unlabeled && len(e.Ranks) > 1:
			label = "[" + ranklist.String(e.Ranks) + "] "
		}
		s := output.Stream{To: j.err, Label: label, Hold: output.MaxLine}
		s.Copy(strings.NewReader(strings.TrimRight(e.Text+"\n"+e.Details, "\n") + "\n"))
	}
}

// process prepares a process that runs the program. Rank 0, or the process that
// runs all ranks, reads the launcher's standard input.
func (j *job) process(program string, rank int, env JobEnv) *process {
	p := &process{rank: rank, name: j.cfg.Program, memory: env.Memory > 0, cmd: &exec.Cmd{
		Path: program,
		Args: append([]string{j.cfg.Program}, j.cfg.Args...),
		Dir:  j.cfg.Dir,
		Env:  append(append(slices.Clone(j.cfg.Env), env.environ()...), j.guard.Mark()),
	}}
	if rank <= 0 && !env.Respawned {
		p.input = j.cfg.Stdin
	}
	return p
}

// forward returns what forwards the standard output and the standard error of a process
// to those of the launcher. With lines, they are forwarded in whole lines, each behind
// the label.
func (j *job) forward(label string, lines bool) (outputs [2]func(io.Reader)) {
	hold := 0
	if lines {
		hold = output.MaxLine
	}
	for i, to := range []*output.Sink{j.out, j.err} {
		outputs[i] = (&output.Stream{To: to, Label: label, Hold: hold}).Copy
	}
	return outputs
}

// forwardRank is forward for a rank.
func (j *job) forwardRank(rank int) [2]func(io.Reader) {
	return j.forward(j.label(rank), !j.cfg.Unlabeled || j.cfg.Size > 1)
}

// start starts a process and watches it: its end will be an event. The two functions
// read its standard output and its standard error to their ends.
func (j *job) start(p *process, outputs [2]func(io.Reader)) error {
	var childEnds []*os.File // of the pipes
	defer func() {
		for _, f := range childEnds {
			f.Close()
		}
	}()
	for _, forward := range outputs {
		pipe, w, err := newOutputPipe(forward)
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
	if p.memory {
		p.cmd.ExtraFiles = []*os.File{j.memory}
	}
	p.cmd.SysProcAttr = guard.OwnGroup()
	if err := p.cmd.Start(); err != nil {
		if input != nil {
			input.Close()
		}
		return err
	}
	j.guard.Started(p.cmd.Process.Pid)
	if p.rank >= 0 {
		j.mu.Lock()
		j.pids[p.rank] = p.cmd.Process.Pid
		j.mu.Unlock()
	}
	if input != nil {
		go feed(input, p.input, j.over)
	}
	if p.notify == nil {
		p.notify = j.emit
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
	exit := exitOf(p.cmd.ProcessState)
	j.ended(p, exit, p.notify)
	select {
	case <-reported:
	case <-j.over:
	}
	j.report("%v %s", p, exit.phrase())
	p.finish(j.over)
	j.guard.Ended(p.cmd.Process.Pid)
	p.notify(event{task: p, finished: true})
}

// ended tells the other ranks, and notify, that a task has ended.
func (j *job) ended(t task, exit Exit, notify func(event)) {
	e := event{task: t, exit: exit, failedPeer: -1}
	if rank, _ := t.place(); rank >= 0 && j.groups != nil {
		end := j.groups.end(rank, exit.String(), exit.Success(), true)
		e.respawn, e.dismissed, e.failedPeer = end.respawn, end.dismissed, end.peer()
	}
	notify(e)
}

// emit passes an event to the supervisor, if it still runs.
func (j *job) emit(e event) {
	select {
	case j.events <- e:
	case <-j.over:
	}
}
