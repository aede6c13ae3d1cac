package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/launch/internal/remote"
)

const (
	// maxReaching bounds how many connections to hosts are made at the same time.
	maxReaching = 32

	// helloTimeout bounds the wait for an agent's hello, in each attempt.
	helloTimeout = 30 * time.Second

	// maxAttempts bounds how often a host that refuses or drops the connection is tried.
	maxAttempts = 3

	// attemptPause is the pause after the first attempt; that after the second is twice
	// as long.
	attemptPause = 500 * time.Millisecond
)

// runRemote starts the ranks on their hosts, and waits for their end. Program is what to
// copy to each host; "" if nothing is.
func (j *job) runRemote(ctx context.Context, program string) error {
	on := j.cfg.Remote
	o := remote.Orders{
		Secret: j.secret.Reveal(), Transport: j.cfg.Transport, Size: j.cfg.Size, Stall: int64(max(j.cfg.Stall, 0)),
		Program: j.cfg.Program, Args: j.cfg.Args, Dir: j.cfg.Dir, AnyDir: j.cfg.Dir == "",
		Env: on.environment(j.cfg.Env), Input: j.cfg.Stdin != nil, Verbose: j.cfg.Verbose,
	}
	if program == "" {
		o.Path = j.cfg.Program
	} else if info, err := os.Stat(program); err != nil {
		return err
	} else {
		o.Bytes = info.Size()
	}
	if o.AnyDir {
		o.Dir, _ = os.Getwd() // without one, the ranks run where the login shell starts
	}
	most := 0 // ranks on a host
	for i, ranks := range place(on.Hosts, j.cfg.Size, on.Rounds) {
		if len(ranks) > 0 {
			j.hosts = append(j.hosts, &host{Host: on.Hosts[i], job: j, ranks: ranks})
		}
		most = max(most, len(ranks))
	}
	if o.Transport == "auto" && most == 1 {
		o.Transport = "tcp" // no two ranks could share memory
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := j.listen(o.Transport == "shm", cancel); err != nil {
		return err
	}
	o.Control = j.groups.first().server.Address()
	s := j.supervise()
	greetings, err := s.reach(ctx)
	if err != nil {
		return err
	}
	if o.Processors, err = j.agree(greetings, program != ""); err != nil {
		return err
	}
	j.restart = j.respawnRemote
	s.tasks = make([]task, j.cfg.Size)
	for _, h := range j.hosts {
		h.begin(o, program)
		for rank, r := range h.tasks {
			s.tasks[rank] = r
		}
	}
	go watchHosts(ctx, j.hosts)
	return s.wait(ctx)
}

// reach connects to all hosts, or to none. It starts the connections' processes in the
// calling goroutine, and handles signals meanwhile.
func (s *supervisor) reach(ctx context.Context) ([]remote.Hello, error) {
	hosts := s.job.hosts
	greetings := make([]remote.Hello, len(hosts))
	reaching, cancel := context.WithCancel(ctx)
	defer cancel()
	running := len(hosts)
	places := make(chan struct{}, maxReaching)
	for i, h := range hosts {
		go func() {
			places <- struct{}{}
			hello, err := h.reach(reaching, s.job.calls)
			<-places
			s.job.calls <- func() {
				running--
				greetings[i] = hello
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				if err != nil {
					s.end(err, syscall.SIGTERM)
				}
			}
		}()
	}
	for running > 0 {
		s.step(ctx)
		if s.cause != nil {
			cancel()
		}
	}
	return greetings, s.cause
}

// reach connects to the host. It has calls start the connection's process.
func (h *host) reach(ctx context.Context, calls chan<- func()) (remote.Hello, error) {
	for attempt := 1; ; attempt++ {
		g, retry, err := h.try(ctx, calls)
		if err == nil || !retry || attempt == maxAttempts {
			return g, err
		}
		select {
		case <-time.After(time.Duration(attempt) * attemptPause):
		case <-ctx.Done():
			return g, err
		}
	}
}

// try connects to the host once.
func (h *host) try(ctx context.Context, calls chan<- func()) (_ remote.Hello, retry bool, err error) {
	if ctx.Err() != nil {
		return remote.Hello{}, false, ctx.Err()
	}
	started := make(chan error)
	calls <- func() {
		c, err := h.job.connect(h.Name)
		if err == nil {
			h.conn = c
		}
		started <- err // the caller waits
	}
	if err := <-started; err != nil {
		return remote.Hello{}, false, err
	}
	c := h.conn
	timeout := cmp.Or(h.job.cfg.Remote.helloTimeout, helloTimeout)
	limit := time.AfterFunc(timeout, func() { c.abandon(fmt.Errorf("it has not answered for %v", timeout)) })
	defer limit.Stop()
	stop := context.AfterFunc(ctx, func() { c.abandon(context.Cause(ctx)) })
	defer stop()
	g := <-c.greeted
	if g.err == nil {
		return g.hello, false, nil
	}
	if !errors.Is(g.err, io.EOF) {
		c.blame(g.err)
	}
	c.end(time.Second) // it may be about to say why
	return remote.Hello{}, c.mayRetry(), c.noHello(g)
}

// agree returns the number of processors on which all ranks base their choices, and
// checks that the hosts can run what is copied.
func (j *job) agree(greetings []remote.Hello, copied bool) (processors int, err error) {
	processors = -1
	for i, g := range greetings {
		h := j.hosts[i]
		j.report("host %s: %s/%s, %d processors, ranks %v", h.Name, g.OS, g.Arch, g.Processors, h.ranks)
		if j.built && copied && (g.OS != runtime.GOOS || g.Arch != runtime.GOARCH) {
			return 0, fmt.Errorf("host %s is %s/%s, and the program is built for %s/%s: build one on the host, and say --no-copy", h.Name, g.OS, g.Arch, runtime.GOOS, runtime.GOARCH)
		}
		if processors < 0 || g.Processors < processors { // the host that slows all others down
			processors = g.Processors
		}
	}
	return processors, nil
}
