package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
)

func TestAGroupIsCreatedByItsMembersAlone(t *testing.T) {
	for _, list := range [][]int{{0}, {4, 0, 2}, {1, 2}, {0, 1, 2, 3, 4, 5}} {
		onEachTransport(t, 7, func(ctx context.Context, c *chorale.Comm) error {
			if !slices.Contains(list, c.Rank()) {
				// No call before the group has been of use.
				if _, err := chorale.Recv(ctx, c, make([]int, 1), list[0], 5); err != nil {
					return err
				}
				return chorale.Barrier(ctx, c)
			}
			group, err := c.CreateGroup(ctx, list, 3)
			if err != nil {
				return err
			}
			defer group.Free()
			if group.Rank() != slices.Index(list, c.Rank()) || group.Size() != len(list) {
				return fmt.Errorf("rank %d is %d of %d in a group of the ranks %v", c.Rank(), group.Rank(), group.Size(), list)
			}
			got := make([]int, len(list))
			if err := chorale.AllGather(ctx, group, got, []int{c.Rank()}); err != nil {
				return err
			}
			for other := range c.Size() {
				if group.Rank() == 0 && !slices.Contains(list, other) {
					if err := chorale.Send(ctx, c, []int{0}, other, 5); err != nil {
						return err
					}
				}
			}
			return errors.Join(same(c, "members", got, list), chorale.Barrier(ctx, c))
		})
	}
}

// Groups of all pairs are created at the same time, while all ranks add up numbers and
// split the communicator. No message of one gets into another.
func TestGroupsAreCreatedAtTheSameTimeUnderDifferentTags(t *testing.T) {
	onEachTransport(t, 5, func(ctx context.Context, c *chorale.Comm) error {
		var wg sync.WaitGroup
		var errs [5]error
		for other := range c.Size() {
			if other == c.Rank() {
				continue
			}
			pair := []int{min(other, c.Rank()), max(other, c.Rank())}
			wg.Go(func() {
				for range 10 {
					group, err := c.CreateGroup(ctx, pair, 5*pair[0]+pair[1])
					if err != nil {
						errs[other] = err
						return
					}
					sum := []int{c.Rank()}
					if err := chorale.AllReduce(ctx, group, sum, sum, chorale.Sum); err != nil {
						errs[other] = err
						return
					}
					group.Free()
					errs[other] = errors.Join(errs[other], same(c, "sum", sum, []int{pair[0] + pair[1]}))
				}
			})
		}
		for range 10 {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			sum := []int{1}
			if err := chorale.AllReduce(ctx, d, sum, sum, chorale.Sum); err != nil {
				return err
			}
			d.Free()
			if err := same(c, "sum", sum, []int{5}); err != nil {
				return err
			}
		}
		wg.Wait()
		return errors.Join(errs[:]...)
	})
}

func TestCreateGroupRejectsBadArguments(t *testing.T) {
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		for _, test := range []struct {
			ranks []int
			tag   int
			want  string
		}{
			{[]int{c.Rank(), 3}, 0, "want ranks 0 to 2, each once"},
			{[]int{c.Rank(), -1}, 0, "want ranks 0 to 2, each once"},
			{[]int{c.Rank(), c.Rank()}, 0, "want ranks 0 to 2, each once"},
			{[]int{(c.Rank() + 1) % 3}, 0, fmt.Sprintf("want this rank, %d, among them", c.Rank())},
			{nil, 0, "among them"},
			{[]int{c.Rank()}, -1, "tag -1: want 0 or more"},
		} {
			_, err := c.CreateGroup(ctx, test.ranks, test.tag)
			if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), test.want) {
				return fmt.Errorf("%v, tag %d: got %v, want %q", test.ranks, test.tag, err, test.want)
			}
		}
		err := chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
			_, err := c.CreateGroup(ctx, []int{c.Rank()}, 0)
			return err
		}).Wait()
		if !errors.Is(err, chorale.ErrArgument) {
			return fmt.Errorf("in a nonblocking call: got %v", err)
		}
		return chorale.Barrier(ctx, c)
	})
}

func TestMembersWithDifferentListsAreTold(t *testing.T) {
	for _, lists := range [][3][]int{
		{{0, 1, 2}, {0, 2, 1}, {0, 1, 2}},
		{{2, 1, 0}, {0, 1, 2}, {2, 0, 1}},
	} {
		onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := c.CreateGroup(ctx, lists[c.Rank()], 0)
			if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "gives another list") {
				return fmt.Errorf("rank %d: got %v", c.Rank(), err)
			}
			return nil
		})
	}
}

// A member whose context ends has sent what another one may still take for its next call.
func TestACreationThatFailsIsNotTakenForTheNextOne(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 0 {
			for range 3 {
				short, cancel := context.WithTimeout(ctx, time.Millisecond) // sends, and waits
				_, err := c.CreateGroup(short, []int{0, 1}, 0)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("got %v, want that the context has ended", err)
				}
			}
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		group, err := c.CreateGroup(ctx, []int{0, 1}, 0)
		if err != nil && (!errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "want another tag")) {
			return fmt.Errorf("rank %d: got %v", c.Rank(), err)
		}
		// Whether it fails is the same at both.
		failed := []int{0}
		if err != nil {
			failed[0] = 1
		} else {
			group.Free()
		}
		if err := chorale.AllReduce(ctx, c, failed, failed, chorale.Sum); err != nil {
			return err
		}
		if failed[0] == 1 {
			return errors.New("one rank has a group and the other has none")
		}
		group, err = c.CreateGroup(ctx, []int{1, 0}, 1)
		if err != nil {
			return err
		}
		defer group.Free()
		return chorale.Barrier(ctx, group)
	})
}
