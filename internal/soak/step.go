package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/internal/oracle"
)

// step does a step on a communicator.
func (k *rank) step(ctx context.Context, s step, g group) error {
	r := s.draw()
	switch s.what {
	case "collective":
		return k.verified(ctx, g.comm, s.calls(r)[0])
	case "overlap":
		calls := s.calls(r)
		request := chorale.Start(ctx, g.comm, func(ctx context.Context, c *chorale.Comm) error { return k.verified(ctx, c, calls[0]) })
		err := k.verified(ctx, g.comm, calls[1])
		return errors.Join(request.Wait(), err)
	case "messages":
		return k.messages(ctx, r, g)
	case "make":
		return k.makeAndUse(ctx, r, s.group, g)
	case "prepared":
		return k.prepared(ctx, g)
	case "agree":
		return k.agree(ctx, r, g)
	case "shrink":
		return k.shrink(ctx, g)
	case "deadline":
		return k.deadline(ctx, g)
	case "cancel":
		return k.cancel(ctx, r, s, g)
	}
	return k.revoke(ctx, r, g)
}

// verified makes a collective call, and compares its result with what it should be.
func (k *rank) verified(ctx context.Context, c *chorale.Comm, call oracle.Call) error {
	if err := call.Run(ctx, c); err != nil {
		return err
	}
	return call.Verify(c.Rank())
}

// messages sends messages around the ranks, in the order of their lengths' draw.
func (k *rank) messages(ctx context.Context, r *rand.Rand, g group) error {
	p, at := len(g.ranks), g.comm.Rank()
	by := r.IntN(p)
	var wait []func() error
	for tag := range 1 + r.IntN(4) {
		n := []int{0, 1, 100, 2000, 30_000, 200_000}[r.IntN(6)]
		out, in := make([]int32, n), make([]int32, n)
		for i := range out {
			out[i] = int32(at*1000 + tag + i)
		}
		from := (at + p - by) % p
		received := chorale.StartRecv(ctx, g.comm, in, from, tag)
		sent := chorale.StartSend(ctx, g.comm, out, (at+by)%p, tag)
		wait = append(wait, sent.Wait, func() error {
			if err := received.Wait(); err != nil {
				return err
			}
			for i, x := range in {
				if want := int32(from*1000 + tag + i); x != want {
					return fmt.Errorf("element %d of a message of %d is %d, want %d", i, n, x, want)
				}
			}
			return nil
		})
	}
	var errs []error
	for _, w := range wait {
		errs = append(errs, w())
	}
	return errors.Join(errs...)
}

// makeAndUse makes communicators of one, uses the one with this rank, and frees it.
func (k *rank) makeAndUse(ctx context.Context, r *rand.Rand, from int, g group) error {
	d := derive(r, from, g.ranks)
	made, err := k.make(ctx, d, g)
	if err != nil {
		return k.ofOthers(err, g)
	}
	defer made.Free()
	for _, ranks := range d.groups {
		if made != nil && ranks[made.Rank()%len(ranks)] == k.me {
			return k.ofOthers(k.sum(ctx, group{made, ranks}), g)
		}
	}
	if made != nil {
		return fmt.Errorf("%s of %v: rank %d of %d is none of %v", d.how, g.ranks, made.Rank(), made.Size(), d.groups)
	}
	return nil
}

// ofOthers drops an error of a communicator that a rank may have revoked that has lost
// another one in making it.
func (k *rank) ofOthers(err error, g group) error {
	if k.ph.doomed(g.ranks) && (errors.Is(err, chorale.ErrRevoked) || errors.Is(err, chorale.ErrAborted)) {
		return nil
	}
	return err
}

