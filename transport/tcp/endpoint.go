package tcp

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A Config says which rank an endpoint is, and how it finds the others.
type Config struct {
	Rank, Size int

	// Listener accepts the connections of the other ranks. The endpoint owns it from
	// now on. A job of one rank needs none.
	Listener net.Listener

	// Lookup returns the address at which a rank listens, or several separated by commas,
	// as [network.Split] has them. It may block until that rank has joined, but returns
	// when ctx ends. An error says why the rank will never be there; one that wraps
	// [transport.ErrLeft] says that it has left. An address beside that error is where the
	// rank may still wait for others to take its messages.
	//
	// The addresses are tried in order, beside each other, and the first is taken behind
	// which the rank has proven who it is.
	Lookup func(ctx context.Context, rank int) (addr string, err error)

	// Secret is the secret of the job. A connection whose peer does not prove that it
	// knows the secret is dropped.
	Secret proof.Secret

	// Encrypt has all connections go on as TLS 1.3. It is the same on all ranks.
	Encrypt bool

	// Local is the number of ranks on this machine, 0 for all of them. A rank that
	// waits spins for a moment if each of them can have a core.
	Local int

	// Linger is how long Close waits for receivers to take messages, 0 for
	// [transport.Linger].
	Linger time.Duration
}

// An Endpoint is one rank's attachment to a job. It implements
// [transport.Endpoint] and [transport.LossSink].
type Endpoint struct {
	transport.PrivateMemory
	cfg        Config
	processors progress.Processors
	connecting background      // the goroutines that make connections
	engine     progress.Engine // its lock guards all that follows
	links      []*link         // by rank; nil where none was needed yet
	watches    bool            // links with other hosts are watched
	polls      pollSet
	bulk       []byte // where bytes are read to that are combined then
	queued     queuedFrames
	bursts     bursts
	home       home
}

// A background is what goroutines need that the endpoint starts.
type background struct {
	ctx    context.Context // ends when the endpoint is closed
	cancel context.CancelFunc
	prover *proof.Prover
}

// A pollSet is what the progress owner polls.
type pollSet struct {
	poller     poller
	busy       []*link // links that an operation waits for
	changed    []*link // links to look at once more
	watching   []*link // links that the owner waits for
	full       bool    // one of these has a full socket
	all        bool    // the owner polls all links, because it has waited for the stall timeout
	anySource  int     // operations that wait for a tagged message from any rank
	forever    bool    // the owner sleeps without a time limit
	progressed int     // reads and writes that did something
}

// everyLink reports whether the owner polls all links.
func (p *pollSet) everyLink() bool { return p.all || p.anySource > 0 }

// queuedFrames counts the links with frames that are written also while no goroutine
// of the program waits.
type queuedFrames struct {
	tagged  int // links with frames of tagged messages
	notices int // links whose termination notice is not written yet
}

// openEndpoints counts the endpoints of this process.
var openEndpoints atomic.Int32

// New makes the endpoint of one rank. It connects to no peer yet.
func New(cfg Config) (*Endpoint, error) {
	if cfg.Encrypt {
		return newEndpoint(cfg, newGoroutineStreams)
	}
	return newEndpoint(cfg, newPoller)
}

func newEndpoint(cfg Config, poller func([]*link) (poller, error)) (*Endpoint, error) {
	switch {
	case cfg.Size < 1 || cfg.Rank < 0 || cfg.Rank >= cfg.Size:
		return nil, fmt.Errorf("tcp: rank %d of %d: want 0 ≤ rank < size", cfg.Rank, cfg.Size)
	case cfg.Size > 1 && (cfg.Listener == nil || cfg.Lookup == nil):
		return nil, fmt.Errorf("tcp: rank %d of %d needs a Listener and a Lookup", cfg.Rank, cfg.Size)
	}
	links := make([]*link, cfg.Size)
	p, err := poller(links)
	if err != nil {
		return nil, fmt.Errorf("tcp: rank %d: %w", cfg.Rank, err)
	}
	local := cfg.Local
	if local == 0 {
		local = cfg.Size
	}
	e := &Endpoint{cfg: cfg, links: links, polls: pollSet{poller: p}, processors: progress.Share(local, &openEndpoints)}
	e.bursts.time, e.bursts.delay, e.bursts.gap = burstTime, burstDelay, streakGap
	e.findHome()
	e.engine.Init((*hooks)(e), cfg.Rank, cfg.Size)
	e.connecting.ctx, e.connecting.cancel = context.WithCancel(context.Background())
	e.connecting.prover = proof.NewProver(cfg.Secret, uint32(cfg.Rank), cfg.Size)
	e.connecting.prover.TLS = cfg.Encrypt
	openEndpoints.Add(1)
	if cfg.Listener != nil {
		e.engine.GoUnlocked(e.accept)
	}
	return e, nil
}

