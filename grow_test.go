package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
)

// A launcher is what Grow needs of one, between goroutines. It starts ranks anew, which run a
// function, when all members have asked for a new endpoint.
type launcher struct {
	newcomers []int // ranks of the job, which the next endpoint takes in
	run       chorale.Func
	err       error // of all calls; nil if they succeed

	mu    sync.Mutex
	calls map[uint64]*growCall
	made  int
	ranks sync.WaitGroup
	errs  []error // of newcomers
}

// A growCall is the calls of Regroup with one id.
type growCall struct {
	members []int
	called  int
	done    chan struct{}
	job     *inproc.Job
	ranks   []int // of the job
	number  int
}

// env is what a rank knows of the launcher that is rank RANKS[I] of the job.
func (l *launcher) env(ranks []int, i, group int) launch.JobEnv {
	rank := i
	if ranks != nil {
		rank = ranks[i]
	}
	return launch.JobEnv{
		Rank: i, Ranks: ranks, Group: group,
		Regroup: func(ctx context.Context, id uint64, members []int) (transport.Endpoint, launch.JobEnv, error) {
			return l.regroup(rank, id, members)
		},
	}
}

func (l *launcher) regroup(rank int, id uint64, members []int) (transport.Endpoint, launch.JobEnv, error) {
	if l.err != nil {
		return nil, launch.JobEnv{}, fmt.Errorf("rank %d does not regroup: %w", rank, l.err)
	}
	l.mu.Lock()
	if l.calls == nil {
		l.calls = map[uint64]*growCall{}
	}
	call := l.calls[id]
	if call == nil {
		call = &growCall{members: members, done: make(chan struct{})}
		l.calls[id] = call
	}
	if !slices.Equal(call.members, members) || !slices.IsSorted(members) || !slices.Contains(members, rank) {
		l.mu.Unlock()
		return nil, launch.JobEnv{}, fmt.Errorf("rank %d calls with the members %v, others with %v: want the same, in ascending order", rank, members, call.members)
	}
	if call.called++; call.called == len(members) {
		l.make(call)
	}
	l.mu.Unlock()
	<-call.done
	i := slices.Index(call.ranks, rank)
	return call.job.Endpoint(i), l.env(call.ranks, i, call.number), nil
}

// make makes an endpoint of the members and the newcomers, which it starts.
func (l *launcher) make(call *growCall) {
	newcomers := l.newcomers
	l.newcomers = nil
	call.ranks = slices.Concat(call.members, newcomers)
	slices.Sort(call.ranks)
	l.made++
	call.number, call.job = l.made, inproc.New(len(call.ranks))
	for _, rank := range newcomers {
		i := slices.Index(call.ranks, rank)
		env := l.env(call.ranks, i, call.number)
		env.Respawned = true
		l.ranks.Go(func() {
			c := chorale.InLaunch(chorale.NewComm(call.job.Endpoint(i), chorale.CommConfig{}), env)
			err := errors.Join(l.run(context.Background(), c), c.Close())
			l.mu.Lock()
			defer l.mu.Unlock()
			l.errs = append(l.errs, err)
		})
	}
	close(call.done)
}

// ranksAre returns an error unless a communicator has these ranks of the job, in their order.
func ranksAre(ctx context.Context, c *chorale.Comm, mine int, want []int) error {
	ranks := make([]int, c.Size())
	if err := chorale.AllGather(ctx, c, ranks, []int{mine}); err != nil {
		return err
	}
	return same(c, "ranks", ranks, want)
}

