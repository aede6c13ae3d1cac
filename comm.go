package chorale

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
)

// A Comm is a communicator: one rank's view of a group of ranks that communicate
// with each other. Messages of different communicators never meet.
//
// Collectives are called by all ranks of the group, in the same order. A Comm does
// one collective at a time; [Start] lets several be in progress. Each rank has a
// Comm of its own, so ranks run concurrently.
//
// A Comm caches the calls that it has compiled: for each, the program and its
// scratch memory. So the same call again allocates nothing. It keeps the
// [KeptCalls] calls that were compiled last.
type Comm struct {
	job *job
	group
	context  uint32 // of its messages; those of its nonblocking and prepared calls follow
	sequence uint32 // of the next call
	busy     atomic.Bool
	freed    bool

	cache       callCache
	nonblocking nonblockingCalls
	prepared    preparedCalls
	nextSource  map[int]int // by tag, the rank that RoundRobin receives from next; under job.mu
}

// A group is the ranks of a communicator, as one of them sees it.
type group struct {
	members []int // the job's rank of each rank; nil if they are the same
	rank    int
	size    int
}

// A job is one rank's attachment to all others. Its communicators share it.
type job struct {
	endpoint transport.Endpoint
	config   CommConfig

	mu       sync.Mutex
	creating bool   // a communicator is being created
	next     uint32 // a number that no communicator of this rank has
}

// contextBits is how many bits of a context tell apart the contexts of one
// communicator. The others are the communicator's number.
const contextBits = 12

// A CommConfig is what the selection of algorithms needs to know beyond an
// endpoint. All ranks of a job have the same one. The zero CommConfig suits any
// transport.
type CommConfig struct {
	// Transport names the selection table: "inproc", "shm" or "tcp", whichever
	// resembles the transport most. With any other name, the rules that hold for
	// every transport apply.
	Transport string

	// Processors is the number of processors that all ranks share. If it is less
	// than the number of ranks, algorithms for oversubscribed ranks are chosen. It
	// is 0 if each rank has a processor, or the number is unknown.
	Processors int
}

// NewComm returns the communicator of all ranks of a job, over an endpoint of any
// transport. It lets programs use a transport that is not part of this module;
// package transporttest tests whether a transport can be used so. [Main], [Run] and
// [Join] call NewComm themselves.
//
// An endpoint gets one such communicator, and from then on only that communicator and
// those split from it use the endpoint. The caller closes it. Before a rank leaves, its
// endpoint's CheckUnreceived finds out whether ranks did not make the same calls; [Main]
// and [Run] call it.
func NewComm(endpoint transport.Endpoint, config CommConfig) *Comm {
	return &Comm{
		job:   &job{endpoint: endpoint, config: config, next: 1},
		group: group{rank: endpoint.Rank(), size: endpoint.Size()},
		cache: newCallCache(),
	}
}

// Rank returns this rank's number, 0 ≤ Rank < Size.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Comm) Size() int { return c.size }

// Close leaves the job, with all its communicators. Messages that were sent still
// arrive. [Main] and [Run] call Close when the rank's function returns; after
// [Join] and [NewComm] the caller does. To release one communicator only, use
// [Comm.Free].
func (c *Comm) Close() error { return c.job.endpoint.Close() }

// Free releases a communicator that is no longer used, with all that it caches.
// Each rank calls it when its own last call is done, whether or not other ranks are
// still in theirs. A later blocking collective fails with ErrClosed. Free twice is
// allowed. The communicator of [Main], [Run], [Join] or [NewComm] needs no Free.
func (c *Comm) Free() {
	endpoint := c.job.endpoint
	if c.context == 0 || c.freed {
		return
	}
	c.freed = true
	endpoint.Release(c.context)
	for _, q := range c.nonblocking.queues {
		if q != nil {
			endpoint.Release(q.comm.context)
		}
	}
	for i := range c.prepared.used {
		endpoint.Release(c.context + maxInProgress + 1 + uint32(i))
	}
}

// undefined is the color of ranks that get no communicator.
const undefined = -1

// Split creates communicators from this one. Ranks that give the same color are in
// one communicator, ordered by key and, where keys are equal, by rank. A rank with
// a negative color is in none, and gets nil. All ranks call Split.
//
// Split is an [AllGather] of one small struct per rank, and fails as it does. A
// rank creates one communicator at a time: while another Split, Dup, Subset, Grid
// or Line of this rank is in progress, on whichever communicator, Split fails with
// ErrBusy. A job can have 2^20 communicators in all, freed ones included.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	type choice struct{ Color, Key, Next int }
	c.job.mu.Lock()
	mine := choice{max(color, undefined), key, int(c.job.next)}
	busy := c.job.creating
	c.job.creating = true
	c.job.mu.Unlock()
	if busy {
		return nil, c.newError("split", errors.Join(ErrBusy, errors.New("another communicator is being created")))
	}
	defer func() {
		c.job.mu.Lock()
		c.job.creating = false
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
		return nil, c.argumentErrorf("split", "this is communicator %d of the job: want less than %d", number, 1<<(32-contextBits))
	}
	c.job.mu.Lock()
	c.job.next = uint32(number) + 1
	c.job.mu.Unlock()
	if mine.Color == undefined {
		return nil, nil
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[a].Key, all[b].Key) })
	return c.subgroup(ranks, uint32(number)<<contextBits), nil
}

// Dup creates a communicator of the same ranks. All ranks call it. See [Comm.Split]
// for its errors.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return c.Split(ctx, 0, c.rank) }

// Subset creates a communicator of some ranks, in the order given. All ranks call
// it with the same list. Those that are not in the list get nil. A rank that does
// not exist or is listed twice is an ErrArgument. See [Comm.Split] for other errors.
func (c *Comm) Subset(ctx context.Context, ranks []int) (*Comm, error) {
	color, key := undefined, 0
	seen := make(map[int]bool)
	for i, rank := range ranks {
		if rank < 0 || rank >= c.size || seen[rank] {
			return nil, c.rejectCallf("subset", "ranks %v: want ranks 0 to %d, each once", ranks, c.size-1)
		}
		seen[rank] = true
		if rank == c.rank {
			color, key = 0, i
		}
	}
	return c.Split(ctx, color, key)
}

// subgroup returns the communicator of some ranks of c. This rank must be one of
// them.
func (c *Comm) subgroup(ranks []int, context uint32) *Comm {
	sub := &Comm{job: c.job, context: context, cache: newCallCache()}
	sub.members, sub.size = make([]int, len(ranks)), len(ranks)
	for i, rank := range ranks {
		sub.members[i] = c.jobRank(rank)
		if rank == c.rank {
			sub.rank = i
		}
	}
	return sub
}

// withContext returns a communicator of the same ranks with a context of its own.
func (c *Comm) withContext(offset uint32) *Comm {
	return &Comm{job: c.job, group: c.group, context: c.context + offset, cache: newCallCache()}
}

// jobRank returns the job's rank of one of the group's ranks.
func (g *group) jobRank(rank int) int {
	if g.members == nil {
		return rank
	}
	return g.members[rank]
}

// groupRank is the inverse of jobRank.
func (g *group) groupRank(jobRank int) int {
	if g.members == nil {
		return jobRank
	}
	return slices.Index(g.members, jobRank)
}
