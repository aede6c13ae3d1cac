package shm

import (
	"github.com/chorale-go/chorale/transport"
)

// pullsFull reports whether pullRequestsMax pull requests are open.
func (r *recvRing) pullsFull() bool {
	n := 0
	for i := range r.partials {
		if r.partials[i].requested {
			n++
		}
	}
	return n == pullRequestsMax
}

// pull reads a message that the peer has announced from the peer's memory, if that is
// possible. Otherwise it makes a pull request.
func (l *link) pull(t partial, c *cell) bool {
	p := c.remote()
	_, before, _ := t.state()
	if l.canReadPeer() {
		l.readRemote(&t, uintptr(p.address))
		_, got, size := t.state()
		switch {
		case got == before: // not allowed: make a pull request
			l.cma = cmaFails
		case l.state.lifecycle() != joined: // its memory may have been reused before it was read
			l.readTermination()
			l.e.engine.Fail(l.err)
			return false
		case got < size || l.processEnded(): // another process may have its number by now
			l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "its process has ended"})
			l.e.engine.Fail(l.err)
			return false
		default:
			l.take()
			l.finish(&t)
			return true
		}
	}
	t.requested = true
	l.in.partials = append(l.in.partials, t)
	l.in.requestPull(l.in.pulls, l.in.taken+1)
	l.in.pulls++
	l.take()
	return true
}

// readRemote reads a message from the peer's memory, in pieces that stay in cache
// where they are combined. It leaves off at an error.
func (l *link) readRemote(t *partial, address uintptr) {
	pid := int(l.state.cma.pid.Load())
	if r := t.recv; r != nil && r.Combine != nil {
		elem := max(r.Elem, 1)
		for r.Got < len(r.Into) {
			n := min(max(bulkLen/elem, 1)*elem, len(r.Into)-r.Got)
			b := l.e.bulkBuffer(n)
			if readPeer(pid, b, address+uintptr(r.Got)) != nil {
				return
			}
			t.put(b)
		}
		return
	}
	into, got, size := t.state()
	if readPeer(pid, into[got:], address+uintptr(got)) != nil {
		return
	}
	if t.recv != nil {
		t.recv.Got = size
	} else {
		t.unexpected.Got = size
	}
}

// bulkLen is how many bytes are read at a time that are combined.
const bulkLen = 128 << 10

func (e *Endpoint) bulkBuffer(n int) []byte {
	if cap(e.bulk) < n {
		e.bulk = make([]byte, max(n, bulkLen))
	}
	return e.bulk[:n]
}
