package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/chorale-go/chorale"
)

// A rank is one rank of a program.
type rank struct {
	*program
	me       int
	base     *chorale.Comm
	members  []int // of base
	job      []int // the ranks of the endpoint: what errors count; -1 if lost before all have met
	print    func(format string, args ...any)
	baseline *usage // nil until it is taken
	calls    int
	ph       *phase
	lost     bool // a call has failed in this phase since a rank was killed
	hostLost bool // the second host is
}

// A group is a communicator of a phase. Comm is nil if this rank is not in it.
type group struct {
	comm  *chorale.Comm
	ranks []int
}

// run runs the program on one rank.
func (k *rank) run(ctx context.Context) error {
	next := 0
	if k.base.Respawned() {
		if _, stillborn := k.stillborn(k.me); stillborn {
			select {}
		}
		last, err := k.meet(ctx, 0)
		if err != nil {
			return err
		}
		next = last + 1
		k.print("anew %d", k.me)
	} else {
		for i := range k.size {
			k.members = append(k.members, i)
		}
		k.job = k.members
	}
	for ; next < k.phases && !(k.deadly && len(k.members) <= 2); next++ {
		k.ph, k.lost = k.phase(next, k.members), false
		if err := k.do(ctx); err != nil {
			if k.dies(withHost) { // it has lost the others, and its end is near
				select {}
			}
			return fmt.Errorf("%v, phase %d, rank %d of %v: %w", k.program, next, k.me, k.members, err)
		}
		if k.ph.grows {
			if err := k.grow(ctx, next); err != nil {
				return fmt.Errorf("%v, grow after phase %d, rank %d of %v: %w", k.program, next, k.me, k.members, err)
			}
		}
		if err := k.checkUsage(); err != nil {
			return fmt.Errorf("%v, after phase %d, rank %d: %w", k.program, next, k.me, err)
		}
	}
	k.print("done %d %v", k.calls, k.members)
	return nil
}

// do does a phase.
func (k *rank) do(ctx context.Context) error {
	groups, err := k.derive(ctx)
	if err != nil {
		return err
	}
	// All have all of them, also if a rank is killed that has left the barrier first.
	if err := chorale.Barrier(ctx, k.base); err != nil && !k.isLoss(err, k.members) {
		return fmt.Errorf("barrier before any rank is killed: %w", err)
	}
	k.dieIfVictim(atBeginning)
	k.loseHost()
	for i, s := range k.ph.steps {
		g := groups[s.group]
		if g.comm == nil {
			continue
		}
		k.calls++
		if err := k.step(ctx, s, g); err != nil && !k.isLoss(err, g.ranks) {
			return fmt.Errorf("step %d: %v: %w", i, s, err)
		}
	}
	if len(k.ph.victims) > 0 {
		if err := k.survive(ctx); err != nil {
			return err
		}
		for i, g := range groups[1:] {
			if g.comm != nil && !k.ph.doomed(g.ranks) {
				if err := k.sum(ctx, g); err != nil {
					return fmt.Errorf("communicator %d of ranks %v, which has lost none: %w", i+1, g.ranks, err)
				}
			}
		}
	}
	for _, g := range groups[1:] {
		g.comm.Free()
	}
	return nil
}

// derive makes the communicators of the phase.
func (k *rank) derive(ctx context.Context) ([]group, error) {
	groups := []group{{k.base, k.members}}
	for _, d := range k.ph.groups {
		from := groups[d.from]
		var made *chorale.Comm
		var err error
		if from.comm != nil {
			made, err = k.make(ctx, d, from)
		}
		if err != nil {
			return nil, fmt.Errorf("%s of ranks %v: %w", d.how, from.ranks, err)
		}
		for _, ranks := range d.groups {
			g := group{nil, ranks}
			if slices.Contains(ranks, k.me) && from.comm != nil {
				g.comm = made
			}
			groups = append(groups, g)
		}
	}
	return groups, nil
}

func (k *rank) make(ctx context.Context, d derivation, from group) (*chorale.Comm, error) {
	var ranks []int // of the first communicator made, as ranks of the one it is made of
	for _, rank := range d.groups[0] {
		ranks = append(ranks, slices.Index(from.ranks, rank))
	}
	switch d.how {
	case "dup":
		return from.comm.Dup(ctx)
	case "split":
		at := from.comm.Rank()
		return from.comm.Split(ctx, d.colors[at], d.keys[at])
	case "subset":
		return from.comm.Subset(ctx, ranks)
	}
	if !slices.Contains(ranks, from.comm.Rank()) {
		return nil, nil
	}
	return from.comm.CreateGroup(ctx, ranks, d.tag)
}

