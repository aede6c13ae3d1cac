package chorale

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
)

// A Comm is a communicator: one rank's view of a group of ranks that communicate
// with each other. Messages of different communicators never meet.
//
// Collectives are called by all ranks of the group, in the same order. A Comm does
// one collective at a time; [Start] lets several be in progress. Each rank has a
// Comm of its own, so ranks run concurrently.
//
// A communicator fails on all of its ranks when one of them is lost or revokes it: see the
// package documentation, and [Comm.Shrink] for what is left to do. It does not take other
// communicators with it.
//
// A Comm keeps memory for later calls, so that the same call again allocates nothing:
// the programs of calls that it has compiled, [KeptCalls] and [KeptBytes] at most, and
// the memory that the largest call so far has computed in, which all calls share.
// [Comm.Held] counts both, and [Comm.Free] drops them.
//
// A nil Comm is what ranks get that are in no communicator. It has no ranks, and its
// calls fail with ErrArgument.
type Comm struct {
	job *job
	group
	context  uint32 // of its messages; those of its nonblocking and prepared calls follow
	sequence uint32 // of the next call
	state    atomic.Int32

	stats   *Stats      // of calls without WithStats, for a profile or a timeline; else nil
	starter *starter    // of the nonblocking call in progress, for a profile or a timeline; else nil
	first   uint32      // the sequence of that call's first collective
	traced  *tracedCall // records calls for a timeline; nil before the first

	cache       callCache
	memory      exec.Memory
	packing     packing
	identity    *identity
	splitter    *Comm // makes the calls of Split
	window      int   // of numbers, in which the last Split has found one
	nonblocking nonblockingCalls
	prepared    preparedCalls
	creation    creation
	resilience  resilience
	turns       map[int]*turns // of RoundRobin, by tag; under job.mu
	tagged      taggedUse
	received    receivedRequests
	released    bool // the endpoint has released the context; under job.mu
}

// The states of a communicator.
const (
	idle    int32 = iota
	busy          // in a collective
	freeing       // in a collective, and freed since
	freed
)

// A group is the ranks of a communicator, as one of them sees it.
type group struct {
	members []int // the job's rank of each rank; nil if they are the same
	rank    int
	size    int
}

// A job is one rank's attachment to all others. Its communicators share it.
type job struct {
	endpoint transport.Endpoint
	steps    transport.Exchanger      // the endpoint, converted once and not in each call
	eager    transport.EagerMessenger // of the endpoint; nil if it has none
	config   CommConfig
	ranks    *localRanks // of Run; nil elsewhere
	env      launch.JobEnv
	family   *family
	machine  *selection.Machine // the rules of the machine's profile, the same on all ranks; nil: the built-in tables

	allocates atomic.Bool // Alloc has returned memory

	mu      sync.Mutex
	numbers numbers
	all     []int // every rank, once that is needed

	recorder *recorder // for a profile; else nil
	tracer   *tracer   // for a timeline; else nil
	handOn   func()    // hands on the records of this rank when it leaves; nil if nobody asks for them

	late    lateCalls
	started startedMessages
	ended   atomic.Pointer[ending] // the call that has ended this rank's part in the job; nil before
}

const contextBits = transport.ContextBits

// A CommConfig is what the selection of algorithms needs to know beyond an
// endpoint. All ranks of a job have the same one. The zero CommConfig suits any
// transport.
type CommConfig struct {
	// Transport names the selection table: "inproc", "shm" or "tcp", whichever
	// resembles the transport most. With any other name, the rules that hold for
	// every transport apply. If ranks are on several hosts, it is the transport
	// within one, and the table for calls that involve several is "tcp".
	Transport string

	// Processors is the number of processors that the ranks of a host share, and
	// the least of these numbers if ranks are on several hosts. If it is less than
	// the number of ranks on a host, algorithms for oversubscribed ranks are chosen.
	// It is 0 if each rank has a processor, or the number is unknown.
	Processors int

	// Hosts has the number of each rank's host, from 0 on in the order of the hosts'
	// lowest ranks. Calls that involve several hosts then choose algorithms that
	// send little between them, and [Comm.SplitHost] goes by it. It is nil if all
	// ranks share a host, or if that is unknown. Any other length than the number of
	// ranks makes every collective an ErrArgument. The caller must not change it.
	Hosts []int
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
	var r *recorder
	if metricsTarget() != "" {
		r = newRecorder()
	}
	return newRecordedComm(endpoint, config, launch.JobEnv{}, r, nil)
}

