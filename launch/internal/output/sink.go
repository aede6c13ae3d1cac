package output

import (
	"io"
	"os"
	"time"
)

const (
	// lineWait is how long the other lines of a file wait for a line to grow. If it
	// has not grown by then, it is cut.
	lineWait = time.Second

	// lineWaits is how many times lineWait the other lines wait in all. A line that has
	// been cut may have no end: from then on, they do not wait for it.
	lineWaits = 2

	// cutMark ends the first part of a line that is cut, and begins the second one.
	cutMark = "[...]"
)

// A Sink is one of the launcher's outputs. Streams write whole lines to it. They
// write a line that is too long to be held back in pieces, as it comes.
type Sink struct {
	*turns
	w      io.Writer
	broken bool        // a write failed: the rest is dropped
	failed func(error) // called once, when a write fails
}

// turns decide whose turn it is to write to a file. No other stream writes between
// the pieces of a line, unless the line keeps it waiting for too long.
type turns struct {
	lock chan struct{}   // full while a stream writes; guards all that follows
	over <-chan struct{} // closed when the job is over: nobody waits any longer

	open   *Stream       // the stream whose line goes on, or nil
	closed chan struct{} // closed when the line of open has ended
	writes int           // how many there were
}

// NewSinks returns the sinks for standard output and standard error. If the two
// are one file, their lines are not torn either.
func NewSinks(stdout, stderr io.Writer, over <-chan struct{}, failed func(error)) (out, err *Sink) {
	newTurns := func() *turns { return &turns{lock: make(chan struct{}, 1), over: over} }
	out = &Sink{turns: newTurns(), w: stdout, failed: failed}
	err = &Sink{turns: newTurns(), w: stderr, failed: failed}
	if maybeSame(stdout, stderr) {
		err.turns = out.turns
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

// WriteLine writes a line that belongs to no stream, with its end.
func (s *Sink) WriteLine(line string) { s.write(&Stream{}, []byte(line), false) }

// write writes p for a stream. If a line of the stream goes on, p continues it. If open
// is set, the last line of p goes on. Write never fails: if the
// launcher's output fails, the processes are ended by a signal, not by a blocked
// pipe.
func (s *Sink) write(from *Stream, p []byte, open bool) {
	if !s.acquire(from) {
		return
	}
	defer s.release()
	if from.cut {
		from.cut = false
		s.put([]byte(from.Label + cutMark))
	}
	s.put(p)
	switch {
	case !open:
		from.overdue = false
		s.close()
	case s.open == nil:
		s.open, s.closed = from, make(chan struct{})
	}
}

// put writes to the file, if it can be written to. The caller has the lock.
func (s *Sink) put(p []byte) {
	s.writes++
	if s.broken || len(p) == 0 {
		return
	}
	if _, err := s.w.Write(p); err != nil {
		s.broken = true
		s.failed(err)
	}
}

// acquire waits until the stream may write, and locks the file for it. It returns
// false if the job is over first.
func (t *turns) acquire(from *Stream) bool {
	before := -1 // how many writes there were before the wait
	for waits := 0; ; {
		select {
		case t.lock <- struct{}{}: // those that wait here are served in turn
		case <-t.over:
			return false
		}
		select {
		case <-t.over: // the file is the caller's again
			t.release()
			return false
		default:
		}
		if t.open == nil || t.open == from {
			return true
		}
		if waits == lineWaits || t.writes == before || t.open.overdue {
			t.cut()
			return true
		}
		closed := t.closed
		before = t.writes
		t.release()
		select {
		case <-closed:
			before = -1
		case <-time.After(lineWait):
			waits++
		case <-t.over:
			return false
		}
	}
}

func (t *turns) release() { <-t.lock }

// cut ends the line that goes on. If it has a label, the cut is marked, and its
// rest will get a label of its own.
func (t *turns) cut() {
	l := t.open
	l.overdue = true
	if l.Label != "" {
		l.To.put([]byte(cutMark + "\n"))
		l.cut = true
	}
	t.close()
}

// close lets other streams write, if a line has kept them waiting.
func (t *turns) close() {
	if t.open != nil {
		t.open = nil
		close(t.closed)
	}
}
