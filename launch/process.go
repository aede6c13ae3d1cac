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

// A process is one that the launcher has started: a rank, or a build.
type process struct {
	rank    int // -1 when it is not a rank of its own
	cmd     *exec.Cmd
	input   io.Reader // what it reads; nil for nothing
	streams []*stream // what it prints

	mu   sync.Mutex
	over bool // its group may be somebody else's by now
}

func (p *process) String() string {
	if p.rank >= 0 {
		return "rank " + strconv.Itoa(p.rank)
	}
	return p.cmd.Args[0]
}

// signal sends a signal to the process and all that it has started.
func (p *process) signal(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		signalGroup(p.cmd.Process, sig)
	}
}

// finish ends what the process has left behind, after giving it time to print
// its last words, and returns when all that was printed has been passed on.
//
// The process has been waited for, so its number is free once its group is
// empty. Numbers are given out in turn, so that nobody else has it yet.
func (p *process) finish() {
	late, cancel := context.WithTimeout(context.Background(), lateTime)
	defer cancel()
	for _, s := range p.streams {
		select {
		case <-s.done:
		case <-late.Done():
		}
	}
	p.signal(syscall.SIGKILL)
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	for _, s := range p.streams {
		s.end()
	}
	for _, s := range p.streams {
		<-s.done
	}
}
