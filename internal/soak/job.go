package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
)

const (
	jobTime   = 2 * time.Minute  // for a job, which takes a second or two
	stallTime = 20 * time.Second // a rank that waits for so long waits for ever
)

// A result is what a job has done, as its ranks have printed it.
type result struct {
	calls, kills, anew int
	hosts              int             // that were lost
	delays             []time.Duration // from a kill to the error of each survivor
	cuts               []time.Duration // from the loss of a host to the error of each survivor
	last               string          // the ranks at the end
	done               int             // ranks that have said so
}

// add adds what another job has done, but for its end.
func (r *result) add(o result) {
	r.calls, r.kills, r.anew, r.hosts = r.calls+o.calls, r.kills+o.kills, r.anew+o.anew, r.hosts+o.hosts
	r.delays, r.cuts = append(r.delays, o.delays...), append(r.cuts, o.cuts...)
}

// An output collects what ranks print.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// run runs the job, and checks what its ranks have printed, and that nothing remains of it.
// Dir is empty, and for temporary files.
func (p *program) run(ctx context.Context, dir string) (result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, jobTime, fmt.Errorf("the job has not ended after %v", jobTime))
	defer cancel()
	var out, errs output
	var end error
	switch {
	case !p.processes():
		end = p.goroutines(ctx, &out)
	case p.kind == "namespaces":
		end = p.onNamespaces(ctx, dir, &out, &errs)
	default:
		end = p.launch(ctx, dir, &out, &errs)
	}
	r, err := parse(out.String())
	if err = errors.Join(end, err, r.check(p)); err == nil && p.processes() {
		err = nothingRemains(p.mark(), dir)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s%s", err, &out, &errs)
	}
	return r, err
}

const markVar = "CHORALE_SOAK"

// mark is a variable in the environment of all processes of the job.
func (p *program) mark() string {
	if mark := os.Getenv(markVar); mark != "" {
		return markVar + "=" + mark // this is one of them
	}
	return fmt.Sprintf("%s=%d of %d in %d", markVar, p.number, p.seed, os.Getpid())
}

// args are the arguments of a process of the job.
func (p *program) args(part string) []string {
	return []string{part, strconv.FormatUint(p.seed, 10), strconv.FormatUint(p.number, 10), strconv.FormatBool(p.deadly), p.kind}
}

// programOf returns the program of a process of a job, from its arguments behind the part.
func programOf(args []string) *program {
	seed, _ := strconv.ParseUint(args[0], 10, 64)
	number, _ := strconv.ParseUint(args[1], 10, 64)
	deadly, _ := strconv.ParseBool(args[2])
	return newProgram(seed, number, deadly, args[3])
}

// launch runs the ranks as processes. Namespaces are the processes of two network namespaces.
func (p *program) launch(ctx context.Context, dir string, out, errs io.Writer, namespaces ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg := launch.Config{
		Size: p.size, Program: self, Transport: p.kind, Env: append(os.Environ(), p.mark(), "TMPDIR="+dir),
		Args:     p.args("rank"),
		Continue: true, Respawn: p.respawn, Unlabeled: true, Stdout: out, Stderr: errs, Guard: []string{"guard"},
		Stall: stallTime, StallAbort: true,
	}
	if p.slots != nil {
		cfg.Transport = "auto"
		hosts, enter := []string{"a", "b"}, []string(nil)
		if p.kind == "namespaces" {
			hosts, enter = namespaces, enterNamespace("{host}")
		}
		cfg.Remote = &launch.Remote{
			Hosts:    []launch.Host{{Name: hosts[0], Slots: p.slots[0]}, {Name: hosts[1], Slots: p.slots[1]}},
			Launcher: append(enter, "env", p.mark(), "TMPDIR="+dir, "SOAK_HOST={host}"), AgentArgs: []string{"agent"}, NoCopy: true,
		}
	}
	return launch.Run(ctx, cfg)
}

// runLauncher is the main function of a launcher in the first of two namespaces.
func runLauncher(args []string) error {
	return programOf(args).launch(context.Background(), os.Getenv("TMPDIR"), os.Stdout, os.Stderr, args[4:]...)
}

