package inproc

import "github.com/chorale-go/chorale/transport"

// A queuedSend is a message that has not found a free cell yet.
type queuedSend struct {
	link *link
	data []byte
}

// A rendezvousSend is a message whose bytes stay in the sender's memory. It is
// complete when its receiver has read it.
type rendezvousSend struct {
	link   *link
	number uint32 // of the message on its link
}

// unread reports whether no receiver has begun to read the message.
func (r rendezvousSend) unread() bool { return r.link.cell(r.number).holds(r.number) }

// isRendezvous reports whether a message of n bytes takes the rendezvous protocol.
func isRendezvous(n int) bool { return n > bufferedMax }

// sendAll writes the queued sends that find a free cell, and reports whether there
// were any.
func (s *commState) sendAll() (progressed bool, err error) {
	step := &s.step
	queued := step.sends[:0]
	for i, send := range step.sends {
		l := send.link
		if l.sender.fullIn == step.pass || !l.write(&step.signature, send.data) {
			l.sender.fullIn = step.pass // no later message overtakes this one
			queued = append(queued, send)
			continue
		}
		progressed = true
		if isRendezvous(len(send.data)) {
			step.rendezvous = append(step.rendezvous, rendezvousSend{l, l.sender.written})
		}
		to := l.sender.to
		switch word := to.waiter.load(); {
		case word == 0:
		case word&contextEnded == 0:
			to.waiter.messageArrived(word, s.endpoint.rank, isRendezvous(len(send.data)))
		case l.readCount() != l.sender.written || l.unreadInPair() > 0: // otherwise it read the message and ended later
			step.sends = append(queued, step.sends[i+1:]...)
			return progressed, s.endedBy(to)
		}
	}
	step.sends = queued
	return progressed, nil
}

// write writes a message into the next cell, unless all are in use.
func (l *link) write(sig *transport.Signature, data []byte) bool {
	if l.pair != nil && l.writePair(sig, data) {
		return true
	}
	from := &l.sender
	if from.written-from.read > l.mask {
		if l.fetchReadCount(); from.written-from.read > l.mask {
			return false
		}
	}
	i := from.written & l.mask
	c := &l.cells[i]
	c.callNumber, c.call, c.size = sig.Sequence, sig.Call, l.header(len(data))
	switch n := len(data); {
	case n <= inlineMax:
		copy(c.data[:], data)
	case n <= bufferedMax:
		if len(l.memory[i].buffer) < n {
			l.memory[i].buffer = make([]byte, n)
		}
		copy(l.memory[i].buffer, data)
	default:
		l.memory[i].rendezvous = data
	}
	from.written++
	c.publish(from.written)
	return true
}

// cancelSends cancels every message of the step that no receiver has begun to read, and
// waits for the receivers that have begun.
func (s *commState) cancelSends() {
	for _, send := range s.step.sends {
		if isRendezvous(len(send.data)) {
			s.incomplete.decrement()
		}
	}
	for _, r := range s.step.rendezvous {
		if r.link.cell(r.number).acquire(r.number) {
			s.incomplete.decrement()
		}
	}
	s.awaitReaders()
}

// awaitReaders waits until no receiver reads this rank's memory any more. The
// endpoint has ended and its messages are canceled, so that none begins to.
func (s *commState) awaitReaders() {
	for !s.incomplete.none() {
		s.waiter.block()
	}
}