// newRecordedComm is NewComm, with a recorder and a tracer unless these are nil. Env is what
// launch says of the endpoint.
func newRecordedComm(endpoint transport.Endpoint, config CommConfig, env launch.JobEnv, r *recorder, t *tracer) *Comm {
	j := &job{endpoint: endpoint, steps: endpoint, config: config, env: env, recorder: r, tracer: t, machine: selection.NewMachine(env.Selections)}
	if r != nil {
		j.endpoint = &profiledEndpoint{j.endpoint, r}
	}
	if t != nil {
		j.endpoint = &tracedEndpoint{j.endpoint, j}
	}
	j.eager = transport.EagerOf(j.endpoint)
	j.family = &family{jobs: []*job{j}}
	c := j.newComm(group{rank: endpoint.Rank(), size: endpoint.Size()}, 0, 0)
	if r != nil {
		r.world.Store(c)
	}
	return c
}

// newComm returns the communicator of a number. Its calls count from base.
func (j *job) newComm(g group, number, base uint32) *Comm {
	if number != 0 { // the job's has all ranks
		j.endpoint.SetMembers(number, j.ranksOf(&g))
	}
	return newComm(j, g, number<<contextBits, &identity{number: number, base: base, group: g})
}

// newComm returns a communicator of one context.
func newComm(j *job, g group, context uint32, id *identity) *Comm {
	c := &Comm{job: j, group: g, context: context, sequence: id.base, identity: id}
	if j.recorder != nil {
		c.stats = &j.recorder.stats
	} else if j.tracer != nil {
		c.stats = &j.tracer.stats
	}
	scratch := scratchAllocator{j}
	c.cache.kept, c.memory.Held, c.memory.Allocator = &id.kept, &id.kept.memory, scratch
	c.packing.kept, c.packing.allocator = &id.kept, scratch
	j.mu.Lock()
	defer j.mu.Unlock()
	id.open++
	return c
}

// ranksOf returns the job's ranks of a group.
func (j *job) ranksOf(g *group) []int {
	if g.members != nil {
		return g.members
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.all) < g.size {
		j.all = append(j.all, len(j.all))
	}
	return j.all
}

// contextOfJob returns the context of the communicator, which differs from those of other
// endpoints that the rank has had.
func (c *Comm) contextOfJob() uint64 { return uint64(c.job.env.Group)<<32 | uint64(c.context) }

// launchRank returns the rank, as the launcher counts the job's, of one of the endpoint's.
func (j *job) launchRank(rank int) int {
	if j.env.Ranks != nil && rank >= 0 {
		return j.env.Ranks[rank]
	}
	return rank
}

// place returns this rank as the launcher counts the job's, and how many it counts at least.
func (j *job) place() (rank, size int) {
	size = j.endpoint.Size()
	return j.launchRank(j.endpoint.Rank()), 1 + j.launchRank(size-1)
}

// Rank returns this rank's number, 0 ≤ Rank < Size, and −1 if c is nil.
func (c *Comm) Rank() int {
	if c == nil {
		return -1
	}
	return c.rank
}

// Size returns the number of ranks, and 0 if c is nil.
func (c *Comm) Size() int {
	if c == nil {
		return 0
	}
	return c.size
}

