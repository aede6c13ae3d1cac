package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
)

func TestRecvPicksMessagesBySenderAndTag(t *testing.T) {
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() > 0 {
			for tag := range 3 {
				if err := chorale.Send(ctx, c, vector(10*c.Rank()+tag, 4), 0, tag); err != nil {
					return err
				}
			}
			return nil
		}
		for _, from := range []int{2, 1} {
			for _, tag := range []int{1, 2, 0} {
				dst := make([]int64, 6)
				s, err := chorale.Recv(ctx, c, dst, from, tag)
				if err != nil {
					return err
				}
				if want := (chorale.Status{From: from, Tag: tag, Count: 4}); s != want {
					return fmt.Errorf("status %+v, want %+v", s, want)
				}
				if err := same(c, "message", dst[:4], vector(10*from+tag, 4)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestAnyRankAndRoundRobin(t *testing.T) {
	onEachTransport(t, 5, func(ctx context.Context, c *chorale.Comm) error {
		const rounds = 4
		if c.Rank() != 2 {
			for i := range rounds {
				if err := chorale.Send(ctx, c, []int{c.Rank(), i}, 2, 7); err != nil {
					return err
				}
				if err := chorale.Send(ctx, c, []int{c.Rank(), i}, 2, 8); err != nil {
					return err
				}
			}
			return nil
		}
		var got [2]int
		next := make(map[int]int)
		for range 4 * rounds {
			s, err := chorale.Recv(ctx, c, got[:], chorale.AnyRank, 7)
			if err != nil {
				return err
			}
			if got[0] != s.From || got[1] != next[s.From] {
				return fmt.Errorf("message %v from rank %d, want number %d", got, s.From, next[s.From])
			}
			next[s.From]++
		}
		for i := range rounds {
			for _, from := range []int{0, 1, 3, 4} {
				s, err := chorale.Recv(ctx, c, got[:], chorale.RoundRobin, 8)
				if err != nil {
					return err
				}
				if s.From != from || got != [2]int{from, i} {
					return fmt.Errorf("message %v from rank %d, want number %d from rank %d", got, s.From, i, from)
				}
			}
		}
		return nil
	})
}

func TestSendRecvAroundARing(t *testing.T) {
	for _, p := range []int{1, 2, 5} {
		for _, n := range []int{0, 1, 1000, 1 << 17} {
			onEachTransport(t, p, func(ctx context.Context, c *chorale.Comm) error {
				dst := make([]int64, n)
				right, left := (c.Rank()+1)%p, (c.Rank()+p-1)%p
				if _, err := chorale.SendRecv(ctx, c, dst, left, vector(c.Rank(), n), right, 0); err != nil {
					return err
				}
				return same(c, "dst", dst, vector(left, n))
			})
		}
	}
}

func TestProbeReturnsTheStatusOfTheNextRecv(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			if err := chorale.Send(ctx, c, make([]float32, 9), 0, 3); err != nil {
				return err
			}
			return chorale.Barrier(ctx, c)
		}
		s, err := chorale.Probe[float32](ctx, c, chorale.AnyRank, chorale.AnyTag)
		if err != nil {
			return err
		}
		if want := (chorale.Status{From: 1, Tag: 3, Count: 9}); s != want {
			return fmt.Errorf("status %+v, want %+v", s, want)
		}
		if _, found, err := chorale.TryProbe[float32](ctx, c, 1, 4); found || err != nil {
			return fmt.Errorf("found a message with tag 4, %v", err)
		}
		// After a receive into a slice too short or of another type, the message is still there.
		if _, err := chorale.Recv(ctx, c, make([]float32, 8), 1, 3); err == nil {
			return errors.New("9 elements went into 8")
		}
		if _, err := chorale.Recv(ctx, c, make([]int32, 9), 1, 3); err == nil {
			return errors.New("float32 went into int32")
		}
		if _, err = chorale.Recv(ctx, c, make([]float32, s.Count), s.From, s.Tag); err != nil {
			return err
		}
		return chorale.Barrier(ctx, c)
	})
}

func TestRecvThatFailsDoesNotAdvanceRoundRobin(t *testing.T) {
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() > 0 {
			if err := chorale.Barrier(ctx, c); err != nil {
				return err
			}
			return chorale.Send(ctx, c, []int{c.Rank()}, 0, 0)
		}
		v := make([]int, 1)
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := chorale.Recv(short, c, v, chorale.RoundRobin, 0); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("got %v", err)
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		for want := 1; want < 3; want++ {
			if _, err := chorale.Recv(ctx, c, v, chorale.RoundRobin, 0); err != nil || v[0] != want {
				return fmt.Errorf("got %v, %v, want rank %d", v, err, want)
			}
		}
		return nil
	})
}

