package transporttest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
)

// A naiveJob keeps the contract in the plainest way: one lock guards everything,
// and every waiting operation checks its condition again after every change. The
// suite itself is tested on it.
type naiveJob struct {
	mu      sync.Mutex
	changed sync.Cond
	ends    []*naive
	steps   map[naiveLink][]*naiveMessage // of each link, in the order sent
}

// A naive is one rank's endpoint.
type naive struct {
	transport.PrivateMemory
	job    *naiveJob
	rank   int
	ended  error                          // why its part in the job has ended
	calls  map[uint32]transport.Signature // the Exchanges in progress, by context
	stalls map[*transport.Stall]bool      // what waits
	waits  uint64                         // calls that might have waited for a tagged message
	last   transport.Signature            // of the last Exchange
	lost   map[int]string                 // the reasons, by rank
	tagged []*naiveTagged                 // messages to this rank, in the order sent
	posted []*naiveRequest                // receives in progress, in the order of their starts
	copied map[int]int                    // what the copied ones cost, by sender

	members map[uint32][]int // by communicator
	revoked map[uint32]error // why, by communicator
}

var _ transport.ProcessEndpoint = (*naive)(nil)

func newNaiveJob(n int) []*naive {
	j := &naiveJob{steps: map[naiveLink][]*naiveMessage{}}
	j.changed.L = &j.mu
	for rank := range n {
		j.ends = append(j.ends, &naive{
			job: j, rank: rank,
			calls: map[uint32]transport.Signature{}, stalls: map[*transport.Stall]bool{},
			lost: map[int]string{}, copied: map[int]int{},
			members: map[uint32][]int{}, revoked: map[uint32]error{},
		})
	}
	return j.ends
}

// lock locks the job for an operation that waits for job.changed. The end of ctx is
// a change too. The function that it returns ends the operation.
func (e *naive) lock(ctx context.Context) (unlock func()) {
	stop := context.AfterFunc(ctx, func() {
		e.job.mu.Lock()
		defer e.job.mu.Unlock()
		e.job.changed.Broadcast()
	})
	e.job.mu.Lock()
	return func() {
		e.job.mu.Unlock()
		stop()
	}
}

func (e *naive) Rank() int { return e.rank }
func (e *naive) Size() int { return len(e.job.ends) }

// isPeer reports whether the job has this rank and it is not e's own.
func (e *naive) isPeer(rank int) bool { return 0 <= rank && rank < e.Size() && rank != e.rank }

func (e *naive) Abort(why error) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	e.fail(why)
}

func (e *naive) Close() error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	e.fail(transport.ErrClosed)
	e.EndAlloc()
	return nil
}

// fail ends e's part in the job. The first error stays, except that Close follows
// a failure.
func (e *naive) fail(err error) {
	if e.ended == nil || err == transport.ErrClosed {
		e.ended = err
	}
	for len(e.posted) > 0 {
		e.giveUp(e.posted[0])
	}
	e.job.changed.Broadcast()
}

func (e *naive) Lost(rank int, reason string) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if e.isPeer(rank) {
		e.lost[rank] = reason
		e.job.changed.Broadcast()
	}
}

// gone returns why nothing can be expected of a rank anymore, or nil.
func (e *naive) gone(rank int) error {
	if reason, lost := e.lost[rank]; lost {
		return &transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: reason}
	}
	switch peer := e.job.ends[rank]; peer.ended {
	case nil:
		return nil
	case transport.ErrClosed:
		reason := fmt.Sprintf("its last call was call %d, %q", peer.last.Sequence, peer.last.Call)
		return &transport.PeerError{Peer: rank, Err: transport.ErrLeft, Reason: reason}
	default:
		return &transport.PeerError{Peer: rank, Err: transport.ErrAborted, Reason: peer.ended.Error()}
	}
}

// Held counts copied tagged messages; a message of a step is in its sender's memory.
func (e *naive) Held() (h transport.Held) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	h.Allocated = e.Allocated()
	for _, cost := range e.copied {
		h.Tagged += cost
	}
	return h
}

func (e *naive) Stalls() []transport.Stall {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	var stalls []transport.Stall
	for s := range e.stalls {
		stalls = append(stalls, *s)
	}
	return stalls
}

// wait waits for the next change in the job.
func (e *naive) wait(s transport.Stall) {
	e.stalls[&s] = true
	e.job.changed.Wait()
	delete(e.stalls, &s)
}

func (e *naive) Release(context uint32) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	for _, m := range slices.Clone(e.tagged) {
		if m.copied && m.context == context {
			e.dequeue(m)
		}
	}
	for link, queue := range e.job.steps {
		if link.to == e.rank && link.context == context {
			for _, m := range queue {
				m.received = true
			}
			delete(e.job.steps, link)
		}
	}
	e.job.changed.Broadcast()
}

func (e *naive) CheckUnreceived() error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if e.ended != nil {
		return nil
	}
	for link, queue := range e.job.steps {
		if link.to == e.rank && len(queue) > 0 {
			return &transport.UnreceivedError{Rank: e.rank, Peer: link.from, Mine: e.last, Theirs: queue[0].sig}
		}
	}
	for _, m := range e.tagged {
		return &transport.UnreceivedError{Rank: e.rank, Peer: m.From, Tagged: &m.MessageInfo}
	}
	return nil
}
