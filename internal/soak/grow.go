package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/chorale-go/chorale"
)

// grow takes in the processes that were started anew. Some ranks are killed meanwhile, and some
// of the new processes: then the ranks that are left shrink their communicator, and try again.
func (k *rank) grow(ctx context.Context, phase int) error {
	k.ph.victims = append(k.ph.victims, k.ph.growing...)
	// All have ended the phase, also if a rank is killed that has left the barrier first.
	if err := chorale.Barrier(ctx, k.base); err != nil && !k.isLoss(err, k.members) {
		return fmt.Errorf("barrier before: %w", err)
	}
	k.dieIfVictim(atGrow)
	for {
		c, err := k.base.Grow(ctx)
		if k.dies(atGrow) {
			select {}
		}
		if err == nil {
			k.base.Free()
			k.base = c
			break
		}
		if !k.isLossOfGrow(err) {
			return err
		}
		d, err := k.base.Shrink(ctx)
		if err != nil {
			return fmt.Errorf("shrink of %v after a grow that has failed: %w", k.members, err)
		}
		left, err := k.left(k.base, k.members)
		if err != nil {
			return err
		}
		k.base.Free()
		k.base, k.members = d, left
		if err := k.checkUsage(); err != nil { // of an endpoint that was not made, nothing is left
			return fmt.Errorf("after a grow that has failed: %w", err)
		}
	}
	before := k.members
	if _, err := k.meet(ctx, phase); err != nil {
		return err
	}
	for _, rank := range before {
		if !slices.Contains(k.members, rank) && !k.ph.isDoomed(rank) {
			return fmt.Errorf("rank %d of %v is not among %v, and nobody has killed it", rank, before, k.members)
		}
	}
	return nil
}

// isLossOfGrow reports whether a Grow has failed because a rank was killed, or a new process.
func (k *rank) isLossOfGrow(err error) bool {
	if k.isLoss(err, k.members) {
		return true
	}
	var e *chorale.Error
	if !errors.Is(err, chorale.ErrLost) || !errors.As(err, &e) {
		return false
	}
	for rank := range k.size {
		_, stillborn := k.stillborn(rank)
		// Of a process that the endpoint has never had, and of one that has died before all have met, the
		// rank is not known.
		may := e.Peer < 0 || e.Peer < len(k.job) && (k.job[e.Peer] == rank || k.job[e.Peer] < 0)
		if may && !slices.Contains(k.members, rank) && (stillborn || k.hostLost && rank >= k.slots[0]) {
			return true
		}
	}
	return false
}

// meet tells the ranks of a grown communicator to each other, and returns the last phase of
// those that were there before. Ranks that are lost before they have met are left out.
func (k *rank) meet(ctx context.Context, last int) (int, error) {
	type who struct{ Rank, Last, At int64 }
	me, size := who{int64(k.me), int64(last), int64(k.base.Rank())}, k.base.Size() // of the endpoint
	for {
		all, met := make([]who, k.base.Size()), uint64(1)
		if err := chorale.AllGather(ctx, k.base, all, []who{me}); errors.Is(err, chorale.ErrLost) {
			met = 0
		} else if err != nil {
			return 0, fmt.Errorf("meeting of %d: %w", len(all), err)
		}
		met, err := k.base.Agree(ctx, met)
		if err != nil {
			return 0, fmt.Errorf("meeting of %d: %w", len(all), err)
		}
		if met == 1 && len(k.base.Lost()) == 0 {
			k.members, k.job, k.baseline = nil, slices.Repeat([]int{-1}, size), nil
			for _, w := range all {
				k.members = append(k.members, int(w.Rank))
				k.job[w.At] = int(w.Rank)
				last = max(last, int(w.Last))
			}
			return last, nil
		}
		d, err := k.base.Shrink(ctx)
		if err != nil {
			return 0, fmt.Errorf("shrink of %d that meet: %w", len(all), err)
		}
		k.base.Free()
		k.base = d
	}
}
