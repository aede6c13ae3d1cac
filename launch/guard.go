package launch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Guard is the main loop of a guard process. It reads the launcher's messages
// from r, normally standard input. When r ends, for whatever reason, it removes
// the processes and files that the job has left, and returns. [Run] starts a
// guard if [Config.Guard] is set.
func Guard(r io.Reader) {
	signal.Ignore(forwarded...) // the launcher handles them, and ends the job in good order
	c := cleanup{effects: system}
	c.read(r)
	c.run()
}

// A guardMessage tells a guard of something that must not outlive the job. It is
// one line of JSON with one field.
type guardMessage struct {
	Mark  string `json:"mark,omitempty"`  // a variable in the environment of every process of the job
	Group int    `json:"group,omitempty"` // a process group that was started
	Ended int    `json:"ended,omitempty"` // a process group that has ended
	Path  string `json:"path,omitempty"`  // a file or directory that will be created
}

// A cleanup lists what has to be removed when the job is over.
type cleanup struct {
	effects effects
	mark    string
	groups  map[int]bool
	paths   []string
}

// effects are what a cleanup does to the system.
type effects struct {
	kill   func(group int)
	sweep  func(variable string) (found int)
	remove func(path string) error
}

var system = effects{killGroup, sweep, os.RemoveAll}

// read records the messages that r delivers until it ends. A line that no launcher
// writes is no reason to begin earlier.
func (c *cleanup) read(r io.Reader) {
	for in := bufio.NewScanner(r); in.Scan(); {
		var m guardMessage
		if json.Unmarshal(in.Bytes(), &m) == nil {
			c.record(m)
		}
	}
	io.Copy(io.Discard, r) // after too long a line
}

// record adds to the list what a message names, or strikes it out. It ignores what no
// job has: group 1 would be every process, and a variable of others would be those of
// the user.
func (c *cleanup) record(m guardMessage) {
	switch {
	case isMark(m.Mark):
		c.mark = m.Mark
	case m.Group > 1:
		if c.groups == nil {
			c.groups = make(map[int]bool)
		}
		c.groups[m.Group] = true
	case m.Ended != 0:
		delete(c.groups, m.Ended)
	case filepath.IsAbs(m.Path) && filepath.Clean(m.Path) == m.Path && strings.HasPrefix(filepath.Base(m.Path), buildPrefix):
		c.paths = append(c.paths, m.Path)
	}
}

// cleanupTimeout bounds how long a cleanup tries.
const cleanupTimeout = 3 * time.Second

// run kills the processes and removes the files of the list.
func (c *cleanup) run() {
	for pid := range c.groups {
		c.effects.kill(pid)
	}
	deadline := time.Now().Add(cleanupTimeout)
	// A process may start another during the search, and a killed process may
	// write for another moment.
	for c.mark != "" && c.effects.sweep(c.mark) > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	for _, path := range c.paths {
		for c.effects.remove(path) != nil && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// A guard is the launcher's end of its guard process. Its methods may be called
// concurrently.
type guard struct {
	mu      sync.Mutex
	cleanup cleanup        // for the launcher to run if the guard process fails
	pipe    io.WriteCloser // nil without a guard process
	cmd     *exec.Cmd
}

// startGuard starts this process's own executable with the arguments given, or
// nothing if args is nil. The guard process gets a session of its own, so that a
// signal that ends the launcher does not reach it. Its environment lacks the
// mark of the job, so that it does not kill itself in the sweep.
func startGuard(args []string) (*guard, error) {
	g := &guard{cleanup: cleanup{effects: system}}
	if args == nil {
		return g, nil
	}
	path, err := executable()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	g.cmd = &exec.Cmd{
		Path:        path,
		Args:        append([]string{os.Args[0]}, args...),
		Env:         withoutJobEnv(os.Environ()),
		Dir:         string(filepath.Separator), // it keeps no directory in use
		SysProcAttr: ownSession(),
	}
	if g.pipe, err = g.cmd.StdinPipe(); err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	return g, nil
}

// send sends a message to the guard process. If that is dead, close does its work.
func (g *guard) send(m guardMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cleanup.record(m)
	if g.pipe != nil {
		_ = json.NewEncoder(g.pipe).Encode(m) // a guard that is dead is told nothing
	}
}

// close makes the guard process clean up, and returns when it is done. If there
// is no guard process, or it is killed or does not end within twice
// cleanupTimeout, the launcher runs the cleanup itself.
func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil {
		g.pipe.Close()
		stop := time.AfterFunc(2*cleanupTimeout, func() { g.cmd.Process.Kill() })
		defer stop.Stop()
		if g.cmd.Wait() == nil {
			return
		}
	}
	g.cleanup.run()
}
