// Package tcp moves messages between ranks over TCP connections: one for each
// pair of ranks that talks, made when either of the two first needs it.
//
// [New] makes the endpoint of one rank. [Loopback] makes all endpoints of a
// job in one process.
//
// The endpoint has no goroutine that reads or writes. Whoever waits in
// Exchange drives all connections of the endpoint until its own messages are
// complete; others that wait at the same time sleep meanwhile. So a message
// goes from the caller of one rank to the caller of the other without a
// goroutine between them. Nothing is read ahead: a message that nobody expects
// yet waits in the socket, and holds back its sender once the socket is full.
// Letters are put aside when somebody reads, so that they hold up nothing; long
// ones stay with their sender until somebody takes them.
package tcp

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/mailbox"
)

// A Config says which rank an endpoint is, and how it meets the others.
type Config struct {
	Rank, Size int

	// Listener accepts the connections of the other ranks. The endpoint owns
	// it from now on. A job of one rank needs none.
	Listener net.Listener

	// Lookup returns the address at which a rank listens. It may block until
	// that rank has joined, but returns when ctx ends. An error says why the
	// rank will never be there; one that wraps [transport.ErrLeft] that it
	// has left.
	Lookup func(ctx context.Context, rank int) (addr string, err error)

	// Token is the secret of the job. A connection without it is dropped.
	Token [16]byte

	// Local is the number of ranks on this machine, 0 for all of them. A rank
	// that waits spins for a moment if each of them can have a core.
	Local int
}

// An Endpoint is one rank's attachment to a job.
type Endpoint struct {
	cfg     Config
	crowded bool            // this machine has fewer cores than ranks
	procs   int             // threads that this process has for its goroutines
	ctx     context.Context // of the goroutines that connect
	cancel  context.CancelFunc
	others  sync.WaitGroup // those goroutines, and the one that drains
	close   sync.Once

	entering atomic.Int32 // goroutines that want mu

	mu       sync.Mutex // guards what follows, and all links and operations
	left     sync.Cond  // an operation has left
	closed   bool
	err      error               // why this endpoint's part has ended
	last     transport.Signature // of the context of all ranks
	links    []*link
	busy     []*link // those that have something to wait for
	again    []*link // those with something to look at once more
	ops      []*op   // in progress
	spare    []*op
	watches  []watch
	bulk     []byte // where bytes lie that are combined
	unsaid   int    // links whose last word is not written yet
	moved    int    // reads and writes that did something
	driven   bool   // somebody drives
	asleep   bool   // and has given the lock away while waiting
	forever  bool   // which no clock ends
	listens  bool   // to all links, not only to busy ones
	poll     poller
	watching []*link // those that the driver waits for
	full     bool    // one of them has a full socket
	mail     *mailbox.Box
	seekers  int // operations that wait for letters from any rank
}

// alive counts the endpoints of this process: each may spin if it is alone, or
// if all have a thread.
var alive atomic.Int32

// New makes the endpoint of one rank. It connects to nobody yet.
func New(cfg Config) (*Endpoint, error) {
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
	poll, err := poller(links)
	if err != nil {
		return nil, fmt.Errorf("tcp: rank %d: %w", cfg.Rank, err)
	}
	local := cfg.Local
	if local == 0 {
		local = cfg.Size
	}
	e := &Endpoint{
		cfg: cfg, links: links, poll: poll,
		crowded: local > runtime.NumCPU(), procs: runtime.GOMAXPROCS(0),
	}
	e.mail = mailbox.New(keeper{e}, cfg.Rank, cfg.Size)
	alive.Add(1)
	e.left.L = &e.mu
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if cfg.Listener != nil {
		e.others.Go(e.accept)
	}
	return e, nil
}

// Rank returns this endpoint's rank.
func (e *Endpoint) Rank() int { return e.cfg.Rank }

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return e.cfg.Size }

// Exchange does one step, as [transport.Endpoint] says. A send is complete when
// the operating system has taken all of it.
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) error {
	e.lock()
	defer e.mu.Unlock()
	if e.closed {
		return transport.ErrClosed
	}
	if e.err == nil {
		if err := e.validate(ctx, &step); err != nil {
			e.fail(err)
		}
	}
	if e.err != nil {
		return e.err
	}
	if step.Signature.Context == 0 {
		e.last = step.Signature
	}
	o := e.begin(ctx, step)
	defer e.leave(o)
	e.start(o, step)
	e.settle()
	e.await(o)
	return o.err
}

