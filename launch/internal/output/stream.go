package output

import (
	"bytes"
	"io"
)

// MaxLine is the hold of a rank's streams.
const MaxLine = 1 << 20

// A Stream is one output of one process on its way to a sink.
type Stream struct {
	To    *Sink
	Label string // precedes each line; "" leaves the bytes as they are
	Hold  int    // how many bytes of a line are held back until its end comes; 0 writes bytes as they come

	buf    []byte // what is not written yet, with labels
	whole  int    // the number of bytes of buf that are whole lines
	inLine bool   // the last line has no end yet
	open   bool   // and a part of it is written

	// Guarded by the lock of the sink.
	cut     bool // the line was cut off from its rest, which has not come
	overdue bool // the line was cut, and has not ended
}

// Copy forwards what it reads from r, until that ends.
func (s *Stream) Copy(r io.Reader) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := r.Read(chunk)
		if s.Hold > 0 {
			s.add(chunk[:n])
		} else if n > 0 {
			s.To.write(s, chunk[:n], false)
		}
		if err != nil {
			s.end()
			return
		}
	}
}

// add writes the lines that end in p. A line that is too long to be held back is
// written as it comes.
func (s *Stream) add(p []byte) {
	for line := range bytes.Lines(p) {
		if !s.inLine {
			s.buf = append(s.buf, s.Label...)
		}
		s.buf = append(s.buf, line...)
		if s.inLine = line[len(line)-1] != '\n'; !s.inLine {
			s.whole = len(s.buf)
		}
	}
	goesOn := s.open && s.whole == 0
	s.open = s.inLine && (goesOn || len(s.buf)-s.whole >= s.Hold)
	n := s.whole
	if s.open {
		n = len(s.buf)
	}
	if n == 0 {
		return
	}
	s.To.write(s, s.buf[:n], s.open)
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	s.whole = 0
}

// end writes a last line that has no end. If it has a label, it gets one.
func (s *Stream) end() {
	if !s.inLine {
		return
	}
	if s.Label != "" {
		s.buf = append(s.buf, '\n')
	}
	s.To.write(s, s.buf, false)
}