// goroutines runs the ranks in this process.
func (p *program) goroutines(ctx context.Context, out io.Writer) error {
	rank := func(ctx context.Context, c *chorale.Comm) error {
		return p.rank(c.Rank(), c, out).run(ctx)
	}
	if p.kind == "inproc" {
		return chorale.Run(ctx, p.size, rank)
	}
	var endpoints []transport.Endpoint
	var err error
	if p.kind == "goroutines over shm" {
		endpoints, err = ends(shm.Loopback(p.size))
	} else {
		endpoints, err = ends(tcp.Loopback(p.size))
	}
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var ranks sync.WaitGroup
	errs := make([]error, p.size)
	for i, e := range endpoints {
		ranks.Go(func() {
			c := chorale.NewComm(e, chorale.CommConfig{})
			if errs[i] = rank(ctx, c); errs[i] != nil {
				fail(errs[i])
			}
			errs[i] = errors.Join(errs[i], c.Close())
		})
	}
	ranks.Wait()
	return errors.Join(errs...)
}

func ends[E transport.Endpoint](loop []E, err error) (endpoints []transport.Endpoint, _ error) {
	for _, e := range loop {
		endpoints = append(endpoints, e)
	}
	return endpoints, err
}

func (p *program) rank(me int, c *chorale.Comm, out io.Writer) *rank {
	return &rank{program: p, me: me, base: c, print: func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }}
}

// runRank is the main function of a rank's process.
func runRank(args []string) {
	p := programOf(args)
	me, err := strconv.Atoi(os.Getenv("CHORALE_RANK"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if after, stillborn := p.stillborn(me); stillborn && os.Getenv("CHORALE_RESPAWNED") != "" {
		p.rank(me, nil, os.Stdout).dieAfter("stillborn", after)
	}
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error { return p.rank(me, c, os.Stdout).run(ctx) })
}

// parse reads what ranks have printed.
func parse(output string) (r result, err error) {
	killed, cut := make(map[int][]int64), make(map[int][]int64) // when, by rank
	var lost [][2]int64
	for line := range strings.Lines(output) {
		var a, b int64
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "killed", "stillborn", "cut", "lost":
			if _, err := fmt.Sscan(rest, &a, &b); err != nil {
				return r, fmt.Errorf("%q: %w", line, err)
			}
			switch word {
			case "killed":
				r.kills++
				killed[int(a)] = append(killed[int(a)], b)
			case "stillborn": // of which nobody has known
				r.kills++
			case "cut":
				r.hosts = 1
				cut[int(a)] = append(cut[int(a)], b)
			default:
				lost = append(lost, [2]int64{a, b})
			}
		case "anew":
			r.anew++
		case "done":
			calls, members, _ := strings.Cut(rest, " ")
			n, _ := strconv.Atoi(calls)
			if r.calls += n; r.done > 0 && members != r.last {
				return r, fmt.Errorf("the ranks at the end are %s and %s", r.last, members)
			}
			r.done, r.last = r.done+1, members
		}
	}
	for _, l := range lost {
		kill, killed := lastBefore(killed[int(l[0])], l[1])
		cut, cutOff := lastBefore(cut[int(l[0])], l[1])
		switch {
		case cutOff && cut > kill:
			r.cuts = append(r.cuts, time.Duration(l[1]-cut))
		case killed:
			r.delays = append(r.delays, time.Duration(l[1]-kill))
		default:
			return r, fmt.Errorf("rank %d is lost to others before it was killed", l[0])
		}
	}
	return r, nil
}

// lastBefore returns the last of some times that is not later than another one.
func lastBefore(times []int64, end int64) (last int64, found bool) {
	for _, at := range times {
		if at <= end {
			last, found = max(last, at), true
		}
	}
	return last, found
}

// check returns an error unless all ranks that are left have ended well.
func (r result) check(p *program) error {
	if n := len(strings.Fields(r.last)); r.done == 0 || n != r.done {
		return fmt.Errorf("%v: %d ranks have ended well, want %d: %s", p, r.done, n, r.last)
	}
	if p.deadly && r.done > 2 {
		return fmt.Errorf("%v: %d ranks are left, want 2", p, r.done)
	}
	return nil
}

// nothingRemains returns an error if a process of a job or a file is still there after 5 s.
func nothingRemains(mark, dir string) error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		processes := processesWith(mark)
		files, err := os.ReadDir(dir)
		if err != nil || len(processes)+len(files) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after the job there are the processes %v and the files %v", processes, files)
		}
	}
}

// processesWith returns the processes whose environment holds a variable.
func processesWith(variable string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == variable }) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
