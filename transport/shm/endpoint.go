package shm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A Config says which rank an endpoint is, and of what job.
type Config struct {
	Rank, Size int

	// Memory is the job's, made by [NewMemory] for Size ranks. New maps it. The caller
	// keeps the file, and may close it afterwards.
	Memory *os.File

	// Job names the job, as its memory does.
	Job [16]byte

	// Local is the number of ranks on this machine, 0 for all of them. A rank that
	// waits spins for a moment if each of them can have a core.
	Local int

	// Linger is how long Close waits for receivers to take messages for which there is no
	// room in the memory, 0 for [transport.Linger].
	Linger time.Duration

	// NoCMA makes the endpoint behave as on a system that lets no process read
	// another's memory by cross-memory attach.
	NoCMA bool
}

// An Endpoint is one rank's attachment to a job. It implements
// [transport.Endpoint] and [transport.LossSink].
type Endpoint struct {
	cfg    Config
	seg    *segment
	state  *rankState // of this rank, in the segment
	calls  callTable
	arena  arena
	engine progress.Engine // its lock guards all that follows
	links  []link
	polls  pollSet
	wakes  pendingWakeups
	out    sendQueue
	wait   waitPolicy
	cma    cmaUse

	bulk     []byte   // where bytes are read to that are combined then
	contexts []uint32 // that a link admits

	combining bool // the fast path is in a Combine, or that has panicked

	nextReason int // the place of the next text of a reason for which a communicator is revoked
}

// A cmaUse is what an endpoint has to do with cross-memory attach.
type cmaUse struct {
	word    *uint64 // the word of this rank's cmaProbe
	release func()  // ends the thread that owns the rank; nil where there is none
	denied  bool    // a peer's memory could not be read
}

// A pollSet is what the progress owner polls.
type pollSet struct {
	busy       []*link   // links that an operation waits for
	all        bool      // all links, because this rank has waited for the stall timeout
	anySource  int       // operations that wait for a tagged message from any rank
	unflushed  bool      // frames of tagged messages wait to be written
	terminated bool      // a peer may have terminated
	told       uint32    // the word told of this rank when all peers were last checked
	progressed bool      // something has arrived, left or changed
	lookAgain  time.Time // when a message without a staging buffer changes its protocol; mostly zero
}

// everyLink reports whether the owner polls all links.
func (p *pollSet) everyLink() bool { return p.all || p.anySource > 0 }

// A sendQueue holds the messages of steps that are not completely written, and what
// they need.
type sendQueue struct {
	queue      []outgoing          // messages that wait for room, in order for each operation and link
	rendezvous []pendingRendezvous // messages in the caller's memory until their receiver has taken them
	staging    []stagingBuffer
	multicast  multicastWriter
	promoter   promoter
	offers     offers
}

// openEndpoints counts the endpoints of this process.
var openEndpoints atomic.Int32

// New makes the endpoint of one rank.
func New(cfg Config) (*Endpoint, error) {
	switch {
	case cfg.Size < 1 || cfg.Rank < 0 || cfg.Rank >= cfg.Size:
		return nil, fmt.Errorf("shm: rank %d of %d: want 0 ≤ rank < size", cfg.Rank, cfg.Size)
	case cfg.Memory == nil:
		return nil, fmt.Errorf("shm: rank %d of %d needs the job's Memory", cfg.Rank, cfg.Size)
	}
	seg, err := open(cfg.Memory, cfg.Size, cfg.Job)
	if err != nil {
		return nil, fmt.Errorf("shm: rank %d: %w", cfg.Rank, err)
	}
	e := &Endpoint{
		cfg: cfg, seg: seg, state: seg.rankState(cfg.Rank),
		links: make([]link, cfg.Size), cma: cmaUse{word: new(uint64)},
	}
	if seg.own != nil && !lockRank(seg.own, cfg.Rank) || !e.state.join() {
		return nil, errors.Join(fmt.Errorf("shm: rank %d has joined already", cfg.Rank), seg.close())
	}
	local := cfg.Local
	if local == 0 {
		local = cfg.Size
	}
	e.wait = waitPolicy{Processors: progress.Share(local, &openEndpoints), stallTimeout: stallTimeout}
	e.engine.Init((*hooks)(e), cfg.Rank, cfg.Size)
	e.calls.state = e.state
	for rank := range e.links {
		e.links[rank].init(e, rank)
	}
	e.out.staging = make([]stagingBuffer, seg.buffers)
	e.out.multicast.cells = seg.multicastCells(cfg.Rank)
	allowPtrace()
	*e.cma.word = rand.Uint64() | 1
	if release, err := e.state.own(); err == nil {
		e.cma.release = release
	}
	e.state.cma.address.Store(uint64(uintptr(unsafe.Pointer(e.cma.word))))
	e.state.cma.pid.Store(int64(os.Getpid()))
	e.state.cma.descriptor.Store(-1)
	if seg.own != nil {
		e.state.cma.descriptor.Store(int64(seg.own.Fd()))
	}
	e.state.cma.value.Store(*e.cma.word)
	openEndpoints.Add(1)
	return e, nil
}

