package inproc

import "github.com/chorale-go/chorale/transport"

// cellCost is what an unread message of a step costs at most, in bytes: one that is
// longer than the longest buffered message stays in its sender's memory.
const cellCost = bufferedMax + transport.MessageCost

// Held implements [transport.Endpoint]. It counts each unread message of a step as
// the longest that a cell holds. From each peer there are as many as a link has cells,
// in each context: 8 KiB. A sender that finds all cells in use waits. A message that
// was sent is in memory of its receiver, so that no endpoint holds any that are unsent.
func (e *Endpoint) Held() transport.Held {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	h := transport.Held{Tagged: e.tagged.bytes(), Allocated: e.Allocated()}
	for _, s := range e.comms {
		for _, l := range s.links {
			if l.sender.to == s && !s.isRevoked() {
				h.Unexpected += l.unread() * cellCost
			}
		}
	}
	return h
}
