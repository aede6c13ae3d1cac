package chorale

import (
	"context"
	"math/bits"
	"slices"
	"sync/atomic"
)

// This file has how the ranks of a communicator agree on the number of a new one. The
// number must be in use at none of them. Numbers are found in windows of 64: each rank
// offers those of a window that it does not use, and the lowest that all offer is
// taken. An offered number is reserved until the result is known. So Splits of
// different communicators never get one number, and none waits for another: a Split
// that meets the reservations of another goes on to the next window.
// CreateGroup does the same, with messages between its members alone, and Shrink with an
// agreement.
//
// Some numbers are lost for good: that of a communicator that was revoked, since what its
// ranks have sent there may still arrive; and, if the search itself fails, those of the
// window that this rank has offered, 64 at most. A program that meets 2^14 failures in a
// Split, or 2^20 elsewhere, has none left.

const (
	numberBits = 32 - contextBits
	windows    = 1 << numberBits / 64
)

// An identity is what a communicator shares with those of its nonblocking and prepared
// calls: the number in their contexts.
type identity struct {
	number uint32
	base   uint32 // of its calls' numbers
	group  group
	kept   keptCounts

	placement placement
	failed    atomic.Pointer[ending] // the first call that has failed; nil while none has
	revoked   atomic.Bool            // by this rank

	// For a profile.
	slow     atomic.Bool // the last call that was timed was slow
	unplaced atomic.Bool // a nonblocking call of a new kind was made, and its line is not known

	// Under job.mu.
	closed bool // freed by the program
	open   int  // contexts that the endpoint has not released
	usage  usage

	allocated map[*byte]struct{} // memory from Alloc
}

// A usage is what a rank has done in the contexts of a communicator.
type usage struct {
	unreceived int64  // tagged messages sent, less those received
	calls      uint64 // a digest of the numbers of collective calls
}

// numbers are the numbers of communicators as one rank knows them. Job.mu guards them.
type numbers struct {
	used  map[uint32]uint64    // by window: in use, reserved, or never to be used again
	freed map[uint32]*identity // freed by this rank, and perhaps not by others
	calls uint32               // higher than the number of any call on a freed communicator
}

// An offer is what a rank contributes to a Split.
type offer struct {
	Color, Key int
	Base       uint32 // calls of the new communicator count from the highest one
	Free       uint64 // numbers of the window that this rank does not use
	Fresh      uint64 // those of Free that no freed communicator of this rank has
}

// A search is how some ranks find a number that none of them uses.
type search struct {
	members
	call   string
	parent *Comm
	among  *group // the ranks that search
	tried  int    // windows without such a number
	offers []offer
}

// Members are ranks that search for a number.
type members interface {
	// gather puts what each rank offers into all.
	gather(ctx context.Context, all []offer, mine offer) error
	// sum adds up the numbers of all ranks.
	sum(ctx context.Context, numbers []uint64) error
	// settle returns when all ranks know the number.
	settle(ctx context.Context) error
}

// find finds a number. If it fails, the numbers that this rank has offered stay reserved:
// another rank may have taken one of them.
func (s *search) find(ctx context.Context, mine offer) (uint32, error) {
	s.offers = make([]offer, s.among.size)
	for range windows {
		window := s.window()
		s.parent.job.offer(&mine, window, s.among)
		reserved := mine.Free
		number, err := s.findIn(ctx, window, mine, &reserved)
		if err != nil {
			return 0, err
		}
		if number != 0 && mine.Color != undefined {
			reserved &^= 1 << (number % 64) // from now on the number is in use
		}
		s.parent.job.withdraw(window, reserved)
		if number != 0 {
			return number, nil
		}
		s.tried = (s.tried + 1) % windows
	}
	return 0, s.parent.argumentErrorf(s.call, "%d communicators are in use: want less", 1<<numberBits)
}

// window returns the window in which the ranks look next. They begin with that of their
// communicator's number, and go through all others by a stride of its own. So the ranks
// of two communicators that have met in one window do not meet in the next.
func (s *search) window() uint32 {
	stride := 2*uint32(mix64(uint64(s.parent.context))) + 1
	return (s.parent.identity.number/64 + uint32(s.tried)*stride) % windows
}

// findIn finds a number in a window, or returns 0 if there is none. It removes from
// reserved the numbers that are never to be used again.
func (s *search) findIn(ctx context.Context, window uint32, mine offer, reserved *uint64) (uint32, error) {
	if err := s.gather(ctx, s.offers, mine); err != nil {
		return 0, err
	}
	free, fresh := ^uint64(0), ^uint64(0)
	for i := range s.offers {
		free, fresh = free&s.offers[i].Free, fresh&s.offers[i].Fresh
	}
	if fresh == 0 && free != 0 {
		clean, err := s.confirm(ctx, window, free)
		if err != nil {
			return 0, err
		}
		*reserved &^= free &^ clean
		fresh = clean
	}
	if fresh == 0 {
		return 0, nil
	}
	return 64*window + uint32(bits.TrailingZeros64(fresh)), nil
}