// prepared makes a persistent call several times.
func (k *rank) prepared(ctx context.Context, g group) error {
	call, err := chorale.Prepare(g.comm, func(ctx context.Context, c *chorale.Comm) error { return k.sum(ctx, group{c, g.ranks}) })
	if err != nil {
		return err
	}
	defer call.Free()
	for range 3 {
		call.Start(ctx)
		if err := call.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// agree agrees on a value, also if the communicator has failed.
func (k *rank) agree(ctx context.Context, r *rand.Rand, g group) error {
	values := make([]uint64, len(g.ranks))
	for i := range values {
		values[i] = r.Uint64() | r.Uint64() | r.Uint64()
	}
	got, err := g.comm.Agree(ctx, values[g.comm.Rank()])
	if err != nil {
		return notLoss{err}
	}
	lost := make([]bool, len(g.ranks))
	for _, i := range g.comm.Lost() {
		lost[i] = true
	}
	if _, err := k.left(g.comm, g.ranks); err != nil {
		return err
	}
	want := ^uint64(0)
	for i, v := range values {
		if !lost[i] {
			want &= v
		}
	}
	if got != want {
		return fmt.Errorf("ranks agree on %x, want %x; lost are %v", got, want, g.comm.Lost())
	}
	return nil
}

// A notLoss is the error of a call that no loss of another rank fails.
type notLoss struct{ error }

// shrink uses what is left of a communicator.
func (k *rank) shrink(ctx context.Context, g group) error {
	d, err := g.comm.Shrink(ctx)
	if err != nil {
		return notLoss{err}
	}
	defer d.Free()
	left, err := k.left(g.comm, g.ranks)
	if err != nil {
		return err
	}
	if err := k.sum(ctx, group{d, left}); err != nil && !k.isLoss(err, left) {
		return notLoss{fmt.Errorf("what is left, %v: %w", left, err)}
	}
	return nil
}

// deadline waits for a message that nobody sends. The communicator stays usable.
func (k *rank) deadline(ctx context.Context, g group) error {
	short, cancel := context.WithTimeout(ctx, 300*time.Microsecond)
	defer cancel()
	if _, err := chorale.Recv(short, g.comm, make([]int, 1), chorale.AnyRank, 99); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("receive of what nobody sends: %w", err)
	}
	return k.sum(ctx, g)
}

// cancel ends the context of one rank in a collective.
func (k *rank) cancel(ctx context.Context, r *rand.Rand, s step, g group) error {
	call := s.calls(r)[0]
	canceler, slow := r.IntN(len(g.ranks)), r.IntN(len(g.ranks))
	after := time.Duration(10<<r.IntN(8)) * time.Microsecond
	d, err := g.comm.Dup(ctx)
	if err != nil {
		return err
	}
	defer d.Free()
	own := ctx
	if d.Rank() == canceler {
		short, cancel := context.WithTimeout(ctx, after)
		defer cancel()
		own = short
	}
	if d.Rank() == slow {
		time.Sleep(2 * after)
	}
	switch err := k.verified(own, d, call); {
	case err == nil:
	case d.Rank() == canceler && errors.Is(err, context.DeadlineExceeded):
	case d.Rank() != canceler && errors.Is(err, chorale.ErrAborted) && k.names(err, g.ranks[canceler]):
	default:
		return fmt.Errorf("the context of rank %d ends in %v: %w", g.ranks[canceler], call, err)
	}
	return k.shrink(ctx, group{d, g.ranks})
}

// names reports whether an error names a rank.
func (k *rank) names(err error, rank int) bool {
	var e *chorale.Error
	return errors.As(err, &e) && e.Peer >= 0 && e.Peer < len(k.job) && k.job[e.Peer] == rank
}

// revoke revokes a communicator on one rank while all use it.
func (k *rank) revoke(ctx context.Context, r *rand.Rand, g group) error {
	revoker, after := r.IntN(len(g.ranks)), time.Duration(10<<r.IntN(8))*time.Microsecond
	d, err := g.comm.Dup(ctx)
	if err != nil {
		return err
	}
	defer d.Free()
	if d.Rank() == revoker {
		revoked := make(chan error, 1)
		go func() {
			time.Sleep(after)
			revoked <- d.Revoke()
		}()
		defer func() { <-revoked }()
	}
	for {
		err := k.sum(ctx, group{d, g.ranks})
		if errors.Is(err, chorale.ErrRevoked) && k.names(err, g.ranks[revoker]) {
			break
		}
		if err != nil {
			return fmt.Errorf("rank %d revokes the communicator: %w", g.ranks[revoker], err)
		}
	}
	return k.shrink(ctx, group{d, g.ranks})
}