// Close leaves the job, with all its communicators. Messages that were sent still
// arrive. [Main] and [Run] call Close when the rank's function returns; after
// [Join] and [NewComm] the caller does. To release one communicator only, use
// [Comm.Free].
func (c *Comm) Close() error {
	if c == nil {
		return c.unusable("close")
	}
	if handOn := c.job.family.first().handOn; handOn != nil {
		handOn()
	}
	return c.job.family.each(func(e transport.Endpoint) error { return e.Close() })
}

// undefined is the color of ranks that get no communicator.
const undefined = -1

// Split creates communicators from this one. Ranks that give the same color are in
// one communicator, ordered by key and, where keys are equal, by rank. A rank with
// a negative color is in none, and gets nil. All ranks call Split.
//
// Split is one [AllGather] of a small struct per rank, or a few, and a [Barrier], and fails
// as they do. If it fails on some ranks alone, the communicators of these ranks are revoked
// on the others.
// Different communicators can be split at the same time, by different goroutines, in
// any order. Fewer than 2^20 communicators of one rank can be in use at a time; one
// more is an ErrArgument. A communicator is in use until all its ranks have freed it.
// If they leave messages between them unreceived, or it has failed, it stays in use.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	if c == nil || !c.state.CompareAndSwap(idle, busy) {
		return nil, c.unusable("split")
	}
	if ctx == nil {
		defer c.end()
		c.sequence++
		return nil, c.argumentErrorf("split", "%w", errNoContext)
	}
	defer c.end()
	color = max(color, undefined)
	in := c.splitContext()
	s := search{members: splitCalls{in}, call: "split", parent: c, among: &c.group, tried: c.window}
	defer func() { c.sequence, c.window = in.sequence, s.tried }()
	number, err := s.find(ctx, offer{Color: color, Key: key})
	if err != nil {
		return nil, err
	}
	if color == undefined {
		return s.settle(ctx, nil)
	}
	var ranks []int
	for rank, other := range s.offers {
		if other.Color == color {
			ranks = append(ranks, rank)
		}
	}
	slices.SortStableFunc(ranks, func(x, y int) int { return cmp.Compare(s.offers[x].Key, s.offers[y].Key) })
	return s.settle(ctx, c.job.newComm(c.subgroup(ranks), number, s.base()))
}

// Dup creates a communicator of the same ranks. All ranks call it. See [Comm.Split]
// for its errors.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return c.Split(ctx, 0, c.Rank()) }

// Subset creates a communicator of some ranks, in the order given. All ranks call
// it with the same list. Those that are not in the list get nil. A rank that does
// not exist or is listed twice is an ErrArgument. See [Comm.Split] for other errors, and
// [Comm.CreateGroup] for a call by the members alone.
func (c *Comm) Subset(ctx context.Context, ranks []int) (*Comm, error) {
	if c == nil {
		return nil, c.unusable("subset")
	}
	if !c.areRanks(ranks) {
		return nil, c.rejectCallf("subset", "ranks %v: want ranks 0 to %d, each once", ranks, c.size-1)
	}
	color, key := undefined, slices.Index(ranks, c.rank)
	if key >= 0 {
		color = 0
	}
	return c.Split(ctx, color, key)
}

// areRanks reports whether a list has ranks of c, each once.
func (c *Comm) areRanks(list []int) bool {
	seen := make(map[int]bool)
	for _, rank := range list {
		if rank < 0 || rank >= c.size || seen[rank] {
			return false
		}
		seen[rank] = true
	}
	return true
}

// subgroup returns the group of some ranks of c. This rank must be one of them.
func (c *Comm) subgroup(ranks []int) group {
	g := group{members: make([]int, len(ranks)), size: len(ranks)}
	same := g.size == c.job.endpoint.Size()
	for i, rank := range ranks {
		g.members[i] = c.jobRank(rank)
		same = same && g.members[i] == i
		if rank == c.rank {
			g.rank = i
		}
	}
	if same {
		g.members = nil
	}
	return g
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
