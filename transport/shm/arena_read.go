package shm

import "github.com/chorale-go/chorale/transport/internal/match"

// readShared takes a message from where it lies in the peer's arena. It returns false if
// the peer has gone, or is none.
func (l *link) readShared(t partial, message []byte) bool {
	if message == nil {
		l.protocolError()
		return false
	}
	if r := t.recv; r.Got == 0 {
		r.Got = len(message)
		match.Land(r.Recv, message)
	} else {
		r.Put(message[r.Got:])
	}
	return l.finishRead(&t)
}
