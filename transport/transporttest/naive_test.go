package transporttest

import (
	"context"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
)

// A naiveJob keeps the contract in the plainest way: one lock for everything,
// and everybody looks again whenever anything has happened. It is what the
// suite itself is tested on.
type naiveJob struct {
	mu     sync.Mutex
	news   sync.Cond
	queues map[naiveLink][]*naiveMessage
	ends   []*naive
}

type naiveLink struct {
	from, to int
	context  uint32
}

type naiveMessage struct {
	naiveLink
	sig   transport.Signature
	data  []byte
	taken bool
}

type naive struct {
	transport.Endpoint // nil: the claims of Run ask for no tagged messages

	job     *naiveJob
	rank    int
	failed  error
	waiting map[uint32]transport.Signature // by context
}

func newNaive(n int) []transport.Endpoint {
	j := &naiveJob{queues: map[naiveLink][]*naiveMessage{}}
	j.news.L = &j.mu
	ends := make([]transport.Endpoint, n)
	for rank := range ends {
		e := &naive{job: j, rank: rank, waiting: map[uint32]transport.Signature{}}
		j.ends = append(j.ends, e)
		ends[rank] = e
	}
	return ends
}

func (e *naive) Rank() int { return e.rank }
func (e *naive) Size() int { return len(e.job.ends) }

func (e *naive) Close() error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	e.fail(transport.ErrClosed)
	return nil
}

func (e *naive) fail(err error) {
	if e.failed == nil || err == transport.ErrClosed {
		e.failed = err
	}
	e.job.news.Broadcast()
}

func (e *naive) Exchange(ctx context.Context, step transport.Step) error {
	j := e.job
	stop := context.AfterFunc(ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.news.Broadcast()
	})
	defer stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.failed == nil && ctx.Err() != nil {
		e.fail(ctx.Err())
	}
	if err := e.check(step); e.failed == nil && err != nil {
		e.fail(err)
	}
	if e.failed != nil {
		return e.failed
	}
	sent := e.post(step)
	defer j.withdraw(slices.Clone(sent))
	e.waiting[step.Signature.Context] = step.Signature
	defer delete(e.waiting, step.Signature.Context)
	pending := slices.Clone(step.Recvs)
	for {
		var err error
		if pending, err = e.receive(step.Signature, pending); err != nil {
			e.fail(err)
		}
		sent = slices.DeleteFunc(sent, func(m *naiveMessage) bool { return m.taken })
		if e.failed == nil && len(pending) == 0 && len(sent) == 0 {
			return nil
		}
		if e.failed == nil && ctx.Err() != nil {
			e.fail(ctx.Err())
		}
		if err := e.hopeless(step.Signature, sent, pending); e.failed == nil && err != nil {
			e.fail(err)
		}
		if e.failed != nil {
			return e.failed
		}
		j.news.Wait()
	}
}

func (e *naive) check(step transport.Step) error {
	var peers []int
	for _, s := range step.Sends {
		peers = append(peers, s.To...)
	}
	for _, r := range step.Recvs {
		peers = append(peers, r.From)
	}
	for _, peer := range peers {
		if peer < 0 || peer >= e.Size() || peer == e.rank {
			return &transport.RankError{Peer: peer, Rank: e.rank, Size: e.Size()}
		}
	}
	return nil
}

func (e *naive) post(step transport.Step) (sent []*naiveMessage) {
	for _, s := range step.Sends {
		for _, to := range s.To {
			m := &naiveMessage{naiveLink{e.rank, to, step.Signature.Context}, step.Signature, s.Data, false}
			e.job.queues[m.naiveLink] = append(e.job.queues[m.naiveLink], m)
			sent = append(sent, m)
		}
	}
	e.job.news.Broadcast()
	return sent
}

func (j *naiveJob) withdraw(sent []*naiveMessage) {
	for _, m := range sent {
		j.queues[m.naiveLink] = slices.DeleteFunc(j.queues[m.naiveLink], func(q *naiveMessage) bool { return q == m })
	}
}

// receive takes what may be taken of the receives and returns the rest.
func (e *naive) receive(sig transport.Signature, recvs []transport.Recv) (rest []transport.Recv, err error) {
	for _, r := range recvs {
		link := naiveLink{r.From, e.rank, sig.Context}
		queue := e.job.queues[link]
		earlier := slices.ContainsFunc(rest, func(q transport.Recv) bool { return q.From == r.From })
		if len(queue) == 0 || earlier || r.Ordered && len(rest) > 0 {
			rest = append(rest, r)
			continue
		}
		m := queue[0]
		switch {
		case m.sig != sig:
			return nil, e.mismatch(r.From, sig, m.sig)
		case len(m.data) != len(r.Into):
			return nil, &transport.SizeError{Peer: r.From, Got: len(m.data), Want: len(r.Into)}
		case r.Combine == nil:
			copy(r.Into, m.data)
		default:
			r.Combine(r.Into, r.Held, m.data)
		}
		m.taken = true
		e.job.queues[link] = queue[1:]
		e.job.news.Broadcast()
	}
	return rest, nil
}

// hopeless says why what the rank still waits for cannot come.
func (e *naive) hopeless(mine transport.Signature, sent []*naiveMessage, pending []transport.Recv) error {
	for link, queue := range e.job.queues {
		if link.to == e.rank && link.context == mine.Context && len(queue) > 0 {
			theirs := queue[0].sig
			if theirs.Sequence < mine.Sequence || theirs.Sequence == mine.Sequence && theirs.Call != mine.Call {
				return e.mismatch(link.from, mine, theirs)
			}
		}
	}
	var peers []int
	for _, m := range sent {
		peers = append(peers, m.to)
	}
	for _, r := range pending {
		peers = append(peers, r.From)
	}
	for _, rank := range peers {
		peer := e.job.ends[rank]
		theirs, waits := peer.waiting[mine.Context]
		switch {
		case waits && (theirs.Sequence > mine.Sequence || theirs.Sequence == mine.Sequence && theirs.Call != mine.Call):
			return e.mismatch(rank, mine, theirs)
		case peer.failed == transport.ErrClosed:
			return &transport.PeerError{Peer: rank, Err: transport.ErrLeft}
		case peer.failed != nil:
			return &transport.PeerError{Peer: rank, Err: transport.ErrAborted, Reason: peer.failed.Error()}
		}
	}
	return nil
}

// mismatch says what differs, and says it to the peer as well.
func (e *naive) mismatch(peer int, mine, theirs transport.Signature) error {
	e.job.ends[peer].fail(&transport.MismatchError{Rank: peer, Peer: e.rank, Mine: theirs, Theirs: mine})
	return &transport.MismatchError{Rank: e.rank, Peer: peer, Mine: mine, Theirs: theirs}
}
