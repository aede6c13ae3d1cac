package tcp

import (
	"net"
	"sync"
	"time"
)

// goroutineStreams is the poller for goroutine streams, on every system.
type goroutineStreams struct {
	woken chan struct{}
}

func newGoroutineStreams([]*link) (poller, error) {
	return &goroutineStreams{woken: make(chan struct{}, 1)}, nil
}

func (p *goroutineStreams) attach(_ *link, conn net.Conn) (stream, error) {
	s := &goroutineStream{conn: conn, wake: p.wake}
	s.changed.L = &s.mu
	s.reading.Go(s.readLoop)
	s.writing.Go(s.writeLoop)
	return s, nil
}

// wait leaves it to the streams to say which of them is ready. It looks before it
// waits: wake may have been called for a link while no operation waited for that one.
func (p *goroutineStreams) wait(links []*link, d time.Duration) {
	ready := false
	for _, l := range links {
		l.ready = l.want
		ready = l.stream.(*goroutineStream).ready(l.want) || ready
	}
	if ready {
		return
	}
	if d < 0 {
		<-p.woken
		return
	}
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-p.woken:
	case <-late.C:
	}
}

func (p *goroutineStreams) spins() bool { return false }

func (p *goroutineStreams) yield() {}

func (p *goroutineStreams) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

func (p *goroutineStreams) close() {}

// A goroutineStream is a stream over a connection that blocks: one goroutine reads
// from it into a buffer, another writes from a buffer to it.
type goroutineStream struct {
	conn    net.Conn
	wake    func()
	reading sync.WaitGroup
	writing sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond // something that a goroutine waits for has changed
	closed  bool
	in      []byte // has come
	inErr   error  // comes after in
	out     []byte // is to go
	outErr  error  // why nothing goes any more
}

const streamLen = 256 << 10 // bytes of a buffer

// readLoop reads what comes, one buffer after the other. Once the stream is closed, it
// throws it away.
func (s *goroutineStream) readLoop() {
	buf := make([]byte, streamLen)
	for {
		n, err := s.conn.Read(buf)
		s.mu.Lock()
		s.in, s.inErr = buf[:n], err
		s.wake()
		for len(s.in) > 0 && !s.closed {
			s.changed.Wait()
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// writeLoop writes what is to go, until the stream is closed and nothing is left.
func (s *goroutineStream) writeLoop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next []byte
	for {
		for len(s.out) == 0 && !s.closed {
			s.changed.Wait()
		}
		if len(s.out) == 0 || s.outErr != nil {
			return
		}
		now := s.out
		s.out = next
		s.mu.Unlock()
		_, err := s.conn.Write(now)
		s.mu.Lock()
		next, s.outErr = now[:0], err
		s.wake()
	}
}

// ready reports whether one of these is possible.
func (s *goroutineStream) ready(want events) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	came := len(s.in) > 0 || s.inErr != nil
	if want&writable != 0 && (s.outErr == nil && len(s.out) < streamLen || s.outErr != nil && came) {
		return true
	}
	return want&readable != 0 && came
}

func (s *goroutineStream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := copy(p, s.in)
	s.in = s.in[n:]
	switch {
	case n > 0:
		s.changed.Broadcast()
		return n, nil
	case s.inErr != nil:
		return 0, s.inErr
	}
	return 0, errAgain
}

func (s *goroutineStream) write(head, body []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outErr != nil && len(s.in) == 0 && s.inErr == nil:
		return 0, errAgain // what the peer said before it went comes first
	case s.outErr != nil:
		return 0, s.outErr
	}
	for _, p := range [...][]byte{head, body} {
		p = p[:min(len(p), streamLen-len(s.out))]
		s.out = append(s.out, p...)
		n += len(p)
	}
	s.changed.Broadcast()
	if n < len(head)+len(body) {
		return n, errAgain
	}
	return n, nil
}

func (s *goroutineStream) close(deadline time.Time) {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	if s.conn.SetWriteDeadline(deadline) == nil {
		s.writing.Wait()
	}
	s.conn.Close()
	s.writing.Wait()
	s.reading.Wait()
}
