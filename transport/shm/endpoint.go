// Package shm moves messages between ranks through memory that they share: one
// file without a name, which whoever starts the ranks makes ([NewMemory]) and
// the ranks inherit and map ([New]). [Loopback] makes all endpoints of a job in
// one process. It is for Linux.
//
// # What lies in the memory
//
// From every rank to every other leads a lane, a queue of slots of one cache line
// each. A slot holds a frame: what call it belongs to, and up to 40 bytes of a
// message. Its first word says which frame is there, and is written last; so one
// line travels from core to core, and brings the message together with the news
// of it. A line before the slots is the receiver's, who counts in it what it has
// taken.
//
// A short message to several ranks is in one such line, which all of them read.
//
// Longer messages go through boxes. Every rank has some, of up to 64 KiB, and
// fills them for others to read: the receiver copies or combines straight out of
// the box. Both work at the same time on different boxes, which are few enough to
// stay in cache; where every rank has a core, 2 KiB of each are used. A message to
// several ranks is in boxes once, and read by all.
//
// A long message is lent, and so is what is left of one when all boxes are held by
// ranks that do not read: the receivers read it in the sender's memory
// (process_vm_readv), if the system lets them, and else ask for it. Some boxes are
// for such messages alone, so that nobody who receives is held up by somebody who
// does not. Memory from which long messages are sent again and again is moved to
// huge pages: a buffer takes up to 2 MiB more at each end then, and a message half
// of the time.
//
// The text of a call does not travel: a frame has a hash of it, and the text is
// in the seat of the rank, where those look who find that calls differ. There a
// rank also says how far it has come, what it sleeps for, and its last word.
//
// # Who moves what
//
// A step of short messages that meets nothing else is done on the spot. Otherwise,
// whoever waits in Exchange drives, for the endpoint has no goroutine of its own: it
// looks at the lanes until its own messages are complete; others that wait at
// the same time sleep meanwhile. It spins for a moment if there are as many cores
// as ranks, then lets other processes have the core in between, and then sleeps
// in a futex, of which a rank that has something for it knows.
//
// A message that nobody expects yet stays in the lane, and holds back its sender
// once the lane is full. But it does not hold back letters or messages of other
// contexts: if somebody waits for those, it is put aside, in memory of the
// receiver's process that only the senders' steps bound.
//
// # What can go wrong
//
// All of the memory is allocated when it is made, so that a lack of it is an
// error then, and no signal later; how much it is, [MemoryLen] says. None of it is
// locked, so that no limit on locked memory applies. Nothing has a name in the
// file system, and when the last process that has the memory ends, it is gone.
//
// No lock lies in the memory: each word has one writer, and a rank that is killed
// at any moment leaves nothing that others would wait for. A rank holds a lock on
// a byte of the file, which the kernel releases when the process ends; one that
// waits for long looks whether those that it waits for still do, and fails if not,
// within half a second. A launcher that knows sooner calls [Endpoint.Lost]. A rank
// that is stopped keeps its lock, and is waited for.
package shm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/mailbox"
)

// A Config says which rank an endpoint is, and of what job.
type Config struct {
	Rank, Size int

	// Memory is the job's, as made by [NewMemory] for so many ranks. New maps
	// it; the file is the caller's, who may close it afterwards.
	Memory *os.File

	// Token is the secret of the job, which its memory states too.
	Token [16]byte

	// Local is the number of ranks on this machine, 0 for all of them. A rank
	// that waits spins for a moment if each of them can have a core.
	Local int

	// Apart makes the endpoint behave as where the system lets no process read
	// another's memory.
	Apart bool
}

// An Endpoint is one rank's attachment to a job. It implements
// [transport.Endpoint] and [transport.Messenger].
type Endpoint struct {
	cfg      Config
	seg      *segment
	seat     *seat
	crowded  bool // this machine has fewer cores than ranks
	share    int  // ranks for each core, at most
	procs    int  // threads that this process has for its goroutines
	patience time.Duration
	close    sync.Once
	others   sync.WaitGroup // goroutines that see to what was posted

	entering atomic.Int32 // goroutines that want mu

	mu       sync.Mutex // guards what follows, and all links and operations
	left     sync.Cond  // an operation has left
	closed   bool
	err      error               // why this endpoint's part has ended
	last     transport.Signature // of the context of all ranks
	register register
	links    []link
	busy     []*link // those that have something to wait for
	untold   []*link // those with news for the peer
	fence    atomic.Uint32
	boxes    []box
	caster   caster
	lender   lender
	ops      []*op // in progress
	spare    []*op
	watches  []watch
	bulk     []byte    // where bytes lie that were read to be combined
	moved    bool      // something has come, gone or changed
	partings bool      // a peer may have gone
	denied   bool      // a peer's memory could not be read
	driven   bool      // somebody drives
	asleep   bool      // and has given the lock away while waiting
	listens  bool      // to all links, not only to busy ones
	hasty    int       // waits in which it does not spin for long
	yields   int       // so far
	apart    time.Time // when it has last moved to another core
	mail     *mailbox.Box
	seekers  int  // operations that wait for letters from any rank
	unposted bool // something that concerns letters waits for room

	probe *uint64 // what others read to see whether they can
}

