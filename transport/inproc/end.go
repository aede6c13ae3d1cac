package inproc

import (
	"strconv"

	"github.com/chorale-go/chorale/transport"
)

// Close leaves the job. Peers that wait for this rank get a [transport.PeerError],
// and Exchanges in progress fail.
func (e *Endpoint) Close() error {
	e.job.mu.Lock()
	e.end(transport.ErrClosed)
	e.change(func(f *failure) { f.ended = transport.ErrClosed })
	e.job.mu.Unlock()
	e.EndAlloc()
	e.Progress() // ends all requests
	return nil
}

// Abort ends every endpoint of the job: calls in progress and later calls fail with
// err, or with [transport.ErrAborted] if err is nil.
func (j *Job) Abort(err error) {
	if err == nil {
		err = transport.ErrAborted
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for rank := range j.endpoints {
		j.endpoints[rank].end(err)
	}
}

// fail ends the endpoint with err, unless it has ended already, and returns the
// error that it ended with.
func (e *Endpoint) fail(err error) error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if e.notice == nil {
		e.end(err)
		if e.notice.Err == transport.ErrAborted {
			e.revokeGone()
		}
	}
	return e.ended()
}

// end ends the endpoint with err, unless it has ended already: it wakes this rank,
// leaves the termination notice, and wakes every rank that may wait for this one.
// Job.mu is held.
func (e *Endpoint) end(err error) {
	if e.notice != nil {
		return
	}
	e.change(func(f *failure) { f.ended = err })
	for _, s := range e.comms {
		s.end()
	}
	e.notice = &transport.PeerError{Peer: e.rank, Err: transport.ErrAborted, Reason: err.Error()}
	if err == transport.ErrClosed {
		e.notice.Err, e.notice.Reason = transport.ErrLeft, e.lastCall()
	}
	for _, s := range e.comms {
		for _, l := range s.links {
			l.receiver.from.waiter.wake()
			l.sender.to.waiter.wake()
		}
	}
	e.job.ended++
	if e.job.aborted == nil && e.notice.Err == transport.ErrAborted {
		e.job.aborted = e.notice
	}
	for waiting := range e.job.waiting {
		waiting.tagged.wakeAll()
	}
}

// end ends the steps in the context: that in progress fails, and none can begin. Job.mu is
// held.
func (s *commState) end() {
	s.unwatch()
	s.stall.stop()
	s.waiter.end()
}

// lastCall says which call was the rank's last in context 0, the context of all
// ranks, unless the rank is in the middle of it. Job.mu is held, and the wait word
// says that the endpoint has ended, so that no step begins meanwhile.
func (e *Endpoint) lastCall() string {
	s := e.comms[0]
	if s == nil || s.step.inProgress.Load() || s.step.signature.Call == "" {
		return ""
	}
	return "its last call was call " + strconv.FormatUint(uint64(s.step.signature.Sequence), 10) + ", " + strconv.Quote(s.step.signature.Call)
}

// CheckUnreceived implements [transport.Endpoint].
func (e *Endpoint) CheckUnreceived() error {
	if e.ended() != nil {
		return nil
	}
	return e.unreceived()
}

// CheckUnreceived returns a rank and a [transport.UnreceivedError] if an endpoint that has
// closed has not received a message: one may arrive between its own check and its Close. All
// endpoints have closed.
func (j *Job) CheckUnreceived() (rank int, err error) {
	for rank := range j.endpoints {
		if err := j.endpoints[rank].unreceived(); err != nil {
			return rank, err
		}
	}
	return -1, nil
}

func (e *Endpoint) unreceived() error {
	if err := e.unreceivedStep(); err != nil {
		return err
	}
	return e.unreceivedTagged()
}

func (e *Endpoint) unreceivedTagged() error {
	q := &e.tagged
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain(transport.Any)
	m := q.messages.FirstUnreceived()
	if m == nil {
		return nil
	}
	info := m.MessageInfo
	return &transport.UnreceivedError{Rank: e.rank, Peer: m.From, Tagged: &info}
}

func (e *Endpoint) unreceivedStep() error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	for _, s := range e.comms {
		for _, l := range s.links {
			if l.sender.to != s || s.isRevoked() {
				continue
			}
			if c := l.next(); c != nil {
				return &transport.UnreceivedError{Rank: e.rank, Peer: l.receiver.from.endpoint.rank, Mine: s.step.signature, Theirs: c.signature(s.context)}
			}
		}
	}
	return nil
}

// Abort implements [transport.Endpoint].
func (e *Endpoint) Abort(why error) { _ = e.fail(why) }
