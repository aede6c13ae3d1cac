package inproc

import (
	"fmt"

	"github.com/chorale-go/chorale/transport"
)

// CheckUnreceived returns a [transport.UnreceivedError] if a message lies here that no
// Exchange has received. A rank that leaves then has not called what others
// have: short messages need no receiver, so their senders may never notice. It
// is nil after the endpoint's part in the job has ended. No Exchange may be in
// progress.
func (e *Endpoint) CheckUnreceived() error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if e.last != nil {
		return nil
	}
	for _, s := range e.streams {
		for _, l := range s.links {
			if l.to != s {
				continue
			}
			if m := l.next(); m != nil {
				return &transport.UnreceivedError{Rank: e.rank, Peer: l.from.end.rank, Mine: s.sig, Theirs: m.signature(s.context)}
			}
		}
	}
	return nil
}

// lastCall says what the rank called last in the context of all ranks, unless
// it is in the middle of it. Job.mu is held, and the stream is gone, so that no
// step begins while this reads.
func (e *Endpoint) lastCall() string {
	s := e.streams[0]
	if s == nil || s.stepping.Load() || s.sig.Call == "" {
		return ""
	}
	return fmt.Sprintf("its last call was call %d, %q", s.sig.Sequence, s.sig.Call)
}