// Rank returns this endpoint's rank.
func (e *Endpoint) Rank() int { return e.cfg.Rank }

// Held implements [transport.Endpoint].
func (e *Endpoint) Held() (h transport.Held) {
	e.engine.Lock()
	defer e.unlock()
	h.Tagged, h.Allocated = e.engine.Tagged().Held(), e.arena.allocated()
	for i := range e.links {
		l := &e.links[i]
		h.Unexpected += l.in.queue.Held()
		h.Unsent += l.tagged.unsent
	}
	return h
}

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return e.cfg.Size }

// Exchange does one step, as [transport.Endpoint] says. A send is complete when its
// bytes are in the shared memory, or its receiver has read them. Exchange allocates
// nothing once it has seen steps of the same kind.
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) error {
	e.engine.Lock()
	defer e.unlock()
	e.look()
	if err := e.engine.Admit(ctx, &step); err != nil {
		return err
	}
	done := e.fastPath(&step, true)
	if err := e.engine.ErrIn(step.Signature.Context); done || err != nil { // it may have found a protocol error
		return err
	}
	o := e.engine.Begin(ctx)
	defer e.engine.Leave(o)
	e.start(o, &step)
	if step.Meanwhile != nil && !o.Over() {
		e.receiveSoon(o)
		e.unlocked(step.Meanwhile)
	}
	return o.Await()
}

// receiveSoon takes what arrives for a step right after it has started, if anything does: a
// rank that waits until its message is read goes before what this one has to do meanwhile.
func (e *Endpoint) receiveSoon(o *progress.Op) {
	polls := 1
	if e.wait.MaySpin() && !e.wait.Oversubscribed {
		polls = fastPolls
	}
	e.polls.progressed = false
	for ; polls > 0 && len(o.Recvs) > 0 && !e.polls.progressed; polls-- {
		e.advance()
	}
	e.polls.progressed = true // an owner that is about to sleep polls again
}

// unlocked calls f without the lock.
func (e *Endpoint) unlocked(f func()) {
	e.unlock()
	defer e.engine.Lock()
	f()
}

// Start implements [transport.Starter].
func (e *Endpoint) Start(ctx context.Context, step transport.Step) (transport.PendingStep, error) {
	e.engine.Lock()
	defer e.unlock()
	e.look()
	if err := e.engine.Admit(ctx, &step); err != nil {
		return nil, err
	}
	done := e.fastPath(&step, false)
	if err := e.engine.ErrIn(step.Signature.Context); done || err != nil {
		return nil, err
	}
	return e.engine.Start(ctx, func(o *progress.Op) { e.start(o, &step) }), nil
}

// unlock wakes the peers that sleep for what was done, and releases the lock.
func (e *Endpoint) unlock() {
	if e.combining {
		e.combining = false
		e.engine.Fail(transport.ErrPanicked)
	}
	e.wakePeers()
	e.engine.UnlockNow()
}

// Lost implements [transport.LossSink].
func (e *Endpoint) Lost(rank int, reason string) {
	if !e.engine.IsPeer(rank) {
		return
	}
	e.engine.Lock()
	defer e.unlock()
	if e.engine.Closed() {
		return
	}
	e.links[rank].lose(reason)
	e.engine.Interrupt()
}

// CMADenied reports whether the system has kept this endpoint from reading the
// memory of another rank, so that long messages were copied twice.
func (e *Endpoint) CMADenied() bool {
	e.engine.Lock()
	defer e.unlock()
	return e.cma.denied
}

