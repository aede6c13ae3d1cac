package launch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"time"
)

// Guard is the work of a guard process. It notes what the launcher says on r,
// normally standard input, and when r ends, for whatever reason, it removes
// what is left of the job: processes and files. [Run] starts a guard when
// [Config.Guard] says how.
func Guard(r io.Reader) {
	signal.Ignore(forwarded...) // they are meant for the launcher, which then ends the job in good order
	var left debris
	for in := bufio.NewScanner(r); in.Scan(); {
		var n note
		if json.Unmarshal(in.Bytes(), &n) == nil {
			left.take(n)
		}
	}
	left.clear()
}

// A note tells a guard of something that must not outlive the job. It is one
// line of JSON with one field.
type note struct {
	Token string `json:"token,omitempty"` // a variable that the environment of every process of the job holds
	Group int    `json:"group,omitempty"` // a process group that lives
	Ended int    `json:"ended,omitempty"` // a process group that lives no more
	Path  string `json:"path,omitempty"`  // a file or directory that is about to be made
}

// debris is what is left of a job.
type debris struct {
	token  string
	groups map[int]bool
	paths  []string
}

func (d *debris) take(n note) {
	switch {
	case n.Token != "":
		d.token = n.Token
	case n.Group != 0:
		if d.groups == nil {
			d.groups = make(map[int]bool)
		}
		d.groups[n.Group] = true
	case n.Ended != 0:
		delete(d.groups, n.Ended)
	case n.Path != "":
		d.paths = append(d.paths, n.Path)
	}
}

// clearTime is how long a guard tries to remove what is left.
const clearTime = 3 * time.Second

// clear removes it.
func (d *debris) clear() {
	for pid := range d.groups {
		killGroup(pid)
	}
	deadline := time.Now().Add(clearTime)
	// A process may start another while the search goes on, and a process that
	// is killed may write on for a moment.
	for sweep(d.token) > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	for _, path := range d.paths {
		for os.RemoveAll(path) != nil && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// A guard is the launcher's end of its guard process.
type guard struct {
	mu   sync.Mutex
	left debris
	pipe io.WriteCloser // nil without a guard process
	cmd  *exec.Cmd
}

// startGuard starts this process's own executable with the arguments given, or
// nothing when there are none. The guard process gets a session of its own, so
// that what ends the launcher does not reach it, and none of the job's places
// in its environment, so that it is no debris itself.
func startGuard(args []string) (*guard, error) {
	g := &guard{}
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
		Env:         withoutPlace(os.Environ()),
		Dir:         os.TempDir(),
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

// note tells the guard. A guard that is dead is replaced by close.
func (g *guard) note(n note) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left.take(n)
	if g.pipe != nil {
		g.pipe.Write(encode(n))
	}
}

// close has the guard remove what is left, and returns when it is done. Where
// there is no guard, or it is killed or stopped, the launcher does it itself.
func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil {
		g.pipe.Close()
		stop := time.AfterFunc(2*clearTime, func() { g.cmd.Process.Kill() })
		defer stop.Stop()
		if g.cmd.Wait() == nil {
			return
		}
	}
	g.left.clear()
}
