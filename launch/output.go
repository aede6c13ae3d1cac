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
	// longestLine is how much of a line is held back until its end comes. A
	// longer one is passed on in pieces.
	longestLine = 1 << 20

	// lateTime is how long a process that has ended waits for others that hold
	// its output open, before they are killed.
	lateTime = time.Second

	// quietTime is how long the output of killed processes may stay open
	// without anything coming before it is given up: somebody has escaped.
	quietTime = 100 * time.Millisecond

	// pipeSize bounds what a pipe holds after the last process that wrote to it
	// has been killed.
	pipeSize = 1 << 20
)

// A sink is one of the launcher's outputs. Many streams write to it, each
// whole lines at a time.
type sink struct {
	lock   *sync.Mutex // shared by sinks that are one file
	w      io.Writer
	broken bool        // nobody reads on: the rest is dropped
	failed func(error) // called once, when a write fails
}

// newSinks returns the sinks for standard output and standard error. Where the
// two are one file, a line of one does not tear a line of the other.
func newSinks(stdout, stderr io.Writer, failed func(error)) (out, err *sink) {
	out = &sink{lock: new(sync.Mutex), w: stdout, failed: failed}
	err = &sink{lock: new(sync.Mutex), w: stderr, failed: failed}
	if mayBeOne(stdout, stderr) {
		err.lock = out.lock
	}
	return out, err
}

// mayBeOne reports whether a and b may write to the same place.
func mayBeOne(a, b io.Writer) bool {
	f, fok := a.(*os.File)
	g, gok := b.(*os.File)
	if !fok || !gok {
		return true
	}
	fi, ferr := f.Stat()
	gi, gerr := g.Stat()
	return ferr != nil || gerr != nil || os.SameFile(fi, gi)
}

// Write never fails: a process whose output nobody wants ends by being told to,
// not by an output that is stuck.
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

// A stream is one output of one process, on its way to a sink.
type stream struct {
	r    *os.File
	cut  atomic.Bool   // only what is in the pipe already is still wanted
	left int           // how much of that there may be
	done chan struct{} // closed when all has been passed on
}

// newStream returns a stream to the sink, and the file that the process is to
// write to. With lines, it passes on whole lines only, each behind the label;
// without, everything as it comes.
func newStream(to *sink, label string, lines bool) (s *stream, w *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	s = &stream{r: r, left: pipeSize, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer r.Close()
		if lines {
			copyLines(to, label, s)
		} else {
			io.Copy(to, s)
		}
	}()
	return s, w, nil
}

// Read reads from the pipe. After end, it reads what is there and no more.
func (s *stream) Read(p []byte) (int, error) {
	for !s.cut.Load() {
		n, err := s.r.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	s.r.SetReadDeadline(time.Now().Add(quietTime))
	n, err := s.r.Read(p[:min(len(p), s.left)])
	s.left -= n
	if s.left == 0 {
		err = io.EOF
	}
	return n, err
}

// end makes the stream end with what is in the pipe now, whoever still holds
// its other end open.
func (s *stream) end() {
	s.r.SetReadDeadline(time.Unix(1, 0)) // wakes the reader, which then sets its own
	s.cut.Store(true)
}

// copyLines copies lines from r to w, each behind the label and in one Write. A
// last line that is not ended gets a newline. A read error is the end.
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
		if len(held) >= longestLine || err != nil && len(held) > 0 {
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
