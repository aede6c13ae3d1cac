package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/chorale-go/chorale"
)

const rounds = 400

// numbersOf counts the different numbers that communicators get.
type numbersOf struct{ seen map[int]bool }

func (n *numbersOf) add(c *chorale.Comm) {
	if n.seen == nil {
		n.seen = make(map[int]bool)
	}
	if c != nil {
		n.seen[chorale.NumberOf(c)] = true
	}
}

func (n *numbersOf) check(most int) error {
	if len(n.seen) > most {
		return fmt.Errorf("%d numbers were used, want at most %d", len(n.seen), most)
	}
	return nil
}

func TestNumbersOfFreedCommunicatorsAreUsedAgain(t *testing.T) {
	for name, round := range map[string]func(ctx context.Context, c *chorale.Comm, i int, n *numbersOf) error{
		"Dup": func(ctx context.Context, c *chorale.Comm, i int, n *numbersOf) error {
			d, err := c.Dup(ctx)
			n.add(d)
			d.Free()
			return err
		},
		"different halves": func(ctx context.Context, c *chorale.Comm, i int, n *numbersOf) error {
			color := (c.Rank() + i%2) / 2 % 2
			if i%3 == c.Rank() {
				color = -1
			}
			d, err := c.Split(ctx, color, 0)
			if err != nil {
				return err
			}
			n.add(d)
			if d != nil {
				if err := chorale.Barrier(ctx, d); err != nil {
					return err
				}
			}
			d.Free()
			return nil
		},
		"a child that outlives its parent": func(ctx context.Context, c *chorale.Comm, i int, n *numbersOf) error {
			d, err := c.Split(ctx, c.Rank()%2, 0)
			if err != nil {
				return err
			}
			e, err := d.Dup(ctx)
			if err != nil {
				return err
			}
			n.add(d)
			n.add(e)
			d.Free()
			sum := []int{1}
			if err := chorale.AllReduce(ctx, e, sum, sum, chorale.Sum); err != nil {
				return err
			}
			e.Free()
			return same(c, "sum", sum, []int{2})
		},
		"groups that share ranks": func(ctx context.Context, c *chorale.Comm, i int, n *numbersOf) error {
			for _, list := range [][]int{{i % 4, (i + 1) % 4}, {2, 1, 0}} {
				if !slices.Contains(list, c.Rank()) {
					continue
				}
				d, err := c.CreateGroup(ctx, list, 0)
				if err != nil {
					return err
				}
				n.add(d)
				if err := chorale.Barrier(ctx, d); err != nil {
					return err
				}
				d.Free()
			}
			return nil
		},
		"with nonblocking and prepared calls": func(ctx context.Context, c *chorale.Comm, i int, n *numbersOf) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			n.add(d)
			p, err := chorale.Prepare(d, func(ctx context.Context, c *chorale.Comm) error { return chorale.Barrier(ctx, c) })
			if err != nil {
				return err
			}
			p.Start(ctx)
			if err := errors.Join(chorale.StartBarrier(ctx, d).Wait(), p.Wait()); err != nil {
				return err
			}
			peer := c.Rank() ^ 1
			got := []int{0}
			if _, err := chorale.SendRecv(ctx, d, got, peer, []int{i}, peer, 0); err != nil {
				return err
			}
			d.Free()
			return same(c, "message", got, []int{i})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachTransport(t, 4, func(ctx context.Context, c *chorale.Comm) error {
				var n numbersOf
				for i := range rounds {
					if err := round(ctx, c, i, &n); err != nil {
						return fmt.Errorf("round %d: %w", i, err)
					}
				}
				// Each window of 64 is used up before its freed numbers are confirmed.
				return n.check(rounds / 2)
			})
		})
	}
}

// A communicator that only some ranks have freed keeps its number: the others still
// use it.
func TestNumberOfACommunicatorThatOneRankHasNotFreedIsInUse(t *testing.T) {
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		pair, err := c.Subset(ctx, []int{0, 1}) // without rank 2, which does not free d
		if err != nil {
			return err
		}
		if c.Rank() < 2 {
			d.Free()
			for range 200 {
				e, err := pair.Dup(ctx)
				if err != nil {
					return err
				}
				if chorale.NumberOf(e) == chorale.NumberOf(d) {
					return fmt.Errorf("number %d is used again, and rank 2 has not freed it", chorale.NumberOf(d))
				}
				e.Free()
			}
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		d.Free()
		return nil
	})
}

