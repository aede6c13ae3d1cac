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
	if !l.state.stillJoined() { // its memory may have been reused before it was read
		l.readTermination()
		l.e.engine.Fail(l.err)
		return false
	}
	l.reply(&t, complete)
	l.finish(&t)
	return true
}

// receivePlace reads the contents of a tagged message that this rank has asked for in the
// peer's arena. If it cannot map that, it asks for them again.
func (l *link) receivePlace(p *fragmentPayload) bool {
	m := l.e.engine.Tagged().Requested(l.peer, p.number)
	if m == nil || m.Got > 0 || m.Size == 0 {
		l.protocolError()
		return false
	}
	b, err := l.shared(p.offset, uint64(m.Size))
	if b == nil && err == nil {
		l.protocolError()
		return false
	}
	copy(m.Data, b)
	l.take()
	if err != nil {
		l.control(controlFrame{kind: ctsFrame, number: p.number})
		return true
	}
	if !l.state.stillJoined() {
		l.readTermination()
		return false
	}
	m.Got = m.Size
	l.control(controlFrame{kind: readFrame, number: p.number})
	m.Done(nil)
	return true
}