// Lost tells the endpoint that a rank is gone: whoever waits for it, now or
// later, gets a [transport.PeerError] with ErrLost and the reason.
func (e *Endpoint) Lost(rank int, reason string) {
	if rank < 0 || rank >= e.cfg.Size || rank == e.cfg.Rank {
		return
	}
	e.lock()
	defer e.mu.Unlock()
	e.link(rank).end(&transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: reason})
}

// Release drops what the endpoint holds for a context in which it has had its
// last Exchange and taken its last letter.
func (e *Endpoint) Release(context uint32) {
	e.lock()
	defer e.mu.Unlock()
	for _, l := range e.links {
		if l != nil {
			l.aside = slices.DeleteFunc(l.aside, func(m *message) bool { return m.whole && m.sig.Context == context })
		}
	}
	e.mail.Discard(context)
}

// CheckUnreceived returns a [transport.UnreceivedError] if a message has come that no
// Exchange has received. A rank that leaves then has not called what others
// have: short messages need no receiver, so their senders may never notice. It
// is nil after the endpoint's part in the job has ended. No Exchange may be in
// progress.
func (e *Endpoint) CheckUnreceived() error {
	e.lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil
	}
	for _, l := range e.links {
		if l == nil {
			continue
		}
		l.listen()
		if sig, ok := l.unread(); ok {
			return &transport.UnreceivedError{Rank: e.cfg.Rank, Peer: l.peer, Mine: e.last, Theirs: sig}
		}
	}
	return nil
}

// closeTimeout bounds how long an endpoint waits, when it ends, for peers that
// do not read. They find a broken connection instead of a last word.
const closeTimeout = time.Second

// Close leaves the job: its peers are told, and Exchanges in progress return
// [transport.ErrClosed]. It takes about a second at most, also when a peer hangs.
func (e *Endpoint) Close() error {
	e.close.Do(e.shut)
	return nil
}

func (e *Endpoint) shut() {
	deadline := time.Now().Add(closeTimeout)
	e.lock()
	e.closed = true
	if e.cfg.Listener != nil {
		e.cfg.Listener.Close() // its error would tell nobody anything
	}
	e.fail(transport.ErrClosed)
	e.drain()
	for len(e.ops) > 0 {
		e.left.Wait()
	}
	for _, l := range e.links {
		if l != nil {
			l.end(transport.ErrClosed)
		}
	}
	for _, w := range e.watches {
		w.stop()
	}
	e.watches = nil
	e.mu.Unlock()

	e.cancel()
	e.others.Wait()
	for _, l := range e.links {
		if l != nil && l.stream != nil {
			l.stream.close(deadline)
		}
	}
	e.poll.close()
	alive.Add(-1)
}

// lock takes the lock, and keeps a driver that spins from keeping it long.
func (e *Endpoint) lock() {
	e.entering.Add(1)
	e.mu.Lock()
	e.entering.Add(-1)
}

// validate tests what can be wrong with a step before anything is started.
func (e *Endpoint) validate(ctx context.Context, step *transport.Step) error {
	if ctx.Err() != nil {
		return transport.Cause(ctx)
	}
	if e.within(step.Signature.Context) != nil {
		return errTwoSteps
	}
	if n := len(step.Signature.Call); n > callMax {
		return fmt.Errorf("tcp: the call's text has %d bytes, at most %d are allowed", n, callMax)
	}
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if err := e.peer(to); err != nil {
				return err
			}
		}
	}
	for i := range step.Recvs {
		if err := e.peer(step.Recvs[i].From); err != nil {
			return err
		}
	}
	return nil
}

func (e *Endpoint) peer(rank int) error {
	if rank < 0 || rank >= e.cfg.Size || rank == e.cfg.Rank {
		return &transport.RankError{Peer: rank, Rank: e.cfg.Rank, Size: e.cfg.Size}
	}
	return nil
}
