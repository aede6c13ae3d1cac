package tcp

import (
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/transport"
)

// goroutineStreams is the poller for goroutine streams, on every system.
type goroutineStreams struct {
	woken chan struct{}
	late  *time.Timer // stopped but in wait
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
	if p.late == nil {
		p.late = time.NewTimer(d)
	} else {
		p.late.Reset(d)
	}
	defer p.late.Stop()
	select {
	case <-p.woken:
	case <-p.late.C:
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
//
// What a kernel has acknowledged is not known, so that a stream that is shut down waits
// for the peer to shut down its half: the peer's reading goroutine does so when it has
// read everything.
type goroutineStream struct {
	conn    net.Conn
	wake    func()
	reading sync.WaitGroup
	writing sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond // something that a goroutine waits for has changed
	in      []byte    // has come
	kept    []byte    // the memory of in
	inErr   error     // comes after in
	idle    bool      // nothing was taken for a while
	drops   bool      // what comes is thrown away
	out     []byte    // is to go
	going   int       // bytes that are being written
	wrote   int       // bytes that were ever to go
	outErr  error     // why nothing goes any more
	ends    bool      // nothing comes after out
}

const (
	streamLen = 256 << 10 // bytes of a buffer

	// A stream from which nothing is taken for readAheadPause reads on, up to
	// readAheadMax bytes: a peer that leaves waits until they are read.
	readAheadPause = 10 * time.Millisecond
	readAheadMax   = transport.UnexpectedMax + transport.TaggedMax
)

// readLoop reads what comes, one buffer ahead, or more while nothing is taken.
func (s *goroutineStream) readLoop() {
	idle := time.AfterFunc(time.Hour, s.setIdle)
	defer idle.Stop()
	buf := make([]byte, streamLen)
	for {
		n, err := s.conn.Read(buf)
		s.mu.Lock()
		if !s.drops {
			s.keep(buf[:n])
		}
		s.inErr = err
		s.wake()
		for len(s.in) >= streamLen && !(s.idle && len(s.in) < readAheadMax) && !s.drops && err == nil {
			idle.Reset(readAheadPause)
			s.changed.Wait()
		}
		s.mu.Unlock()
		if err != nil {
			s.endWriting()
			return
		}
	}
}

// keep adds bytes to those that have come.
func (s *goroutineStream) keep(p []byte) {
	if len(s.in)+len(p) > cap(s.in) && len(s.in)+len(p) <= cap(s.kept) {
		s.in = s.kept[:copy(s.kept[:cap(s.kept)], s.in)]
	}
	if s.in = append(s.in, p...); cap(s.in) > cap(s.kept) {
		s.kept = s.in
	}
}

func (s *goroutineStream) setIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = true
	s.changed.Broadcast()
}

// writeLoop writes what is to go, until the stream is shut down and nothing is left.
func (s *goroutineStream) writeLoop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next []byte
	for s.outErr == nil {
		if len(s.out) == 0 {
			if s.ends {
				s.endWriting()
				return
			}
			s.changed.Wait()
			continue
		}
		now := s.out
		s.out, s.going = next, len(now)
		s.mu.Unlock()
		_, err := s.conn.Write(now)
		s.mu.Lock()
		next, s.going, s.outErr = now[:0], 0, err
		s.wake()
	}
}

// endWriting tells the peer that nothing more comes.
func (s *goroutineStream) endWriting() {
	if c, ok := s.conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // it fails where the connection has ended
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
	s.in, s.idle = s.in[n:], false
	if len(s.in) == 0 && cap(s.kept) > 4*streamLen {
		s.in, s.kept = nil, nil
	}
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
	s.wrote += n
	s.changed.Broadcast()
	if n < len(head)+len(body) {
		return n, errAgain
	}
	return n, nil
}

func (s *goroutineStream) unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outErr != nil {
		return 0
	}
	return len(s.out) + s.going
}

func (s *goroutineStream) shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = true
	s.changed.Broadcast()
}

func (s *goroutineStream) unacknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in, s.drops = nil, true
	s.changed.Broadcast()
	if s.inErr != nil {
		return 0
	}
	return s.wrote + 1
}

func (s *goroutineStream) silent() (silent bool) {
	if c, ok := s.socket().(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { silent = network.HostIsSilent(fd) })
		}
	}
	return silent
}

// socket returns the connection below TLS.
func (s *goroutineStream) socket() net.Conn {
	if c, ok := s.conn.(*tls.Conn); ok {
		return c.NetConn()
	}
	return s.conn
}

func (s *goroutineStream) close() {
	s.shutdown()
	s.unacknowledged()
	s.socket().Close() // TLS would wait for a peer that does not read
	s.writing.Wait()
	s.reading.Wait()
}