// Rank returns this endpoint's rank.
func (e *Endpoint) Rank() int { return e.cfg.Rank }

// Held implements [transport.Endpoint].
func (e *Endpoint) Held() (h transport.Held) {
	e.engine.Lock()
	defer e.engine.Unlock()
	h.Tagged, h.Allocated = e.engine.Tagged().Held(), e.Allocated()
	for _, l := range e.links {
		if l != nil {
			h.Unexpected += l.in.unexpectedLen
			h.Unsent += l.out.copies()
		}
	}
	return h
}

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return e.cfg.Size }

// Exchange does one step, as [transport.Endpoint] says. A send is complete when the
// operating system has taken all of it, or when it is deferred (streak.go).
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) error {
	e.engine.Lock()
	defer e.engine.Unlock()
	if err := e.admit(ctx, &step); err != nil {
		return err
	}
	short := sendsShort(&step)
	if short && e.deferStep(&step) {
		return nil
	}
	o := e.engine.Begin(ctx)
	defer e.engine.Leave(o)
	e.start(o, &step)
	if step.Meanwhile != nil && !o.Over() {
		e.unlocked(step.Meanwhile)
	}
	err := o.Await()
	if short {
		e.stepSent(&step)
	}
	return err
}

// unlocked calls f without the lock.
func (e *Endpoint) unlocked(f func()) {
	e.engine.Unlock()
	defer e.engine.Lock()
	f()
}

// Start implements [transport.Starter].
func (e *Endpoint) Start(ctx context.Context, step transport.Step) (transport.PendingStep, error) {
	e.engine.Lock()
	defer e.engine.Unlock()
	if err := e.admit(ctx, &step); err != nil {
		return nil, err
	}
	return e.engine.Start(ctx, func(o *progress.Op) { e.start(o, &step) }), nil
}

func (e *Endpoint) admit(ctx context.Context, step *transport.Step) error {
	if n := len(step.Signature.Call); n > callMax && e.engine.Err() == nil {
		e.engine.Fail(fmt.Errorf("tcp: the call's text has %d bytes, at most %d are allowed", n, callMax))
	}
	return e.engine.Admit(ctx, step)
}

// Lost implements [transport.LossSink].
func (e *Endpoint) Lost(rank int, reason string) {
	if !e.engine.IsPeer(rank) {
		return
	}
	e.engine.Lock()
	defer e.engine.Unlock()
	if e.engine.Closed() && e.links[rank] == nil {
		return // Close looks at the links, and no more are made
	}
	l, err := e.link(rank), &transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: reason}
	if l.err == transport.ErrClosed {
		l.err = err // Close may wait for the rank's acknowledgment
	}
	l.end(err)
}

// Release implements [transport.Endpoint].
func (e *Endpoint) Release(context uint32) {
	e.engine.Lock()
	defer e.engine.Unlock()
	for _, l := range e.links {
		if l != nil {
			l.release(context)
		}
	}
	e.engine.Guard(e.settle)
	e.engine.ReleaseTagged(context)
}

// CheckUnreceived implements [transport.Endpoint].
func (e *Endpoint) CheckUnreceived() error {
	e.engine.Lock()
	defer e.engine.Unlock()
	for _, l := range e.links {
		if e.engine.Failed() {
			return nil
		}
		if l == nil {
			continue
		}
		e.engine.Guard(func() { l.poll(); e.settle() })
		if theirs, ok := l.unreceived(); ok {
			return e.engine.Unreceived(l.peer, theirs)
		}
	}
	return e.engine.UnreceivedTagged()
}

// Abort implements [transport.Endpoint].
func (e *Endpoint) Abort(why error) { e.engine.Abort(why) }