// New makes the endpoint of one rank.
func New(cfg Config) (*Endpoint, error) {
	switch {
	case cfg.Size < 1 || cfg.Rank < 0 || cfg.Rank >= cfg.Size:
		return nil, fmt.Errorf("shm: rank %d of %d: want 0 ≤ rank < size", cfg.Rank, cfg.Size)
	case cfg.Memory == nil:
		return nil, fmt.Errorf("shm: rank %d of %d needs the job's Memory", cfg.Rank, cfg.Size)
	}
	seg, err := open(cfg.Memory, cfg.Size, cfg.Token)
	if err != nil {
		return nil, fmt.Errorf("shm: rank %d: %w", cfg.Rank, err)
	}
	e := &Endpoint{
		cfg: cfg, seg: seg, seat: seg.seat(cfg.Rank), procs: runtime.GOMAXPROCS(0), patience: patience,
		links: make([]link, cfg.Size), boxes: make([]box, seg.boxes), probe: new(uint64),
	}
	if seg.own != nil && !takeSeat(seg.own, cfg.Rank) || !e.seat.status.CompareAndSwap(absent, joined) {
		return nil, errors.Join(fmt.Errorf("shm: rank %d has joined already", cfg.Rank), seg.close())
	}
	local := cfg.Local
	if local == 0 {
		local = cfg.Size
	}
	e.crowded = local > runtime.NumCPU()
	e.share = (local + runtime.NumCPU() - 1) / runtime.NumCPU()
	e.left.L = &e.mu
	e.mail = mailbox.New(keeper{e}, cfg.Rank, cfg.Size)
	e.register.seat = e.seat
	for rank := range e.links {
		l := &e.links[rank]
		l.e, l.peer, l.seat, l.mask = e, rank, seg.seat(rank), uint32(seg.depth-1)
		l.out, l.in, l.casts = seg.lane(cfg.Rank, rank), seg.lane(rank, cfg.Rank), seg.casts(rank)
	}
	e.caster.slots = seg.casts(cfg.Rank)
	admit()
	*e.probe = rand.Uint64() | 1
	e.seat.address.Store(uint64(uintptr(unsafe.Pointer(e.probe))))
	e.seat.pid.Store(int64(os.Getpid()))
	e.seat.word.Store(*e.probe)
	alive.Add(1)
	return e, nil
}

// Rank returns this endpoint's rank.
func (e *Endpoint) Rank() int { return e.cfg.Rank }

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return e.cfg.Size }

// Exchange does one step, as [transport.Endpoint] says. A send is complete when
// its bytes are in the shared memory, or the receiver has read them. Exchange
// allocates nothing once it has seen steps of the same kind.
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) error {
	e.lock()
	defer e.unlock()
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
	if e.quick(&step) || e.err != nil { // it may have heard nonsense
		return e.err
	}
	o := e.begin(ctx)
	defer e.leave(o)
	e.start(o, &step)
	if !o.over {
		e.await(o)
	}
	return o.err
}

// Lost tells the endpoint that a rank is gone: whoever waits for it, now or
// later, gets a [transport.PeerError] with ErrLost and the reason.
func (e *Endpoint) Lost(rank int, reason string) {
	if rank < 0 || rank >= e.cfg.Size || rank == e.cfg.Rank {
		return
	}
	e.lock()
	defer e.unlock()
	if e.closed {
		return
	}
	e.links[rank].lose(reason)
	e.nudge()
}

func (l *link) lose(reason string) {
	if l.seat.stage() >= left {
		l.seeParting() // it had said why
		return
	}
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: reason})
}

// Denied reports whether the system has kept this endpoint from reading the memory
// of another rank, so that long messages were copied twice.
func (e *Endpoint) Denied() bool {
	e.lock()
	defer e.unlock()
	return e.denied
}

// Release drops what the endpoint holds for a context in which it has had its
// last Exchange and taken its last letter.
func (e *Endpoint) Release(context uint32) {
	e.lock()
	defer e.unlock()
	for i := range e.links {
		l := &e.links[i]
		l.aside = slices.DeleteFunc(l.aside, func(m *message) bool { return m.whole && m.sig.Context == context })
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
	defer e.unlock()
	if e.err != nil {
		return nil
	}
	for i := range e.links {
		l := &e.links[i]
		l.hear()
		if sig, ok := l.unread(); ok {
			return &transport.UnreceivedError{Rank: e.cfg.Rank, Peer: l.peer, Mine: e.last, Theirs: sig}
		}
	}
	return nil
}

// Close leaves the job: its peers are told, and Exchanges in progress return
// [transport.ErrClosed].
func (e *Endpoint) Close() (err error) {
	e.close.Do(func() { err = e.shut() })
	return err
}

func (e *Endpoint) shut() error {
	e.lock()
	e.flushMail()
	e.closed = true
	e.fail(transport.ErrClosed)
	for len(e.ops) > 0 {
		e.left.Wait()
	}
	for _, w := range e.watches {
		w.stop()
	}
	e.watches = nil
	e.unlock()
	e.others.Wait()
	alive.Add(-1)

	e.mu.Lock()
	defer e.mu.Unlock()
	e.links, e.seat = nil, nil
	return e.seg.close()
}

// lock takes the lock, and keeps a driver that spins from keeping it long.
func (e *Endpoint) lock() {
	if e.mu.TryLock() {
		return
	}
	e.entering.Add(1)
	e.mu.Lock()
	e.entering.Add(-1)
}

// unlock gives the lock back, when all peers know what they are to know.
func (e *Endpoint) unlock() {
	e.tellAll()
	e.mu.Unlock()
}

// validate tests what can be wrong with a step before anything is started.
func (e *Endpoint) validate(ctx context.Context, step *transport.Step) error {
	if ctx.Err() != nil {
		return transport.Cause(ctx)
	}
	if len(e.ops) > 0 && e.within(step.Signature.Context) != nil {
		return errTwoSteps
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
