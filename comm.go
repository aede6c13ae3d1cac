package chorale

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
)

// A Comm is one rank's view of a group of ranks that communicate with each
// other, and with nobody else: messages of different communicators never meet.
//
// Collectives are called by all ranks of the group, in the same order. A Comm
// does one call at a time; [Start] lets several be under way. Ranks are
// concurrent with each other.
//
// A Comm keeps what it has worked out for the calls that it has seen: the
// program, and the scratch memory that the program needs. So the same call
// again allocates nothing. It keeps the [KeptCalls] most recently made ones.
type Comm struct {
	job     *job
	members []int // the job's rank of each rank; nil if they are the same
	rank    int
	size    int
	context uint32 // of its messages; those of its streams follow

	busy     atomic.Bool
	sequence uint32 // of the next call
	calls    map[callKey]*call
	kept     []*call // a ring, in the order of their making
	oldest   int
	recent   [16]*call // the last calls, by collective and root: see recently

	streams    [streamCount]*stream
	started    int     // how many calls were started
	persistent int     // how many contexts prepared calls have had
	idle       []*Comm // those of prepared calls that were freed
	freed      bool

	turns map[int]int // by tag, whose turn it is to be received from; under job.mu
}

// KeptCalls is the number of different calls that a communicator remembers.
const KeptCalls = 256

// A job is one rank's attachment to all others. Its communicators share it.
type job struct {
	endpoint  transport.Endpoint
	transport string // "inproc", "shm", "tcp"
	// processors is how many the ranks share, where all know the same number:
	// they must choose the same algorithms.
	processors int

	mu     sync.Mutex
	making bool   // a communicator is being made
	next   uint32 // a number that no communicator of this rank has
}

// contextBits is how many bits of a context tell the streams of a communicator
// apart. The others are the communicator's number.
const contextBits = 12

func newComm(ep transport.Endpoint, transport string, processors int) *Comm {
	return &Comm{
		job:  &job{endpoint: ep, transport: transport, processors: processors, next: 1},
		rank: ep.Rank(), size: ep.Size(),
		calls: make(map[callKey]*call),
	}
}

// Rank returns this rank's number, 0 ≤ Rank < Size.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Comm) Size() int { return c.size }

// Close leaves the job, with all its communicators. [Main] and [Run] do it when
// the rank's function returns; after [Join] it is the caller's. To let go of
// one communicator only, use [Comm.Free].
func (c *Comm) Close() error { return c.job.endpoint.Close() }

// Free lets go of a communicator that is no longer used, and of what it keeps.
// Each rank calls it when its own last call is done; later ones fail with
// ErrClosed. The communicator that [Main], [Run] or [Join] made needs no Free.
func (c *Comm) Free() {
	r := c.job.endpoint
	if c.context == 0 || c.freed {
		return
	}
	c.freed = true
	r.Release(c.context)
	for _, s := range c.streams {
		if s != nil {
			r.Release(s.comm.context)
		}
	}
	for i := range c.persistent {
		r.Release(c.context + streamCount + 1 + uint32(i))
	}
}

// undefined is the color of ranks that get no communicator.
const undefined = -1

// Split makes communicators of this one: ranks that give the same color are
// together in one, ordered by key and, where keys are equal, by rank. A rank
// with a negative color is in none, and gets nil. All ranks call it.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	type choice struct{ Color, Key, Next int }
	c.job.mu.Lock()
	mine := choice{max(color, undefined), key, int(c.job.next)}
	busy := c.job.making
	c.job.making = true
	c.job.mu.Unlock()
	if busy {
		return nil, &Error{Call: "split", Rank: c.rank, Step: -1, Peer: -1, Err: errors.Join(ErrBusy, errors.New("another communicator is being made"))}
	}
	defer func() {
		c.job.mu.Lock()
		c.job.making = false
		c.job.mu.Unlock()
	}()
	all := make([]choice, c.size)
	if err := AllGather(ctx, c, all, []choice{mine}); err != nil {
		return nil, err
	}
	number := 0
	var ranks []int
	for rank, other := range all {
		number = max(number, other.Next)
		if other.Color == mine.Color {
			ranks = append(ranks, rank)
		}
	}
	if number >= 1<<(32-contextBits) {
		return nil, c.wrong("split", "this is communicator %d of the job: want less than %d", number, 1<<(32-contextBits))
	}
	c.job.mu.Lock()
	c.job.next = uint32(number) + 1
	c.job.mu.Unlock()
	if mine.Color == undefined {
		return nil, nil
	}
	sortByKey(ranks, func(rank int) int { return all[rank].Key })
	return c.among(ranks, uint32(number)<<contextBits), nil
}

// Dup makes a communicator of the same ranks. All ranks call it.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return c.Split(ctx, 0, c.rank) }

// Subset makes a communicator of some ranks, in the order given. All ranks call
// it, with the same list; those that are not in it get nil.
func (c *Comm) Subset(ctx context.Context, ranks []int) (*Comm, error) {
	color, key := undefined, 0
	seen := make(map[int]bool)
	for i, rank := range ranks {
		if rank < 0 || rank >= c.size || seen[rank] {
			c.sequence++ // as the call that it would have been
			return nil, c.wrong("subset", "ranks %v: want ranks 0 to %d, each once", ranks, c.size-1)
		}
		seen[rank] = true
		if rank == c.rank {
			color, key = 0, i
		}
	}
	return c.Split(ctx, color, key)
}

// among returns the communicator of some ranks of c, of which this one must be.
func (c *Comm) among(ranks []int, context uint32) *Comm {
	made := &Comm{job: c.job, members: make([]int, len(ranks)), size: len(ranks), context: context, calls: make(map[callKey]*call)}
	for i, rank := range ranks {
		made.members[i] = c.member(rank)
		if rank == c.rank {
			made.rank = i
		}
	}
	return made
}

// member returns the job's rank of one of c's ranks.
func (c *Comm) member(rank int) int {
	if c.members == nil {
		return rank
	}
	return c.members[rank]
}
