package inproc

import (
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A postedRecv is a receive whose message has not arrived yet.
type postedRecv struct {
	link *link
	recv *transport.Recv
}

// receiveAll completes the posted receives whose messages have arrived, and reports
// whether there were any.
func (s *commState) receiveAll() (progressed bool, err error) {
	step := &s.step
	posted := step.recvs[:0]
	for i, r := range step.recvs {
		received := false
		if r.link.receiver.emptyIn != step.pass && (!r.recv.Ordered || len(posted) == 0) {
			if received, err = s.receive(r.link, r.recv); err != nil {
				step.recvs = append(posted, step.recvs[i:]...)
				return progressed, err
			}
		}
		if received {
			progressed = true
		} else {
			r.link.receiver.emptyIn = step.pass // no later receive gets its message
			posted = append(posted, r)
		}
	}
	step.recvs = posted
	return progressed, nil
}

// receive completes a receive if its message has arrived.
func (s *commState) receive(l *link, r *transport.Recv) (bool, error) {
	c, pair := l.head(s.step.peeks && len(r.Into) <= bufferedMax)
	switch {
	case c == nil:
		return false, nil
	// As match.Call.Same says, without a Call for each message.
	case c.callNumber != s.step.signature.Sequence || c.call != s.step.signature.Call:
		return false, s.mismatch(l.receiver.from, c.signature(s.context))
	case c.size.size() != len(r.Into):
		return false, &transport.SizeError{Peer: l.receiver.from.endpoint.rank, Got: c.size.size(), Want: len(r.Into)}
	}
	if pair != nil {
		match.Land(r, pair.bytes(len(r.Into)))
		l.readPair(pair)
		return true, nil
	}
	return l.read(r), nil
}

// next returns the cell of the next message, or nil if it has not arrived.
func (l *link) next() *cell {
	c, _ := l.head(false)
	return c
}

// head returns the cell of the next message, and which pair cell that is if it is one. If
// it peeks, it looks only where short messages are likely.
func (l *link) head(peeks bool) (*cell, *pairCell) {
	if l.pair == nil {
		return l.nextInLink(), nil
	}
	var c *cell
	if !peeks {
		c = l.nextInLink()
	}
	p := l.nextPair(peeks)
	switch {
	case p == nil:
		return c, nil
	case p.size.ack() == uint16(l.receiver.read): // no message of the link was sent before
		return &p.cell, p
	}
	return l.nextInLink(), nil
}

func (l *link) nextInLink() *cell {
	n := l.receiver.read + 1
	if c := l.cell(n); c.holds(n) {
		return c
	}
	return nil
}

// read delivers the next message, which has arrived, and reports whether it was
// still there: the sender may have canceled a rendezvous message.
func (l *link) read(r *transport.Recv) bool {
	to := &l.receiver
	i := to.read & l.mask
	c := &l.cells[i]
	if to.reverse != nil {
		to.reverse.acknowledged(to.read+1, c.size.ack())
	}
	switch n := len(r.Into); {
	case n <= inlineMax:
		match.Land(r, c.data[:n])
	case n <= bufferedMax:
		match.Land(r, l.memory[i].buffer[:n])
	case !c.acquire(to.read + 1):
		return false
	default:
		defer to.from.completeRead() // also when Combine panics
		match.Land(r, l.memory[i].rendezvous)
	}
	to.acknowledge()
	if to.from.waiter.load()&untilFreeCell != 0 {
		to.from.waiter.wake()
	}
	return true
}

// completeRead tells a sender that one of its rendezvous messages has been read.
func (s *commState) completeRead() {
	if s.incomplete.decrement() {
		s.waiter.messageRead()
	}
}
