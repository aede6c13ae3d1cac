package inproc

import (
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// A commState is an endpoint's state in one context, which is a communicator. One
// goroutine at a time uses it. Other ranks write to its first two cache lines
// alone.
//
// The size is 512 bytes, so that the allocator aligns it to cache lines. Above 512
// bytes the allocator prepends a header.
type commState struct {
	waiter waiter
	_      [cacheLine - unsafe.Sizeof(waiter{})]byte

	incomplete incompleteCount // rendezvous messages of the step in progress
	_          [cacheLine - unsafe.Sizeof(incompleteCount{})]byte

	endpoint *Endpoint
	context  uint32
	in, out  linkTable // by peer
	step     stepState
	backoff  backoff
	watched  contextWatch
	stall    stallCheck
	links    []*link // all, of both directions; under Job.mu
	_        [8]byte
}

// comm returns the endpoint's state in a context.
func (e *Endpoint) comm(context uint32) *commState {
	cached := &e.cached[context%uint32(len(e.cached))]
	if s := cached.Load(); s != nil && s.context == context {
		return s
	}
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	s := e.openComm(context)
	cached.Store(s)
	return s
}

// openComm returns the endpoint's state in a context, and makes it at first use.
// Job.mu is held.
func (e *Endpoint) openComm(context uint32) *commState {
	s := e.comms[context]
	if s == nil {
		s = &commState{endpoint: e, context: context, waiter: waiter{token: make(chan struct{}, 1)}}
		// Whole cache lines, which the allocator aligns to lines: each step writes there.
		s.step.sends, s.step.recvs = make([]queuedSend, 0, 2*cacheLine/unsafe.Sizeof(queuedSend{})), make([]postedRecv, 0, cacheLine/unsafe.Sizeof(postedRecv{}))
		if e.notice != nil || e.knownErr(context) != nil { // a peer may open it before the members are set
			s.waiter.end()
		}
		if e.comms == nil {
			e.comms = map[uint32]*commState{}
		}
		e.comms[context] = s
	}
	return s
}

// linkTo returns the link to a peer, and makes it at first use.
func (s *commState) linkTo(peer int) (*link, error) {
	l, err := s.connect(peer, &s.out, func(p *commState) (from, to *commState) { return s, p })
	pair(l, s.in.get(peer))
	return l, err
}

// linkFrom returns the link from a peer, and makes it at first use.
func (s *commState) linkFrom(peer int) (*link, error) {
	l, err := s.connect(peer, &s.in, func(p *commState) (from, to *commState) { return p, s })
	pair(s.out.get(peer), l)
	return l, err
}

// connect finds or makes the link between s and a peer whose direction ends says,
// and puts it into the table.
func (s *commState) connect(peer int, t *linkTable, ends func(p *commState) (from, to *commState)) (*link, error) {
	j := s.endpoint.job
	if peer < 0 || peer >= len(j.endpoints) || peer == s.endpoint.rank {
		return nil, &transport.RankError{Peer: peer, Rank: s.endpoint.rank, Size: len(j.endpoints)}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	from, to := ends(j.endpoints[peer].openComm(s.context))
	id := linkID{from.endpoint.rank, to.endpoint.rank, s.context}
	l := j.links[id]
	if l == nil {
		l = newLink(from, to, j.linkDepth())
		if reverse := j.links[linkID{to.endpoint.rank, from.endpoint.rank, s.context}]; reverse != nil {
			l.pair = reverse.pair
		} else if len(j.endpoints) == pairRanks {
			l.pair = newPairCells()
		}
		if from.endpoint.rank > to.endpoint.rank {
			l.from = 1
		}
		j.links[id] = l
		from.links = append(from.links, l)
		to.links = append(to.links, l)
	}
	t.put(peer, l)
	return l, nil
}

// Release drops what the endpoint holds for a context, as [transport.Endpoint]
// says. A link is dropped when both of its sides have released it.
func (e *Endpoint) Release(context uint32) {
	e.tagged.release(context)
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	s := e.comms[context]
	if s == nil {
		return
	}
	s.unwatch()
	s.stall.stop()
	for _, l := range s.links {
		if l.released {
			delete(e.job.links, linkID{l.receiver.from.endpoint.rank, l.sender.to.endpoint.rank, context})
		}
		l.released = true
	}
	delete(e.comms, context)
	e.cached[context%uint32(len(e.cached))].CompareAndSwap(s, nil)
}
