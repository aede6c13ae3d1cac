package tcp

import (
	"time"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/transport"
)

// watchHost has the endpoint notice when the host is lost that a link leads to. The
// system ends an idle connection with such a host. While something is under way to it, the
// system tries for many minutes; a shorter limit of its own (TCP_USER_TIMEOUT) would end
// the connection of a rank as well that computes, and reads nothing meanwhile.
func (e *Endpoint) watchHost(l *link) {
	l.remote = true
	if !e.watches {
		e.watches = true
		e.engine.GoUnlocked(e.watchHosts)
	}
}

// watchHosts ends the links with hosts from which no packet comes any more, until the
// endpoint is closed.
func (e *Endpoint) watchHosts() {
	look := time.NewTicker(network.LookPause)
	defer look.Stop()
	for {
		select {
		case <-e.connecting.ctx.Done():
			return
		case <-look.C:
		}
		e.engine.Lock()
		for _, l := range e.links {
			if l != nil && l.remote && l.err == nil && l.stream.silent() {
				l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "no packet comes from its host any more"})
			}
		}
		e.engine.Unlock()
	}
}