func TestSendRecvWithAWrongArgumentSendsNothing(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		peer := 1 - c.Rank()
		if _, err := chorale.SendRecv(ctx, c, make([]int, 1), 99, []int{1}, peer, 0); !errors.Is(err, chorale.ErrArgument) {
			return fmt.Errorf("got %v", err)
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		if _, found, err := chorale.TryProbe[int](ctx, c, peer, 0); found || err != nil {
			return fmt.Errorf("found %v, %v", found, err)
		}
		return chorale.Barrier(ctx, c)
	})
}

func TestTaggedMessagesStayInTheirCommunicator(t *testing.T) {
	onEachTransport(t, 4, func(ctx context.Context, c *chorale.Comm) error {
		sub, err := c.Split(ctx, c.Rank()/2, -c.Rank()) // 1, 0 and 3, 2
		if err != nil {
			return err
		}
		peer := 1 - sub.Rank()
		out, in := []int{c.Rank()}, []int{-1}
		send := chorale.StartSend(ctx, sub, out, peer, 0)
		recv := chorale.StartRecv(ctx, sub, in, chorale.AnyRank, 0)
		if err := chorale.WaitAll(send, recv.Request); err != nil {
			return err
		}
		if s := recv.Status(); s.From != peer || in[0] != c.Rank()^1 {
			return fmt.Errorf("got %v from rank %d, want %v from rank %d", in, s.From, c.Rank()^1, peer)
		}
		return nil
	})
}

func TestWrongRanksTagsAndTypesAreArgumentErrors(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		_, anyTag := chorale.Recv(ctx, c, []int{0}, 2, 0)
		for _, err := range []error{
			anyTag,
			chorale.Send(ctx, c, []int{0}, chorale.AnyRank, 0),
			chorale.Send(ctx, c, []int{0}, 0, -1),
			chorale.Send(ctx, c, []string{""}, 0, 0),
		} {
			if !errors.Is(err, chorale.ErrArgument) {
				return fmt.Errorf("got %v", err)
			}
		}
		return nil
	})
}

func TestNonblockingRecvThatFailsReturnsItsTurn(t *testing.T) {
	onEachTransport(t, 4, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() > 0 {
			if err := chorale.Barrier(ctx, c); err != nil {
				return err
			}
			return chorale.Send(ctx, c, []int{c.Rank()}, 0, 0)
		}
		v := make([]int, 3)
		short, cancel := context.WithCancel(ctx)
		first := chorale.StartRecv(short, c, v[:1], chorale.RoundRobin, 0)        // from rank 1
		second := chorale.StartRecv(ctx, c, v[1:2], chorale.RoundRobin, 0)        // from rank 2
		third := chorale.StartRecv(short, c, v[2:], chorale.RoundRobin, 0)        // from rank 3
		wrong := chorale.StartRecv(ctx, c, v[2:], chorale.RoundRobin, -2)         // takes no turn
		strings := chorale.StartRecv(ctx, c, []string{""}, chorale.RoundRobin, 0) // neither
		cancel()
		if err := errors.Join(first.Wait(), third.Wait()); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %v", err)
		}
		if !errors.Is(wrong.Wait(), chorale.ErrArgument) || !errors.Is(strings.Wait(), chorale.ErrArgument) {
			return fmt.Errorf("got %v, %v, want argument errors", wrong.Wait(), strings.Wait())
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		if err := second.Wait(); err != nil || v[1] != 2 {
			return fmt.Errorf("got %v, %v, want rank 2", v[1], err)
		}
		for _, want := range []int{1, 3} {
			if _, err := chorale.Recv(ctx, c, v[:1], chorale.RoundRobin, 0); err != nil || v[0] != want {
				return fmt.Errorf("got %v, %v, want rank %d", v[0], err, want)
			}
		}
		return nil
	})
}

