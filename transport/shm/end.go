package shm

import (
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// writeTermination writes this rank's termination record, and publishes it.
func (e *Endpoint) writeTermination() {
	n := e.engine.Notice()
	r := &e.state.termination
	lifecycle, text := aborted, n.Reason
	r.mismatched = -1
	if m := n.Mismatch; m != nil && len(m.Mine.Call)+len(m.Theirs.Call)+len(text) <= terminationMax {
		r.mismatched, r.context = int32(m.Peer), m.Mine.Context
		r.mine, r.theirs = m.Mine.Sequence, m.Theirs.Sequence
		r.mineEnd = uint32(len(m.Mine.Call))
		r.theirsEnd = r.mineEnd + uint32(len(m.Theirs.Call))
		text = m.Mine.Call + m.Theirs.Call + text
	}
	if n.Left {
		lifecycle = left
	}
	r.size = uint32(copy(r.text[:], text))
	e.state.terminate(lifecycle)
}

// readTermination reads the peer's termination record, and ends the link.
func (l *link) readTermination() {
	r := l.state.termination // once: the peer may write there although it may not
	rank := l.e.cfg.Rank
	text := string(r.text[:min(r.size, terminationMax)])
	n := progress.Notice{Left: l.state.lifecycle() == left, Reason: text}
	if r.mismatched >= 0 && r.mineEnd <= r.theirsEnd && int(r.theirsEnd) <= len(text) && !n.Left {
		n.Reason = text[r.theirsEnd:]
		n.Mismatch = &transport.MismatchError{
			Rank: l.peer, Peer: int(r.mismatched),
			Mine:   transport.Signature{Context: r.context, Sequence: r.mine, Call: text[:r.mineEnd]},
			Theirs: transport.Signature{Context: r.context, Sequence: r.theirs, Call: text[r.mineEnd:r.theirsEnd]},
		}
	}
	err := n.PeerError(rank, l.peer)
	l.e.engine.HearMismatch(err)
	l.end(err)
}

// checkTermination takes what the peer has revoked, and ends the link if the peer has
// terminated. What the peer sent before that is taken first: the end of a tagged message
// may be there, and an ended link has no transfer.
func (l *link) checkTermination() {
	terminated := l.state.lifecycle() >= left // before the last revocations are counted
	if l.err != nil || l.e.engine.Failed() || !terminated && l.state.revocations.count.Load() == l.heard {
		return
	}
	l.poll()
	l.hear()
	if terminated && l.err == nil && !l.e.engine.Failed() {
		l.readTermination()
	}
}

// checkPeers ends the links whose peers have terminated, and takes what peers have revoked.
func (e *Endpoint) checkPeers() {
	e.polls.terminated, e.polls.told = false, e.state.told.Load()
	for i := range e.links {
		if i != e.cfg.Rank {
			e.links[i].checkTermination()
		}
	}
}

// checkPeer takes what the peer has sent, up to a message that is not expected, and
// ends the link if the peer has terminated.
func (l *link) checkPeer() {
	l.checkTermination()
	l.poll()
}

// lose ends the link because the launcher says that the peer is lost.
func (l *link) lose(reason string) {
	if l.state.lifecycle() >= left {
		l.checkTermination() // it had published a reason
		return
	}
	l.hear()
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: reason})
}

// end notes that the peer has gone, and why. What it has sent is still there.
func (l *link) end(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.e.polls.progressed = true
	l.dropTagged()
	l.failWaiters()
}

// failWaiters fails the steps that wait for a peer that has gone: for a message that was
// not sent, or for the receiver of one.
func (l *link) failWaiters() {
	if l.err == nil || l.e.engine.Failed() {
		return
	}
	l.poll() // what the peer has sent was there before it terminated
	l.e.engine.Steps(func(o *progress.Op) {
		if l.blocks(o) {
			l.e.engine.FailStep(&o.Step, l.err)
		}
	})
}

// failUndelivered fails the step if it sends a message to a rank that has gone without
// having taken it. Messages of up to written bytes have been written.
func (e *Endpoint) failUndelivered(step *transport.Step, written int) {
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if l := &e.links[to]; l.err != nil && !(l.out.drained() && l.pair.drained() && len(step.Sends[i].Data) <= written) {
				l.poll() // a mismatch says more than the loss of the peer
				e.engine.RevokeLocked(transport.Communicator(step.Signature.Context), l.err)
			}
		}
	}
}
