package launch

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

const (
	// orphanTime is how long the children of a process that has ended may hold
	// its output open before they are killed.
	orphanTime = time.Second

	// drainTimeout is how long the output of killed processes may stay open and
	// silent before it is abandoned: a process has escaped from its group.
	drainTimeout = 100 * time.Millisecond

	// pipeSize bounds the bytes in a pipe after the last process that wrote to it
	// has been killed.
	pipeSize = 1 << 20
)

// An outputPipe reads what a process prints, until the pipe ends or drain is called.
type outputPipe struct {
	r        *os.File
	draining atomic.Bool   // only the bytes that are in the pipe already are still read
	left     int           // the most bytes that may be in it
	done     chan struct{} // closed when all has been forwarded
}

// newOutputPipe returns a pipe that forward reads to its end, and the file to which the
// process writes.
func newOutputPipe(forward func(io.Reader)) (p *outputPipe, w *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p = &outputPipe{r: r, left: pipeSize, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer r.Close()
		forward(p)
	}()
	return p, w, nil
}

// Read reads from the pipe. After drain, it reads the bytes that are in the pipe
// and no more.
func (p *outputPipe) Read(buf []byte) (int, error) {
	for !p.draining.Load() {
		n, err := p.r.Read(buf)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	p.r.SetReadDeadline(time.Now().Add(drainTimeout))
	n, err := p.r.Read(buf[:min(len(buf), p.left)])
	p.left -= n
	if p.left == 0 {
		err = io.EOF
	}
	return n, err
}

// drain makes the pipe end with its present bytes, even if a process still holds
// its other end open.
func (p *outputPipe) drain() {
	p.r.SetReadDeadline(time.Unix(1, 0)) // wakes the reader, which then sets its own
	p.draining.Store(true)
}
