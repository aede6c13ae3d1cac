package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/chorale-go/chorale"
)

// onSharedMemory runs f on p ranks over each transport whose ranks share memory.
func onSharedMemory(t *testing.T, p int, f chorale.Func) {
	for _, name := range transports {
		if name != "tcp" {
			t.Run(fmt.Sprintf("%s/p=%d", name, p), func(t *testing.T) { onTransport(t, name, p, f) })
		}
	}
}

// Each rank adds its neighbors' parts, which differ in length, again and again.
func TestAFenceOrdersAccessesToAWindow(t *testing.T) {
	for _, p := range []int{1, 2, 5} {
		onSharedMemory(t, p, func(ctx context.Context, c *chorale.Comm) error {
			rank := c.Rank()
			w, err := chorale.NewWindow[int64](ctx, c, 1000+rank)
			if err != nil {
				return err
			}
			for other := range p {
				if n := len(w.Local(other)); n != 1000+other {
					return fmt.Errorf("the part of rank %d has %d elements", other, n)
				}
			}
			if w.Local(-1) != nil || w.Local(p) != nil {
				return errors.New("ranks that do not exist have parts")
			}
			for round := range 50 {
				for i := range w.Local(rank) {
					w.Local(rank)[i] = int64(round*100 + rank)
				}
				if err := w.Fence(ctx); err != nil {
					return err
				}
				for other := range p {
					for _, x := range w.Local(other) {
						if want := int64(round*100 + other); x != want {
							return fmt.Errorf("round %d: rank %d has %d in its part, want %d", round, other, x, want)
						}
					}
				}
				if err := w.Fence(ctx); err != nil {
					return err
				}
			}
			if err := w.Free(ctx); err != nil {
				return err
			}
			if held := c.Held().Endpoint.Allocated; held != 0 {
				return fmt.Errorf("the window is freed, and %d bytes are held", held)
			}
			if err := w.Unlock(0); !errors.Is(err, chorale.ErrArgument) {
				return fmt.Errorf("after Free: %v", err)
			}
			return nil
		})
	}
}

func TestALockExcludesOtherRanks(t *testing.T) {
	const p, rounds = 4, 300
	onSharedMemory(t, p, func(ctx context.Context, c *chorale.Comm) error {
		w, err := chorale.NewWindow[int](ctx, c, 2)
		if err != nil {
			return err
		}
		for i := range rounds {
			part := i % 2
			if err := w.Lock(ctx, part); err != nil {
				return err
			}
			x := w.Local(part)
			x[0]++
			x[1]--
			if x[0]+x[1] != 0 {
				return fmt.Errorf("another rank is at part %d", part)
			}
			if err := w.Unlock(part); err != nil {
				return err
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if n := w.Local(0)[0] + w.Local(1)[0]; n != p*rounds {
			return fmt.Errorf("%d increments, want %d", n, p*rounds)
		}
		return w.Free(ctx)
	})
}

func TestALockIsOfOneRank(t *testing.T) {
	onSharedMemory(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		w, err := chorale.NewWindow[int](ctx, c, 1)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := w.Lock(ctx, 1); err != nil {
				return err
			}
			for what, err := range map[string]error{"locked twice": w.Lock(ctx, 1), "no rank": w.Lock(ctx, 2), "not locked": w.Unlock(0)} {
				if !errors.Is(err, chorale.ErrArgument) {
					return fmt.Errorf("%s: %v", what, err)
				}
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 {
			if err := w.Unlock(1); !errors.Is(err, chorale.ErrArgument) {
				return fmt.Errorf("another rank's lock: %v", err)
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if err := w.Lock(ended, 1); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("the context has ended: %v", err)
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = w.Unlock(1)
		}
		return errors.Join(err, w.Free(ctx))
	})
}

// Rank 0 leaves with a lock, for which rank 1 waits already, or not yet.
func TestALockOfARankThatHasGoneIsAnError(t *testing.T) {
	for _, waits := range []bool{true, false} {
		onSharedMemory(t, 2, func(ctx context.Context, c *chorale.Comm) error {
			w, err := chorale.NewWindow[int](ctx, c, 1)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				if err := w.Lock(ctx, 1); err != nil {
					return err
				}
				if err := w.Fence(ctx); err != nil {
					return err
				}
				if waits {
					if _, err := chorale.Recv(ctx, c, []byte{0}, 1, 0); err != nil {
						return err
					}
				}
				return c.Close()
			}
			if err := w.Fence(ctx); err != nil {
				return err
			}
			if waits {
				err = chorale.Send(ctx, c, []byte{0}, 0, 0)
			} else {
				_, err = chorale.Recv(ctx, c, []byte{0}, 0, 0) // which fails once rank 0 has left
				if errors.Is(err, chorale.ErrLeft) {
					err = nil
				}
			}
			if err != nil {
				return err
			}
			err = w.Lock(ctx, 1)
			var e *chorale.Error
			if !errors.Is(err, chorale.ErrLeft) || !errors.As(err, &e) || e.Peer != 0 || !strings.Contains(err.Error(), "rank 0 has locked the part of rank 1") {
				return fmt.Errorf("the lock of a rank that has left: %v", err)
			}
			return nil
		})
	}
}

func TestAWindowNeedsSharedMemory(t *testing.T) {
	onTransport(t, "tcp", 3, func(ctx context.Context, c *chorale.Comm) error {
		_, err := chorale.NewWindow[int](ctx, c, 10)
		if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "ranks 0 and 1: the ranks share no memory") {
			return fmt.Errorf("got %v", err)
		}
		if held := c.Held().Endpoint.Allocated; held != 0 {
			return fmt.Errorf("there is no window, and %d bytes are held", held)
		}
		return chorale.Barrier(ctx, c) // the communicator stays usable
	})
}

// Rank 1 asks for more than there is.
func TestEveryRankLearnsThatOneHasNoMemoryForItsPart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no transport whose memory has a bound")
	}
	onTransport(t, "shm", 3, func(ctx context.Context, c *chorale.Comm) error {
		n := 10
		if c.Rank() == 1 {
			n = math.MaxInt >> 8
		}
		_, err := chorale.NewWindow[byte](ctx, c, n)
		if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "rank 1") {
			return fmt.Errorf("got %v", err)
		}
		return chorale.Barrier(ctx, c)
	})
}
