package tcp

import (
	"net"
	"sync"
	"time"
)

// pumps waits for pumps, on every system.
type pumps struct {
	bell chan struct{}
}

func newPumps([]*link) (poller, error) {
	return &pumps{bell: make(chan struct{}, 1)}, nil
}

func (p *pumps) attach(_ *link, conn net.Conn) (stream, error) {
	s := &pump{conn: conn, wake: p.wake}
	s.changed.L = &s.mu
	s.filling.Go(s.fill)
	s.emptied.Go(s.empty)
	return s, nil
}

// wait leaves it to the streams to say which of them is ready. It looks before it
// waits: the bell may have rung for a link while nobody waited for that one yet.
func (p *pumps) wait(links []*link, d time.Duration) {
	ready := false
	for _, l := range links {
		l.ready = l.want
		ready = l.stream.(*pump).ready(l.want) || ready
	}
	if ready {
		return
	}
	if d < 0 {
		<-p.bell
		return
	}
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-p.bell:
	case <-late.C:
	}
}

func (p *pumps) spins() bool { return false }

func (p *pumps) yield() {}

func (p *pumps) wake() {
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

func (p *pumps) close() {}

// A pump is a stream over a connection that blocks: one goroutine fills a
// buffer from it, another empties a buffer into it.
type pump struct {
	conn    net.Conn
	wake    func()
	filling sync.WaitGroup
	emptied sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond // something that a goroutine waits for has changed
	closed  bool
	in      []byte // has come
	inErr   error  // comes after in
	out     []byte // is to go
	outErr  error  // why nothing goes any more
}

const pumpLen = 256 << 10 // bytes that a pump takes

// fill reads what comes, one buffer after the other. Once the pump is closed,
// it throws it away.
func (s *pump) fill() {
	buf := make([]byte, pumpLen)
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

// empty writes what is to go, until the pump is closed and nothing is left.
func (s *pump) empty() {
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
func (s *pump) ready(want events) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	came := len(s.in) > 0 || s.inErr != nil
	if want&writable != 0 && (s.outErr == nil && len(s.out) < pumpLen || s.outErr != nil && came) {
		return true
	}
	return want&readable != 0 && came
}

func (s *pump) read(p []byte) (int, error) {
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

func (s *pump) write(head, body []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outErr != nil && len(s.in) == 0 && s.inErr == nil:
		return 0, errAgain // what the peer said before it went comes first
	case s.outErr != nil:
		return 0, s.outErr
	}
	for _, p := range [...][]byte{head, body} {
		p = p[:min(len(p), pumpLen-len(s.out))]
		s.out = append(s.out, p...)
		n += len(p)
	}
	s.changed.Broadcast()
	if n < len(head)+len(body) {
		return n, errAgain
	}
	return n, nil
}

func (s *pump) close(deadline time.Time) {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	if s.conn.SetWriteDeadline(deadline) == nil {
		s.emptied.Wait()
	}
	s.conn.Close()
	s.emptied.Wait()
	s.filling.Wait()
}
