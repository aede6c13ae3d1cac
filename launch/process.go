package launch

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

// A task is what a supervisor sees to its end. Its methods may be called concurrently,
// and none of them blocks.
type task interface {
	String() string
	// place returns the rank, or -1 if it is not a single rank, and the name of the host,
	// or "" for this one.
	place() (rank int, host string)
	signal(os.Signal)
}

// A process is one that the launcher has started: a rank, or a build.
type process struct {
	rank    int    // -1 if it is not a single rank
	name    string // of one that is no rank
	cmd     *exec.Cmd
	memory  bool          // it gets the job's shared memory
	input   io.Reader     // its standard input; nil for none
	outputs []*outputPipe // its standard output and standard error
	notify  func(event)   // is called when it ends and when it is finished; nil means the supervisor

	mu   sync.Mutex
	over bool // its process group is gone, and the number may be reused
}

func (p *process) String() string {
	if p.rank >= 0 {
		return "rank " + strconv.Itoa(p.rank)
	}
	return p.name
}

func (p *process) place() (rank int, host string) { return p.rank, "" }

// signal sends a signal to the process and to all processes of its group.
func (p *process) signal(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		signalGroup(p.cmd.Process, sig)
	}
}

// finish kills the processes that the process has left behind, after orphanTime at
// most, and returns when all output has been forwarded, or over is closed.
//
// The process has been waited for, so its number is free once its group is
// empty. The kernel gives out numbers in turn, so it is not reused this soon.
func (p *process) finish(over <-chan struct{}) {
	orphans, cancel := context.WithTimeout(context.Background(), orphanTime)
	defer cancel()
	for _, o := range p.outputs {
		select {
		case <-o.done:
		case <-orphans.Done():
		}
	}
	p.signal(syscall.SIGKILL)
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	for _, o := range p.outputs {
		o.drain()
	}
	for _, o := range p.outputs {
		select {
		case <-o.done:
		case <-over: // a write to the launcher's output is blocked
		}
	}
}