func TestMessagesInProgressHaveNoGoroutine(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		peer := 1 - c.Rank()
		v := make([]int, 200)
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		before := runtime.NumGoroutine()
		var pending []*chorale.Request
		for i := range 100 {
			pending = append(pending, chorale.StartRecv(ctx, c, v[i:i+1], peer, i).Request)
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		if n := runtime.NumGoroutine(); n > before {
			return fmt.Errorf("%d goroutines with 100 receives in progress, %d before", n, before)
		}
		for i := range 100 {
			v[100+i] = i
			pending = append(pending, chorale.StartSend(ctx, c, v[100+i:100+i+1], peer, i))
		}
		if err := chorale.WaitAll(pending...); err != nil {
			return err
		}
		if !slices.Equal(v[:100], v[100:]) {
			return fmt.Errorf("received %v", v[:100])
		}
		return nil
	})
}

// The memory of a message that is done is used for the next one. Its request says what it
// said, to any number of goroutines at the same time.
func TestARequestSaysTheSameAfterItsMessageAndToManyGoroutines(t *testing.T) {
	const messages = 100
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		peer := 1 - c.Rank()
		in, out := make([][]int, messages), make([][]int, messages)
		receives, sends := make([]*chorale.RecvRequest, messages), make([]*chorale.Request, messages)
		var uses sync.WaitGroup
		errs := make(chan error, 5*messages)
		for i := range messages {
			n := 1 + i%3
			if i%25 == 24 {
				n = 20000 // by rendezvous
			}
			in[i], out[i] = make([]int, n), make([]int, n)
			out[i][n-1] = i
			receives[i] = chorale.StartRecv(ctx, c, in[i], peer, i)
			sends[i] = chorale.StartSend(ctx, c, out[i], peer, i)
			want := chorale.Status{From: peer, Tag: i, Count: n}
			r := receives[i]
			for _, wait := range []func() error{r.Wait, sends[i].Wait, func() error { <-r.Done(); return r.Wait() }, func() error {
				for {
					if done, err := r.Test(); done {
						return err
					}
					runtime.Gosched()
				}
			}} {
				uses.Go(func() {
					if err := wait(); err != nil {
						errs <- err
					}
					if s := r.Status(); s != want {
						errs <- fmt.Errorf("message %d: status %+v, want %+v", i, s, want)
					}
				})
			}
		}
		uses.Wait()
		close(errs)
		if err := <-errs; err != nil {
			return err
		}
		for i, r := range receives {
			n := len(in[i])
			if done, err := r.Test(); !done || err != nil || r.Status() != (chorale.Status{From: peer, Tag: i, Count: n}) || in[i][n-1] != i {
				return fmt.Errorf("message %d afterwards: done %v, %v, %+v, %d", i, done, err, r.Status(), in[i][n-1])
			}
		}
		return nil
	})
}

func TestDoneIsClosedWhenAMessageHasArrived(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			return chorale.Send(ctx, c, []int{7}, 0, 0)
		}
		v := make([]int, 1)
		r := chorale.StartRecv(ctx, c, v, 1, 0)
		<-r.Done()
		if done, err := r.Test(); !done || err != nil || v[0] != 7 || r.Status().Count != 1 {
			return fmt.Errorf("done %v, %v, received %v", done, err, v)
		}
		return nil
	})
}
