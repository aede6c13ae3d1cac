package launch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/launch/internal/remote"
)

// A connection is a process, normally ssh, through which a launcher reaches an agent.
type connection struct {
	host    string
	command string // the name of the process's executable
	self    string // the path of this process's executable
	size    int64  // its length
	process *process
	stdin   *io.PipeWriter // its end is the agent's, too
	words   tail           // what the process says on standard error
	greeted chan greeting  // has room for one
	begun   chan struct{}  // closed when frames are read, or never will be

	exited   chan struct{} // closed when the process has ended
	exit     Exit          // set before
	finished chan struct{} // closed when nothing is left of it

	mu   sync.Mutex
	read func(*bufio.Reader) // reads the frames; nil if there will be none
	ours error               // why this side has ended the connection; nil if it did not
	once sync.Once           // closes begun
}

// A greeting is how the agent has begun to speak, or that it did not.
type greeting struct {
	hello remote.Hello
	noise []byte // what the host printed before
	err   error
}

// connect starts a connection to a host.
func (j *job) connect(name string) (*connection, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(self)
	if err != nil {
		return nil, err
	}
	args := j.cfg.Remote.command(name, self, info.Size())
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, usagef("host %s: %w", name, err)
	}
	r, w := io.Pipe()
	c := &connection{
		host: name, command: filepath.Base(args[0]), self: self, size: info.Size(), stdin: w,
		words:   tail{done: make(chan struct{})},
		greeted: make(chan greeting, 1), begun: make(chan struct{}), exited: make(chan struct{}), finished: make(chan struct{}),
	}
	c.process = &process{
		rank: -1, name: "the connection to host " + name, input: r,
		cmd: &exec.Cmd{Path: path, Args: args, Env: j.cfg.Env},
		notify: func(e event) {
			if e.finished {
				close(c.finished)
				return
			}
			c.exit = e.exit
			close(c.exited)
			r.Close() // so that no write to stdin blocks
		},
	}
	if err := j.start(c.process, [2]func(io.Reader){c.receive, c.words.copy}); err != nil {
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	return c, nil
}

// receive reads the agent's hello, and what follows once it is known who reads that.
func (c *connection) receive(r io.Reader) {
	in := bufio.NewReaderSize(r, remote.MaxFrame)
	h, noise, err := remote.ReadHello(in, c.copy)
	c.greeted <- greeting{h, noise, err}
	<-c.begun
	c.mu.Lock()
	read := c.read
	c.mu.Unlock()
	if read != nil {
		read(in)
	}
}

// copy writes this process's executable to a host that has no agent.
func (c *connection) copy(system string) error {
	if want := systemName(); want != "" && system != want {
		return fmt.Errorf("it is %s, has no chorale at %s, and could not run this one, which is for %s: want one there, or its path with --agent", system, c.self, want)
	}
	file, err := os.Open(c.self)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.CopyN(c.stdin, file, c.size)
	return err
}

// systemName returns what uname -sm says on a host that can run this process's
// executable; "" if that is not known.
func systemName() string {
	machines := map[string]string{
		"linux/amd64": "Linux x86_64", "linux/arm64": "Linux aarch64", "darwin/amd64": "Darwin x86_64", "darwin/arm64": "Darwin arm64",
	}
	return machines[runtime.GOOS+"/"+runtime.GOARCH]
}

// serve has read called with what the agent says after its hello.
func (c *connection) serve(read func(*bufio.Reader)) {
	c.mu.Lock()
	c.read = read
	c.mu.Unlock()
	c.once.Do(func() { close(c.begun) })
}

// blame says why this side ends the connection.
func (c *connection) blame(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ours == nil {
		c.ours = why
	}
}

// abandon ends the connection at once, for a reason of this side.
func (c *connection) abandon(why error) {
	c.blame(why)
	c.process.signal(syscall.SIGKILL)
}

// end ends the connection, and returns when its process has ended. If that is not so
// within the limit, it is killed.
func (c *connection) end(limit time.Duration) {
	c.stdin.Close()
	c.once.Do(func() { close(c.begun) })
	kill := time.AfterFunc(limit, func() { c.process.signal(syscall.SIGKILL) })
	defer kill.Stop()
	<-c.exited
}

// reason says why the connection has ended before the agent said hello, or broke later.
func (c *connection) reason() error {
	c.mu.Lock()
	ours := c.ours
	c.mu.Unlock()
	if ours != nil {
		return ours
	}
	words := c.words.text()
	if words != "" {
		words = ": " + words
	}
	return fmt.Errorf("%s %s%s", c.command, c.exit.phrase(), words)
}

// noHello is the error of a connection that has ended before the agent said hello.
func (c *connection) noHello(g greeting) error {
	reason := c.reason()
	if c.exit.Status == 126 || c.exit.Status == 127 {
		reason = fmt.Errorf("%w: want chorale on the host, and its path with --agent", reason)
	}
	if noise := remote.Printable(g.noise, maxWords); noise != "" {
		reason = fmt.Errorf("%w: the host printed %q", reason, noise)
	}
	return fmt.Errorf("host %s: %w", c.host, reason)
}

// mayRetry reports whether another attempt may succeed: the host's sshd refuses or drops
// connections while many are made at once.
func (c *connection) mayRetry() bool {
	words := c.words.text()
	return c.exit.Status == 255 && (strings.Contains(words, "Connection refused") || strings.Contains(words, "Connection reset") ||
		strings.Contains(words, "kex_exchange_identification"))
}

// A tail keeps the last bytes that a process prints.
type tail struct {
	done chan struct{} // closed at their end

	mu    sync.Mutex
	bytes []byte
}

func (t *tail) copy(r io.Reader) {
	defer close(t.done)
	io.Copy(t, r)
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, p...)
	t.bytes = t.bytes[:copy(t.bytes, t.bytes[max(0, len(t.bytes)-maxWords):])]
	return len(p), nil
}

// text returns the last lines, when the process has ended.
func (t *tail) text() string {
	select {
	case <-t.done:
	case <-time.After(orphanTime): // another process holds it open
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return remote.Printable(t.bytes, maxWords)
}
