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
	delays             []time.Duration // from a kill to the error of each survivor
	last               string          // the ranks at the end
	done               int             // ranks that have said so
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
	if p.processes() {
		end = p.launch(ctx, dir, &out, &errs)
	} else {
		end = p.goroutines(ctx, &out)
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

// mark is a variable in the environment of all processes of the job.
func (p *program) mark() string {
	return fmt.Sprintf("CHORALE_SOAK=%d of %d in %d", p.number, p.seed, os.Getpid())
}

// launch runs the ranks as processes.
func (p *program) launch(ctx context.Context, dir string, out, errs io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg := launch.Config{
		Size: p.size, Program: self, Transport: p.kind, Env: append(os.Environ(), p.mark(), "TMPDIR="+dir),
		Args:     []string{"rank", strconv.FormatUint(p.seed, 10), strconv.FormatUint(p.number, 10), strconv.FormatBool(p.deadly), p.kind},
		Continue: true, Respawn: p.respawn, Unlabeled: true, Stdout: out, Stderr: errs, Guard: []string{"guard"},
		Stall: stallTime, StallAbort: true,
	}
	if p.kind == "mixed" {
		cfg.Transport = "auto"
		cfg.Remote = &launch.Remote{
			Hosts:    []launch.Host{{Name: "a", Slots: p.slots[0]}, {Name: "b", Slots: p.slots[1]}},
			Launcher: []string{"env", p.mark(), "TMPDIR=" + dir, "SOAK_HOST={host}"}, AgentArgs: []string{"agent"}, NoCopy: true,
		}
	}
	return launch.Run(ctx, cfg)
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
	seed, _ := strconv.ParseUint(args[0], 10, 64)
	number, _ := strconv.ParseUint(args[1], 10, 64)
	deadly, _ := strconv.ParseBool(args[2])
	p := newProgram(seed, number, deadly, args[3])
	me, err := strconv.Atoi(os.Getenv("CHORALE_RANK"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error { return p.rank(me, c, os.Stdout).run(ctx) })
}

// parse reads what ranks have printed.
func parse(output string) (r result, err error) {
	killed := make(map[int][]int64) // when, by rank
	var lost [][2]int64
	for line := range strings.Lines(output) {
		var a, b int64
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "killed", "lost":
			if _, err := fmt.Sscan(rest, &a, &b); err != nil {
				return r, fmt.Errorf("%q: %w", line, err)
			}
			if word == "killed" {
				r.kills++
				killed[int(a)] = append(killed[int(a)], b)
			} else {
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
	for _, l := range lost { // of the last time that the rank was killed before
		times := slices.DeleteFunc(slices.Clone(killed[int(l[0])]), func(at int64) bool { return at > l[1] })
		if len(times) == 0 {
			return r, fmt.Errorf("rank %d is lost to others before it was killed", l[0])
		}
		r.delays = append(r.delays, time.Duration(l[1]-slices.Max(times)))
	}
	return r, nil
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