// onLauncher runs f on p ranks over each transport, each time with a launcher of its own, which begin
// returns.
func onLauncher(t *testing.T, p int, ranks []int, begin func() *launcher, f func(ctx context.Context, c *chorale.Comm, l *launcher) error) {
	for _, name := range transports {
		t.Run(name, func(t *testing.T) {
			l := begin()
			onTransport(t, name, p, func(ctx context.Context, c *chorale.Comm) error {
				ctx, cancel := soon(ctx)
				defer cancel()
				return f(ctx, chorale.InLaunch(c, l.env(ranks, c.Rank(), 0)), l)
			})
			l.ranks.Wait()
			if err := errors.Join(l.errs...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGrowTakesNewProcessesInTheirOldPlaces(t *testing.T) {
	all := []int{0, 1, 2, 3}
	for _, lost := range [][]int{{1}, {0}, {3}, {0, 2}} {
		begin := func() *launcher {
			return &launcher{newcomers: lost, run: func(ctx context.Context, c *chorale.Comm) error {
				ctx, cancel := soon(ctx)
				defer cancel()
				if !c.Respawned() {
					return errors.New("a new process is not respawned")
				}
				return ranksAre(ctx, c, c.Rank(), all)
			}}
		}
		onLauncher(t, 4, nil, begin, func(ctx context.Context, c *chorale.Comm, l *launcher) error {
			if slices.Contains(lost, c.Rank()) {
				return errDies
			}
			rest, err := c.Shrink(ctx)
			if err != nil {
				return err
			}
			if err := same(c, "lost ranks", c.Lost(), lost); err != nil {
				return err
			}
			grown, err := rest.Grow(ctx)
			if err != nil {
				return err
			}
			if grown.Respawned() {
				return errors.New("a survivor is respawned")
			}
			left := slices.DeleteFunc(slices.Clone(all), func(rank int) bool { return slices.Contains(lost, rank) })
			return errors.Join(ranksAre(ctx, grown, c.Rank(), all), ranksAre(ctx, rest, c.Rank(), left))
		})
	}
}

// The ranks of the communicator are in another order than those of the job.
func TestGrowWithoutNewProcessesHasTheSameRanksInTheOrderOfTheJob(t *testing.T) {
	onLauncher(t, 3, nil, func() *launcher { return new(launcher) }, func(ctx context.Context, c *chorale.Comm, l *launcher) error {
		reversed, err := c.Split(ctx, 0, -c.Rank())
		if err != nil {
			return err
		}
		for range 3 { // each is another call for the launcher
			grown, err := reversed.Grow(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(ranksAre(ctx, grown, c.Rank(), []int{0, 1, 2}), ranksAre(ctx, reversed, c.Rank(), []int{2, 1, 0})); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestACommunicatorThatHasLostARankIsNotGrown(t *testing.T) {
	onLauncher(t, 4, nil, func() *launcher { return new(launcher) }, func(ctx context.Context, c *chorale.Comm, l *launcher) error {
		if c.Rank() == 2 {
			return errDies
		}
		for range 2 {
			_, err := c.Grow(ctx)
			if err := fails("grow", err, chorale.ErrLost, 2); err != nil {
				return err
			}
			if !strings.Contains(err.Error(), "shrunk first") || !slices.Equal(c.Lost(), []int{2}) {
				return fmt.Errorf("got %v, lost %v", err, c.Lost())
			}
		}
		rest, err := c.Shrink(ctx)
		if err != nil {
			return err
		}
		grown, err := rest.Grow(ctx)
		if err != nil {
			return err
		}
		return ranksAre(ctx, grown, c.Rank(), []int{0, 1, 3})
	})
}

func TestGrowNeedsALauncherThatStartsRanksAnew(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		_, err := c.Grow(ctx)
		if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "chorale run --respawn") {
			return fmt.Errorf("got %v, want ErrArgument", err)
		}
		return sumOf(ctx, c, 1, 2)
	})
}

// The launcher counts ranks as in the job at its beginning, of which this one has three left.
func TestTheErrorOfGrowNamesARankOfTheCommunicatorsJob(t *testing.T) {
	for _, test := range []struct {
		ranks          []int // of the job at its beginning; nil if they are the first
		launched, peer int
	}{{[]int{2, 3, 6}, 3, 1}, {[]int{2, 3, 6}, 6, 2}, {[]int{2, 3, 6}, 4, -1}, {[]int{2, 3, 6}, 0, -1}, {nil, 1, 1}, {nil, 3, -1}} {
		launched, peer := test.launched, test.peer
		begin := func() *launcher {
			return &launcher{err: &transport.PeerError{Peer: launched, Err: transport.ErrLost, Reason: "signal: killed"}}
		}
		onLauncher(t, 3, test.ranks, begin, func(ctx context.Context, c *chorale.Comm, l *launcher) error {
			_, err := c.Grow(ctx)
			if peer < 0 && !strings.Contains(fmt.Sprint(err), fmt.Sprintf("rank %d of the job at its beginning", launched)) ||
				peer >= 0 && !strings.Contains(fmt.Sprint(err), fmt.Sprintf("rank %d: ", peer)) || !strings.Contains(fmt.Sprint(err), "signal: killed") {
				return fmt.Errorf("rank %d is lost, which is rank %d here: got %v", launched, peer, err)
			}
			return errors.Join(fails("grow", err, chorale.ErrLost, peer), sumOf(ctx, c, 1, 3))
		})
	}
}

func TestARankWhoseContextHasEndedDoesNotGrow(t *testing.T) {
	late := errors.New("too late")
	onLauncher(t, 3, nil, func() *launcher { return new(launcher) }, func(ctx context.Context, c *chorale.Comm, l *launcher) error {
		own := ctx
		if c.Rank() == 1 {
			short, cancel := context.WithCancelCause(ctx)
			cancel(late)
			own = short
		}
		_, err := c.Grow(own)
		if c.Rank() == 1 {
			if !errors.Is(err, late) {
				return fmt.Errorf("got %v, want that the context has ended", err)
			}
			return sumOf(ctx, c, 1, 3) // it is not lost
		}
		return errors.Join(fails("grow", err, chorale.ErrLost, 1), sumOf(ctx, c, 1, 3))
	})
}
