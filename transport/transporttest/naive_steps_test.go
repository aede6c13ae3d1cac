package transporttest

import (
	"context"
	"errors"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

type naiveLink struct {
	from, to int
	context  uint32
}

// A naiveMessage is a message of a step. Its data is the sender's memory, so that
// the sender waits until it is received.
type naiveMessage struct {
	naiveLink
	sig      transport.Signature
	data     []byte
	received bool
}

func (e *naive) Exchange(ctx context.Context, step transport.Step) error {
	defer e.lock(ctx)()
	err := e.exchange(ctx, step)
	peerErr := new(transport.PeerError)
	context := step.Signature.Context
	switch {
	case err == nil:
		return nil
	case errors.As(err, &peerErr), errors.Is(err, ctx.Err()):
		e.revoke(transport.Communicator(context), err)
	default:
		e.fail(err)
	}
	return e.err(context)
}

func (e *naive) exchange(ctx context.Context, step transport.Step) error {
	if err := e.check(ctx, step); err != nil {
		return err
	}
	mine := step.Signature
	e.last, e.calls[mine.Context] = mine, mine
	defer delete(e.calls, mine.Context)
	defer func() {
		if v := recover(); v != nil {
			e.fail(transport.ErrPanicked)
			panic(v)
		}
	}()
	sent := e.send(step)
	defer e.withdraw(sent)
	pending := slices.Clone(step.Recvs)
	for {
		var err error
		if pending, err = e.receive(mine, pending); err != nil {
			return err
		}
		unreceived := slices.DeleteFunc(slices.Clone(sent), func(m *naiveMessage) bool { return m.received })
		switch {
		case e.err(mine.Context) != nil:
			return e.err(mine.Context)
		case len(pending) == 0 && len(unreceived) == 0:
			return nil
		case ctx.Err() != nil:
			return transport.Cause(ctx)
		}
		if err := e.unsatisfiable(mine, unreceived, pending); err != nil {
			return err
		}
		e.wait(transport.Stall{Signature: mine, Peers: waitedFor(unreceived, pending)})
	}
}

// check returns why the step cannot begin, or nil.
func (e *naive) check(ctx context.Context, step transport.Step) error {
	if err := e.err(step.Signature.Context); err != nil {
		return err
	}
	if _, busy := e.calls[step.Signature.Context]; busy {
		return transport.ErrTwoSteps
	}
	var peers []int
	for _, s := range step.Sends {
		peers = append(peers, s.To...)
	}
	for _, r := range step.Recvs {
		peers = append(peers, r.From)
	}
	for _, peer := range peers {
		if !e.isPeer(peer) {
			return &transport.RankError{Peer: peer, Rank: e.rank, Size: e.Size()}
		}
	}
	return transport.Cause(ctx)
}

func (e *naive) send(step transport.Step) (sent []*naiveMessage) {
	for _, s := range step.Sends {
		for _, to := range s.To {
			m := &naiveMessage{naiveLink{e.rank, to, step.Signature.Context}, step.Signature, s.Data, false}
			e.job.steps[m.naiveLink] = append(e.job.steps[m.naiveLink], m)
			sent = append(sent, m)
		}
	}
	e.job.changed.Broadcast()
	return sent
}

// withdraw removes the messages that were not received.
func (e *naive) withdraw(sent []*naiveMessage) {
	for _, m := range sent {
		queue := e.job.steps[m.naiveLink]
		e.job.steps[m.naiveLink] = slices.DeleteFunc(queue, func(q *naiveMessage) bool { return q == m })
	}
}

// receive does the receives whose messages are there and returns the others.
func (e *naive) receive(mine transport.Signature, recvs []transport.Recv) (pending []transport.Recv, err error) {
	for _, r := range recvs {
		link := naiveLink{r.From, e.rank, mine.Context}
		queue := e.job.steps[link]
		blocked := slices.ContainsFunc(pending, func(q transport.Recv) bool { return q.From == r.From || r.Ordered })
		if len(queue) == 0 || blocked {
			pending = append(pending, r)
			continue
		}
		m := queue[0]
		switch {
		case m.sig != mine:
			return nil, e.mismatch(r.From, mine, m.sig)
		case len(m.data) != len(r.Into):
			return nil, &transport.SizeError{Peer: r.From, Got: len(m.data), Want: len(r.Into)}
		case r.Combine == nil:
			copy(r.Into, m.data)
		default:
			r.Combine(r.Into, r.Held, m.data)
		}
		m.received = true
		e.job.steps[link] = queue[1:]
		e.job.changed.Broadcast()
	}
	return pending, nil
}

// unsatisfiable returns why the call waits in vain, or nil.
func (e *naive) unsatisfiable(mine transport.Signature, sent []*naiveMessage, pending []transport.Recv) error {
	for link, queue := range e.job.steps {
		if link.to == e.rank && link.context == mine.Context && len(queue) > 0 {
			if theirs := queue[0].sig; !mayFollow(theirs, mine) {
				return e.mismatch(link.from, mine, theirs)
			}
		}
	}
	for _, peer := range waitedFor(sent, pending) {
		if theirs, busy := e.job.ends[peer].calls[mine.Context]; busy && !mayFollow(mine, theirs) {
			return e.mismatch(peer, mine, theirs)
		}
		if err := e.gone(peer); err != nil {
			return err
		}
	}
	return nil
}

// waitedFor returns the ranks that a step waits for.
func waitedFor(sent []*naiveMessage, pending []transport.Recv) (peers []int) {
	for _, m := range sent {
		peers = append(peers, m.to)
	}
	for _, r := range pending {
		peers = append(peers, r.From)
	}
	slices.Sort(peers)
	return slices.Compact(peers)
}

// mayFollow reports whether a rank in call b can still come to call a: a is the
// same call or a later one. Sequence numbers wrap around.
func mayFollow(a, b transport.Signature) bool {
	distance := int32(a.Sequence - b.Sequence)
	return distance > 0 || distance == 0 && a.Call == b.Call
}

// mismatch fails the peer and returns the error for this rank.
func (e *naive) mismatch(peer int, mine, theirs transport.Signature) error {
	e.job.ends[peer].fail(&transport.MismatchError{Rank: peer, Peer: e.rank, Mine: theirs, Theirs: mine})
	return &transport.MismatchError{Rank: e.rank, Peer: peer, Mine: mine, Theirs: theirs}
}