// dies reports whether this rank is a victim of the phase at a moment.
func (k *rank) dies(when moment) bool {
	return slices.ContainsFunc(k.ph.victims, func(v victim) bool { return v.rank == k.me && v.when == when })
}

// dieIfVictim has this process killed after a while if it is a victim of the phase.
func (k *rank) dieIfVictim(when moment) {
	for _, v := range k.ph.victims {
		if v.rank == k.me && v.when == when {
			k.dieAfter("killed", v.after)
		}
	}
}

// dieAfter has this process killed after a while, and says so before.
func (k *rank) dieAfter(word string, after time.Duration) {
	go func() {
		time.Sleep(after)
		k.print("%s %d %d", word, k.me, time.Now().UnixNano())
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			self.Kill()
		}
	}()
}

// loseHost has the second host lost after a while, if this rank is the one that cuts it off.
func (k *rank) loseHost() {
	h := k.ph.host
	k.hostLost = k.hostLost || h != nil
	if h == nil || h.by != k.me {
		return
	}
	go func() {
		time.Sleep(h.after)
		for _, v := range k.ph.victims {
			if v.when == withHost {
				k.print("cut %d %d", v.rank, time.Now().UnixNano())
			}
		}
		if err := cutOff(h.cable); err != nil {
			k.print("the second host is not lost: %v", err)
		}
	}()
}

// isLoss reports whether an error of a call on a communicator of some ranks is that one of
// them was killed, and says when the first one came.
func (k *rank) isLoss(err error, ranks []int) bool {
	var e *chorale.Error
	if !k.ph.doomed(ranks) || !errors.Is(err, chorale.ErrLost) || !errors.As(err, &e) || e.Peer < 0 || e.Peer >= len(k.job) || !k.ph.isDoomed(k.job[e.Peer]) {
		return false
	}
	if !k.lost {
		k.lost = true
		k.print("lost %d %d", k.job[e.Peer], time.Now().UnixNano())
	}
	return true
}

// survive waits until all victims of the phase are dead, and has the others in a communicator.
// A victim does not return from it.
func (k *rank) survive(ctx context.Context) error {
	if k.dies(atBeginning) || k.dies(withHost) {
		select {}
	}
	r := k.random(k.ph.number, -2)
	c, members := k.base, k.members
	for k.ph.doomed(members) {
		if err := k.awaitLoss(ctx, c, members); err != nil {
			return err
		}
		k.dieIfVictim(atLoss)
		from := c
		if r.IntN(4) == 0 && from != k.base { // from the first one again
			from, members = k.base, k.members
		}
		d, err := from.Shrink(ctx)
		if err != nil {
			return fmt.Errorf("shrink of %v: %w", members, err)
		}
		if c != k.base {
			c.Free()
		}
		c = d
		if members, err = k.left(from, members); err != nil {
			return err
		}
	}
	if err := k.sum(ctx, group{c, members}); err != nil {
		return fmt.Errorf("survivors %v: %w", members, err)
	}
	k.base.Free()
	k.base, k.members = c, members
	return nil
}

// awaitLoss makes calls until one fails because of a victim.
func (k *rank) awaitLoss(ctx context.Context, c *chorale.Comm, members []int) error {
	for {
		err := chorale.Barrier(ctx, c)
		switch {
		case err == nil:
		case k.isLoss(err, members):
			return nil
		default:
			return fmt.Errorf("barrier of %v until a rank is lost: %w", members, err)
		}
	}
}

// left returns the ranks of a communicator that its last agreement has not lost.
func (k *rank) left(c *chorale.Comm, ranks []int) (left []int, err error) {
	lost := c.Lost()
	for i, rank := range ranks {
		switch {
		case !slices.Contains(lost, i):
			left = append(left, rank)
		case !k.ph.isDoomed(rank):
			return nil, fmt.Errorf("rank %d of %v is taken for lost, and nobody has killed it", rank, ranks)
		}
	}
	return left, nil
}

// sum adds up a number of each rank.
func (k *rank) sum(ctx context.Context, g group) error {
	if g.comm.Size() != len(g.ranks) || g.ranks[g.comm.Rank()] != k.me {
		return fmt.Errorf("rank %d is rank %d of %d in a communicator of %v", k.me, g.comm.Rank(), g.comm.Size(), g.ranks)
	}
	sum, want := []int64{int64(1) << k.me}, int64(0)
	for _, rank := range g.ranks {
		want += 1 << rank
	}
	err := chorale.AllReduce(ctx, g.comm, sum, sum, chorale.Sum)
	if err == nil && sum[0] != want {
		return fmt.Errorf("the sum over ranks %v is %b, want %b", g.ranks, sum[0], want)
	}
	return err
}