// settle returns the communicator that this rank has made with the number that was found, or
// nil if it is in none, when all ranks have made theirs. If this rank cannot know that, it
// revokes the communicator, so that no other rank waits for it there.
func (s *search) settle(ctx context.Context, made *Comm) (*Comm, error) {
	err := s.members.settle(ctx)
	if err == nil {
		return made, nil
	}
	if made != nil {
		made.revoke(err)
		made.Free()
	}
	return nil, err
}

// base returns from where the calls of the new communicator count.
func (s *search) base() (base uint32) {
	for _, o := range s.offers {
		base = max(base, o.Base)
	}
	return base
}

// splitCalls are the calls by which all ranks of a communicator search.
type splitCalls struct{ *Comm }

func (c splitCalls) gather(ctx context.Context, all []offer, mine offer) error {
	return AllGather(ctx, c.Comm, all, []offer{mine})
}

func (c splitCalls) settle(ctx context.Context) error { return Barrier(ctx, c.Comm) }

func (c splitCalls) sum(ctx context.Context, numbers []uint64) error {
	return AllReduce(ctx, c.Comm, numbers, numbers, Sum)
}

// splitContext returns a communicator for the calls of Split while c itself is busy. It
// has the context of c, so that a rank that makes another call instead is noticed.
func (c *Comm) splitContext() *Comm {
	if c.splitter == nil {
		c.splitter = &Comm{job: c.job, group: c.group, context: c.context, identity: c.identity}
		c.splitter.cache.kept, c.splitter.memory.Held = &c.identity.kept, &c.identity.kept.memory
	}
	c.splitter.sequence = c.sequence
	return c.splitter
}

// offer reserves the numbers of a window that this rank does not use, and puts them
// into its offer. A number that this rank has freed is offered if all ranks that may
// not have freed it take part.
func (j *job) offer(o *offer, window uint32, among *group) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := &j.numbers
	if n.used == nil {
		n.used, n.freed = map[uint32]uint64{0: 1}, map[uint32]*identity{} // 0 is the job's
	}
	o.Base = n.calls
	o.Free = ^n.used[window]
	o.Fresh = o.Free
	for rest := o.Free; rest != 0 && len(n.freed) > 0; rest &= rest - 1 {
		bit := rest & -rest
		if id := n.freed[64*window+uint32(bits.TrailingZeros64(bit))]; id != nil {
			o.Fresh &^= bit
			if !among.contains(&id.group, j.endpoint.Size()) {
				o.Free &^= bit
			}
		}
	}
	n.used[window] |= o.Free
}

// withdraw ends the reservation of numbers.
func (j *job) withdraw(window uint32, numbers uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.numbers.drop(window, numbers)
}

// drop makes numbers of a window free.
func (n *numbers) drop(window uint32, numbers uint64) {
	if n.used[window] &^= numbers; n.used[window] == 0 {
		delete(n.used, window)
	}
}

// confirm finds which of the free numbers can be used again, when all ranks that had
// their communicators have freed them. A number whose ranks have left a message
// unreceived, or have not made the same number of calls, is never used again: the
// message would be taken for one of the new communicator.
func (s *search) confirm(ctx context.Context, window uint32, free uint64) (clean uint64, err error) {
	j := s.parent.job
	var sums [64][2]uint64 // of unreceived messages; and of calls, 0 if all ranks agree
	j.mu.Lock()
	for rest := free; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if id := j.numbers.freed[64*window+uint32(i)]; id != nil {
			sums[i] = [2]uint64{uint64(id.usage.unreceived), -id.usage.calls}
			if id.group.rank == 0 {
				sums[i][1] = uint64(id.group.size-1) * id.usage.calls
			}
		}
	}
	j.mu.Unlock()
	flat := make([]uint64, 0, len(sums)*2)
	for i := range sums {
		flat = append(flat, sums[i][:]...)
	}
	if err := s.sum(ctx, flat); err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for rest := free; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		number := 64*window + uint32(i)
		if flat[2*i]|flat[2*i+1] == 0 {
			clean |= 1 << i
		}
		delete(j.numbers.freed, number)
	}
	return clean, nil
}

// contains reports whether all ranks of o are ranks of g. A job has size ranks.
func (g *group) contains(o *group, size int) bool {
	switch {
	case g.size == size:
		return true
	case g.size < o.size:
		return false
	case slices.Equal(g.members, o.members):
		return true
	}
	ranks := make(map[int]bool, g.size)
	for _, rank := range g.members {
		ranks[rank] = true
	}
	return !slices.ContainsFunc(o.members, func(rank int) bool { return !ranks[rank] })
}
