package launch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxLine is the number of bytes of a line that are buffered until its end
	// comes. A longer line is forwarded in pieces.
	maxLine = 1 << 20

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

// A sink is one of the launcher's outputs. Many output pipes write to it, each
// whole lines at a time.
type sink struct {
	lock   *sync.Mutex // shared by sinks that are one file
	w      io.Writer
	broken bool        // a write failed: the rest is dropped
	failed func(error) // called once, when a write fails
}

// newSinks returns the sinks for standard output and standard error. If the two
// are one file, their lines are not torn either.
func newSinks(stdout, stderr io.Writer, failed func(error)) (out, err *sink) {
	out = &sink{lock: new(sync.Mutex), w: stdout, failed: failed}
	err = &sink{lock: new(sync.Mutex), w: stderr, failed: failed}
	if maybeSame(stdout, stderr) {
		err.lock = out.lock
	}
	return out, err
}

// maybeSame reports whether a and b may write to the same file.
func maybeSame(a, b io.Writer) bool {
	f, fok := a.(*os.File)
	g, gok := b.(*os.File)
	if !fok || !gok {
		return true
	}
	fi, ferr := f.Stat()
	gi, gerr := g.Stat()
	return ferr != nil || gerr != nil || os.SameFile(fi, gi)
}

// Write never fails: if the launcher's output fails, the processes are ended by a
// signal, not by a blocked pipe.
func (s *sink) Write(p []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.broken || len(p) == 0 {
		return len(p), nil
	}
	if _, err := s.w.Write(p); err != nil {
		s.broken = true
		s.failed(err)
	}
	return len(p), nil
}

// An outputPipe forwards one output of one process to a sink.
type outputPipe struct {
	r        *os.File
	draining atomic.Bool   // only the bytes that are in the pipe already are still read
	left     int           // the most bytes that may be in it
	done     chan struct{} // closed when all has been forwarded
}

// newOutputPipe returns a pipe to the sink, and the file to which the process
// writes. With lines, whole lines are forwarded, each behind the label; without,
// the bytes as they come.
func newOutputPipe(to *sink, label string, lines bool) (p *outputPipe, w *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p = &outputPipe{r: r, left: pipeSize, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer r.Close()
		if lines {
			copyLines(to, label, p)
		} else {
			io.Copy(to, p)
		}
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

// copyLines copies lines from r to w, each behind the label and in one Write. A
// last line without a newline gets one. A read error ends the copy.
func copyLines(w io.Writer, label string, r io.Reader) {
	var (
		held  []byte // the beginning of a line
		out   []byte // lines with labels
		chunk = make([]byte, 32<<10)
	)
	emit := func(line []byte) {
		out = append(append(out, label...), line...)
		if line[len(line)-1] != '\n' {
			out = append(out, '\n')
		}
	}
	for {
		n, err := r.Read(chunk)
		rest := chunk[:n]
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			held = append(held, rest[:i+1]...)
			emit(held)
			held, rest = held[:0], rest[i+1:]
		}
		held = append(held, rest...)
		if len(held) >= maxLine || err != nil && len(held) > 0 {
			emit(held)
			held = held[:0]
		}
		w.Write(out)
		out = out[:0]
		if err != nil {
			return
		}
	}
}
