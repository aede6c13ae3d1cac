package guard

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Run is the main loop of a guard process. It reads the launcher's messages from r. When
// r ends, for whatever reason, it removes the processes and files that the job has left,
// and returns.
func Run(r io.Reader) {
	c := cleanup{effects: system}
	c.read(r)
	c.run()
}

// Prefix begins the names of files and directories that a guard removes. The rest is
// random, and no part of the job's secret: other users can read the names of directories.
const Prefix = "chorale-"

// Variable is the name of a variable by which a guard finds the processes of its job: each
// host's processes have a value of their own, also where several hosts are one machine.
const Variable = "CHORALE_MARK"

// newMark returns a variable that the environment of no other process holds.
func newMark() string { return Variable + "=" + rand.Text() }

// isMark reports whether v is what newMark returns.
func isMark(v string) bool {
	text, ok := strings.CutPrefix(v, Variable+"=")
	return ok && len(text) >= 26 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// A message tells a guard of something that must not outlive the job. It is
// one line of JSON with one field.
type message struct {
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
		var m message
		if json.Unmarshal(in.Bytes(), &m) == nil {
			c.record(m)
		}
	}
	io.Copy(io.Discard, r) // after too long a line
}

// record adds to the list what a message names, or strikes it out. It ignores what no
// job has: group 1 would be every process, and a variable of others would be those of
// the user.
func (c *cleanup) record(m message) {
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
	case filepath.IsAbs(m.Path) && filepath.Clean(m.Path) == m.Path && strings.HasPrefix(filepath.Base(m.Path), Prefix):
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

// A Guard is the launcher's end of its guard process. Its methods may be called
// concurrently.
type Guard struct {
	mark string

	mu      sync.Mutex
	cleanup cleanup        // for the launcher to run if the guard process fails
	pipe    io.WriteCloser // nil without a guard process
	cmd     *exec.Cmd
}

// Start starts this process's own executable with the arguments given, which calls [Run],
// or nothing if args is nil. The guard process gets a session of its own, so that a
// signal that ends the launcher does not reach it. Its environment env lacks the mark of
// any job, so that no guard kills it in a sweep.
func Start(args, env []string) (*Guard, error) {
	g := &Guard{mark: newMark(), cleanup: cleanup{effects: system}}
	if args == nil {
		g.send(message{Mark: g.mark})
		return g, nil
	}
	path, err := executable()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	g.cmd = &exec.Cmd{
		Path:        path,
		Args:        append([]string{os.Args[0]}, args...),
		Env:         env,
		Dir:         string(filepath.Separator), // it keeps no directory in use
		SysProcAttr: ownSession(),
	}
	if g.pipe, err = g.cmd.StdinPipe(); err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	g.send(message{Mark: g.mark})
	return g, nil
}

// Mark returns a variable for the environment of every process of the job on this host.
func (g *Guard) Mark() string { return g.mark }

// Pid returns the number of the guard process, or 0 if there is none.
func (g *Guard) Pid() int {
	if g.cmd == nil {
		return 0
	}
	return g.cmd.Process.Pid
}

// Started says that a process has been started with [OwnGroup].
func (g *Guard) Started(pid int) { g.send(message{Group: pid}) }

// Ended says that the group of a process is gone.
func (g *Guard) Ended(pid int) { g.send(message{Ended: pid}) }

// Remove has a file or directory removed when the job is over, which may exist only later.
// Its path is absolute, and its name begins with [Prefix].
func (g *Guard) Remove(path string) { g.send(message{Path: path}) }

// TempDir makes a directory for this user alone, which is removed when the job is over.
func (g *Guard) TempDir() (string, error) {
	// The guard learns of the directory before it exists, so that none is left.
	tmp, err := filepath.Abs(filepath.Join(os.TempDir(), Prefix+rand.Text()))
	if err != nil {
		return "", err
	}
	g.Remove(tmp)
	return tmp, os.Mkdir(tmp, 0o700)
}

// send sends a message to the guard process. If that is dead, Close does its work.
func (g *Guard) send(m message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cleanup.record(m)
	if g.pipe != nil {
		_ = json.NewEncoder(g.pipe).Encode(m) // a guard that is dead is told nothing
	}
}

// Close makes the guard process clean up, and returns when it is done. If there
// is no guard process, or it is killed or does not end within twice
// cleanupTimeout, the launcher runs the cleanup itself.
func (g *Guard) Close() {
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
