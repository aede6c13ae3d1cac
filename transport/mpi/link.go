//go:build mpi

package mpi

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A link is what is between this rank and a peer.
type link struct {
	e       *Endpoint
	peer    int
	err     error // why nothing comes from the peer any more
	ending  error // the same, while transfers with the peer are under way that will end
	lost    bool  // the launcher says so: no transfer with the peer will end
	changed bool  // it is in the endpoint's list
	out     sendSide
	in      recvSide
	credits match.Credits // for messages of steps
	tagged  progress.TaggedPeer
}

// A recvSide is the half of a link that receives.
type recvSide struct {
	queue     match.Queue
	announced []announcement // unexpected messages that were announced
	heard     bool           // something has come since this was last looked at
	asked     uint32         // CTS to the peer
	frames    uint32         // frames of the peer that have arrived
}

// An announcement is the number of an unexpected message that was announced.
type announcement struct {
	message *match.Message
	number  uint32
}

// link returns the link with a rank.
func (e *Endpoint) link(rank int) *link {
	if e.links[rank] == nil {
		e.links[rank] = &link{e: e, peer: rank}
	}
	return e.links[rank]
}

// end notes that nothing comes from the peer any more, and why. It fails the endpoint
// if a step waits for the peer.
func (l *link) end(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.e.doom = true
	l.failWaiters()
	l.dropUnsent()
	l.e.engine.PeerGone(l.peer, err)
	l.tagged.Drop()
	l.e.pulls.drop(func(p *pull) bool { return p.link == l })
}

// lose ends a link with whose peer no transfer will end any more.
func (l *link) lose(reason string) {
	l.lost, l.e.deserted = true, true
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: reason})
	l.e.pulls.cancel(l, func(*piece) bool { return true })
	l.dropQueued(func(*outgoing) bool { return true })
}

// failWaiters fails the endpoint if a step waits for a peer from which nothing comes
// any more.
func (l *link) failWaiters() {
	if l.err != nil && (l.starves() || l.sendsSteps() || l.e.pulls.steps(l)) {
		l.e.engine.Fail(l.err)
	}
}

// starves reports whether a step waits for a message that has not come.
func (l *link) starves() bool {
	for _, r := range l.in.queue.Receives() {
		if m := l.in.queue.FirstIn(r.Step.Context); m == nil || m.Rendezvous {
			return true
		}
	}
	return false
}

// gone returns why nothing comes from the peer any more, but for transfers under way.
func (l *link) gone() error {
	if l.err != nil {
		return l.err
	}
	return l.ending
}

// release drops what has come in a context.
func (l *link) release(context uint32) {
	freed := l.in.queue.Held()
	l.in.queue.Release(context)
	freed -= l.in.queue.Held()
	l.in.announced = slices.DeleteFunc(l.in.announced, func(a announcement) bool {
		if a.message.Released {
			l.control(header{kind: discardFrame, number: a.number})
			freed -= transport.MessageCost
		}
		return a.message.Released
	})
	if freed > 0 {
		l.received(freed - transport.MessageCost)
	}
	l.resume()
}

// recheck has settle look at a link: a receive is new, or may go ahead.
func (e *Endpoint) recheck(l *link) {
	if !l.changed {
		l.changed = true
		e.changed = append(e.changed, l)
	}
}

// settle looks once more at the links for which something has changed.
func (e *Endpoint) settle() {
	for len(e.changed) > 0 {
		l := e.changed[len(e.changed)-1]
		e.changed = e.changed[:len(e.changed)-1]
		l.changed = false
		if !e.engine.Failed() {
			l.recheckNow()
		}
	}
}