// HugePagesDenied returns why the kernel has left memory of this rank in small pages, from
// which long messages were to go, or nil if it has not.
func (e *Endpoint) HugePagesDenied() error {
	e.arena.mu.Lock()
	denied := e.arena.denied
	e.arena.mu.Unlock()
	e.engine.Lock()
	defer e.unlock()
	return cmp.Or(denied, e.out.promoter.denied)
}

// Release implements [transport.Endpoint].
func (e *Endpoint) Release(context uint32) {
	e.engine.Lock()
	defer e.unlock()
	for i := range e.links {
		e.links[i].release(context)
	}
	e.engine.ReleaseTagged(context)
}

// CheckUnreceived implements [transport.Endpoint].
func (e *Endpoint) CheckUnreceived() error {
	e.engine.Lock()
	defer e.unlock()
	for i := range e.links {
		if e.engine.Failed() {
			return nil
		}
		l := &e.links[i]
		e.engine.Guard(l.poll)
		if theirs, ok := l.unreceived(); ok {
			return e.engine.Unreceived(l.peer, theirs)
		}
	}
	return e.engine.UnreceivedTagged()
}

// Close implements [transport.Endpoint]. It waits for tagged messages that have found no
// room in the shared memory; what is there survives this process. Exchanges in progress
// return [transport.ErrClosed]; while a peer may use the memory of one, Close does not wait.
func (e *Endpoint) Close() error {
	e.engine.Lock()
	if !e.engine.StartLeaving() {
		e.engine.Unlock()
		return nil
	}
	e.engine.Steps(func(o *progress.Op) {
		if !e.usedByPeer(o) {
			o.Finish(transport.ErrClosed)
		}
	})
	err := e.linger()
	e.engine.Close(nil)
	e.unlock()
	e.engine.WaitBackground()
	openEndpoints.Add(-1)
	if e.cma.release != nil {
		e.cma.release()
	}

	e.engine.Lock()
	defer e.unlock()
	e.closeArenas()
	e.links, e.state, e.wakes.links = nil, nil, nil
	return errors.Join(err, e.seg.close())
}

// usedByPeer reports whether a peer may read a step's memory, or is in the middle of a message
// to it: then the step ends with this rank's part in the job, and not before.
func (e *Endpoint) usedByPeer(o *progress.Op) bool {
	if slices.ContainsFunc(e.out.rendezvous, func(r pendingRendezvous) bool { return r.op == o }) {
		return true
	}
	for i := range e.links {
		if slices.ContainsFunc(e.links[i].in.partials, func(t partial) bool { return t.recv != nil && t.recv.Step == &o.Step }) {
			return true
		}
	}
	return false
}

// linger waits until every tagged message that this rank has sent is in the shared
// memory, or its receiver has gone.
func (e *Endpoint) linger() error {
	if !e.polls.unflushed || e.engine.Failed() {
		return nil
	}
	e.state.closes.Store(1)
	why := e.engine.Linger(cmp.Or(e.cfg.Linger, transport.Linger))
	u := &transport.UndeliveredError{Rank: e.cfg.Rank, Peer: -1, Err: why}
	for i := range e.links {
		if n := e.links[i].tagged.unsent; n > 0 {
			if u.Bytes += n; u.Peer < 0 {
				u.Peer = i
			}
		}
	}
	if u.Bytes == 0 {
		return nil
	}
	e.engine.Fail(u)
	return u
}

// Abort implements [transport.Endpoint].
func (e *Endpoint) Abort(why error) { e.engine.Abort(why) }

// SetMembers implements [transport.Revoker].
func (e *Endpoint) SetMembers(communicator uint32, ranks []int) {
	e.engine.SetMembers(communicator, ranks)
}

// Revoke implements [transport.Revoker].
func (e *Endpoint) Revoke(communicator uint32, why error) { e.engine.Revoke(communicator, why) }

// OnRevoke has f called, in a goroutine of its own, for every communicator that is revoked
// from now on.
func (e *Endpoint) OnRevoke(f func(communicator uint32, why *transport.PeerError)) {
	e.engine.OnRevoke(f)
}

// Revoked implements [transport.Revoker].
func (e *Endpoint) Revoked(communicator uint32) error {
	e.engine.Lock()
	e.look()
	e.unlock()
	return e.engine.Revoked(communicator)
}