// A tagged message that was left unreceived never turns up in a later communicator.
func TestUnreceivedMessageOfAFreedCommunicatorIsNeverReceived(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		for i := range 300 {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			if i%2 == 1 { // no rank has sent anything in this one
				if _, found, err := chorale.TryProbe[int](ctx, d, chorale.AnyRank, chorale.AnyTag); found || err != nil {
					return fmt.Errorf("communicator %d has a message, or %v", i, err)
				}
			}
			if c.Rank() == 0 && i%2 == 0 {
				if err := chorale.Send(ctx, d, []int{i}, 1, 0); err != nil {
					return err
				}
			}
			d.Free()
		}
		return nil
	})
}

// The number of a communicator in which a receive is still in progress is not used
// again: the receive would take a message of the new one.
func TestFreeDuringAReceiveKeepsTheNumber(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		soon, cancel := context.WithCancel(ctx)
		defer cancel()
		r := chorale.StartRecv(soon, d, make([]int, 1), chorale.AnyRank, chorale.AnyTag)
		d.Free()
		used := func() (again bool, err error) {
			for range 200 {
				e, err := c.Dup(ctx)
				if err != nil {
					return false, err
				}
				if chorale.NumberOf(e) == chorale.NumberOf(d) {
					again = true
				}
				e.Free()
			}
			return again, nil
		}
		if again, err := used(); again || err != nil {
			return fmt.Errorf("number used again during the receive, or %v", err)
		}
		cancel()
		if err := r.Wait(); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %v", err)
		}
		if again, err := used(); !again || err != nil {
			return fmt.Errorf("number not used again after the receive, or %v", err)
		}
		return nil
	})
}

// Each rank splits all communicators at the same time, in an order of its own.
func TestDifferentCommunicatorsAreSplitAtTheSameTime(t *testing.T) {
	const comms, splits = 8, 20
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		parents := make([]*chorale.Comm, comms)
		for i := range parents {
			var err error
			if parents[i], err = c.Dup(ctx); err != nil {
				return err
			}
		}
		var wait sync.WaitGroup
		errs := make([]error, comms)
		for _, i := range rand.Perm(comms) {
			wait.Go(func() {
				for k := range splits {
					d, err := parents[i].Split(ctx, k%2*(c.Rank()%2), 0)
					if err != nil {
						errs[i] = err
						return
					}
					members := []int{0}
					if err := chorale.AllReduce(ctx, d, members, []int{100*i + 1}, chorale.Sum); err != nil {
						errs[i] = err
						return
					}
					if want := d.Size() * (100*i + 1); members[0] != want {
						errs[i] = fmt.Errorf("communicator %d: sum %d, want %d", i, members[0], want)
						return
					}
					if k%3 > 0 {
						d.Free()
					}
				}
			})
		}
		wait.Wait()
		return errors.Join(errs...)
	})
}

func TestSecondSplitOfOneCommunicatorIsBusy(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		var inside error
		op := chorale.Op[int]{Combine: func(a, b int) int {
			_, inside = c.Dup(ctx)
			return a + b
		}}
		sum := []int{1}
		if err := chorale.AllReduceFunc(ctx, c, sum, sum, op); err != nil {
			return err
		}
		if !errors.Is(inside, chorale.ErrBusy) {
			return fmt.Errorf("got %v, want ErrBusy", inside)
		}
		d, err := c.Dup(ctx) // ErrBusy has not counted
		d.Free()
		return err
	})
}

// However few numbers are left, and wherever they are, they are found.
func TestCommunicatorsAreBoundedByThoseInUse(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		// Rank 0 has two numbers left, and rank 1 these and another one.
		left := []int{70000, 1<<20 - 1, 5}
		chorale.UseNumbers(c, left[:2+c.Rank()]...)
		times := 3
		if testing.Short() {
			times = 1
		}
		for range times {
			var comms [2]*chorale.Comm
			for i := range comms {
				var err error
				if comms[i], err = c.Dup(ctx); err != nil {
					return err
				}
			}
			if a, b := chorale.NumberOf(comms[0]), chorale.NumberOf(comms[1]); a+b != left[0]+left[1] {
				return fmt.Errorf("numbers %d and %d, want %v", a, b, left[:2])
			}
			if _, err := c.Dup(ctx); !errors.Is(err, chorale.ErrArgument) {
				return fmt.Errorf("got %v, want that all numbers are in use", err)
			}
			comms[0].Free()
			comms[1].Free()
		}
		return chorale.Barrier(ctx, c)
	})
}
