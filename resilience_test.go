package chorale_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/transport"
)

// soon returns a context for calls that are to return by themselves.
func soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, 20*time.Second, errors.New("the test has waited for too long"))
}

// onDups runs f on p ranks over each transport, with the communicator of all ranks and another
// one of them. The calls of f are to return by themselves.
func onDups(t *testing.T, p int, f func(ctx context.Context, c, d *chorale.Comm) error) {
	onEachTransport(t, p, func(ctx context.Context, c *chorale.Comm) error {
		ctx, cancel := soon(ctx)
		defer cancel()
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		return f(ctx, c, d)
	})
}

// fails returns an error unless a call has failed with an error that holds want, because of a
// rank of the job.
func fails(what string, err, want error, peer int) error {
	var e *chorale.Error
	if !errors.Is(err, want) || !errors.As(err, &e) || e.Peer != peer {
		return fmt.Errorf("%s: got %v, want that rank %d fails it: %v", what, err, peer, want)
	}
	return nil
}

// sumOf returns an error unless an AllReduce has the right sum.
func sumOf(ctx context.Context, c *chorale.Comm, mine, want int) error {
	sum := []int{mine}
	if err := chorale.AllReduce(ctx, c, sum, sum, chorale.Sum); err != nil {
		return err
	}
	return same(c, "sum", sum, []int{want})
}

func TestRevokeFailsWhatIsInProgressAndWhatComesLaterOnOneCommunicator(t *testing.T) {
	onDups(t, 3, func(ctx context.Context, c, d *chorale.Comm) error {
		prepared, err := chorale.Prepare(d, func(ctx context.Context, c *chorale.Comm) error { return chorale.Barrier(ctx, c) })
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			time.Sleep(10 * time.Millisecond)
			err = errors.Join(d.Revoke(), d.Revoke())
		} else {
			message := chorale.StartRecv(ctx, d, []int{0}, chorale.AnyRank, 7)
			started := chorale.StartBarrier(ctx, d)
			prepared.Start(ctx)
			long := chorale.StartSend(ctx, d, make([]int64, 1<<20), 0, 8)
			err = errors.Join(
				fails("allreduce", sumOf(ctx, d, 1, 3), chorale.ErrRevoked, 0),
				fails("recv", message.Wait(), chorale.ErrRevoked, 0),
				fails("nonblocking barrier", started.Wait(), chorale.ErrRevoked, 0),
				fails("prepared barrier", prepared.Wait(), chorale.ErrRevoked, 0),
				fails("long send", long.Wait(), chorale.ErrRevoked, 0))
		}
		if err != nil {
			return err
		}
		for name, err := range everyCall(ctx, d) {
			local := name == "Start" || name == "Prepare" || errors.Is(err, chorale.ErrArgument)
			if !local && !errors.Is(err, chorale.ErrRevoked) {
				return fmt.Errorf("%s: got %v, want ErrRevoked", name, err)
			}
		}
		d.Free()
		return sumOf(ctx, c, 1, 3)
	})
}

func TestACallOnARevokedCommunicatorOfOneRankFails(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		d, err := c.Split(ctx, c.Rank(), 0)
		if err != nil {
			return err
		}
		if err := errors.Join(sumOf(ctx, d, 1, 1), d.Revoke()); err != nil {
			return err
		}
		return fails("allreduce", sumOf(ctx, d, 1, 1), chorale.ErrRevoked, c.Rank())
	})
}

func TestALostRankFailsItsCommunicatorsAndNoOther(t *testing.T) {
	onEachTransport(t, 4, func(ctx context.Context, c *chorale.Comm) error {
		ctx, cancel := soon(ctx)
		defer cancel()
		color := 0
		if c.Rank() == 3 {
			color = 1
		}
		rest, err := c.Split(ctx, color, 0)
		if err != nil {
			return err
		}
		all, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		first := chorale.Barrier(ctx, c) // before it dies, all have the communicators
		if c.Rank() == 3 {
			return cmp.Or(first, errDies)
		}
		if first == nil {
			first = chorale.Barrier(ctx, c)
		}
		if err := fails("barrier", first, chorale.ErrAborted, 3); err != nil {
			return err
		}
		for range 100 {
			if err := sumOf(ctx, rest, 1, 3); err != nil {
				return fmt.Errorf("without rank 3: %w", err)
			}
		}
		if err := fails("barrier of another communicator", chorale.Barrier(ctx, all), chorale.ErrAborted, 3); err != nil {
			return err
		}
		again := chorale.Barrier(ctx, c)
		if !strings.Contains(fmt.Sprint(again), "the communicator failed ") || !strings.Contains(fmt.Sprint(again), "earlier, when its barrier failed") {
			return fmt.Errorf("then %v: want that the barrier failed earlier", again)
		}
		return fails("barrier", again, chorale.ErrAborted, 3)
	})
}

func TestTheEndOfAContextFailsTheCommunicatorOfTheCallAlone(t *testing.T) {
	late := errors.New("too late")
	onDups(t, 3, func(ctx context.Context, c, d *chorale.Comm) error {
		if c.Rank() == 0 {
			short, cancel := context.WithTimeoutCause(ctx, 5*time.Millisecond, late)
			defer cancel()
			if err := chorale.Barrier(short, d); !errors.Is(err, late) {
				return fmt.Errorf("got %v, want that the context has ended", err)
			}
		} else if err := fails("recv", chorale.StartRecv(ctx, d, []int{0}, 0, 7).Wait(), chorale.ErrAborted, 0); err != nil {
			return err
		}
		return sumOf(ctx, c, 1, 3)
	})
}

func TestAgreeReturnsTheBitsOfAllRanksThatAreNotLost(t *testing.T) {
	for _, p := range []int{1, 2, 3, 5, 8} {
		onEachTransport(t, p, func(ctx context.Context, c *chorale.Comm) error {
			ctx, cancel := soon(ctx)
			defer cancel()
			all := uint64(1)<<p - 1
			for i := range 20 {
				value, err := c.Agree(ctx, ^uint64(0)<<i&^(1<<(i+c.Rank())))
				if want := ^uint64(0) << i &^ (all << i); err != nil || value != want || len(c.Lost()) > 0 {
					return fmt.Errorf("round %d: got %b, %v, lost %v, want %b", i, value, err, c.Lost(), want)
				}
			}
			if c.Rank() == p-1 && p > 1 {
				return errDies
			}
			var lost []int
			if p > 1 {
				lost = []int{p - 1}
			}
			value, err := c.Agree(ctx, all&^(1<<c.Rank()))
			if want := all >> (p - 1) << (p - 1); p > 1 && (err != nil || value != want) {
				return fmt.Errorf("without rank %d: got %b, %v, want %b", p-1, value, err, want)
			}
			return same(c, "lost ranks", c.Lost(), lost)
		})
	}
}

func TestAgreeWorksOnARevokedCommunicator(t *testing.T) {
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		ctx, cancel := soon(ctx)
		defer cancel()
		if err := c.Revoke(); err != nil {
			return err
		}
		for i := range uint64(10) {
			if value, err := c.Agree(ctx, i|uint64(c.Rank())<<8); err != nil || value != i {
				return fmt.Errorf("got %d, %v, want %d", value, err, i)
			}
		}
		return nil
	})
}

func TestShrinkLeavesOutTheLostRanksAndKeepsTheOrder(t *testing.T) {
	for _, p := range []int{2, 3, 5, 8} {
		onEachTransport(t, p, func(ctx context.Context, c *chorale.Comm) error {
			ctx, cancel := soon(ctx)
			defer cancel()
			reversed, err := c.Split(ctx, 0, -c.Rank())
			if err != nil {
				return err
			}
			first := chorale.Barrier(ctx, c) // before it dies, all have the communicator
			if c.Rank() == 1 {
				return cmp.Or(first, errDies)
			}
			if chorale.Barrier(ctx, c) == nil {
				return errors.New("a barrier with a lost rank returns nil")
			}
			d, err := reversed.Shrink(ctx)
			if err != nil {
				return err
			}
			if err := same(c, "lost ranks", reversed.Lost(), []int{p - 2}); err != nil {
				return err
			}
			ranks := make([]int, d.Size())
			if err := chorale.AllGather(ctx, d, ranks, []int{c.Rank()}); err != nil {
				return err
			}
			var want []int
			for rank := p - 1; rank >= 0; rank-- {
				if rank != 1 {
					want = append(want, rank)
				}
			}
			return same(c, "ranks", ranks, want)
		})
	}
}

func TestShrinkOfAWholeCommunicatorIsADup(t *testing.T) {
	for _, p := range []int{1, 4} {
		onEachTransport(t, p, func(ctx context.Context, c *chorale.Comm) error {
			ctx, cancel := soon(ctx)
			defer cancel()
			for range 100 { // more than the numbers of a window
				d, err := c.Shrink(ctx)
				if err != nil {
					return err
				}
				if d.Rank() != c.Rank() || chorale.NumberOf(d) == 0 {
					return fmt.Errorf("rank %d of communicator %d, want rank %d of a new one", d.Rank(), chorale.NumberOf(d), c.Rank())
				}
				if err := errors.Join(sumOf(ctx, d, 1, p), sumOf(ctx, c, 1, p)); err != nil {
					return err
				}
				d.Free()
			}
			return nil
		})
	}
}

// dying is an endpoint that gives up when it has begun so many steps and messages.
type dying struct {
	transport.Endpoint
	left *atomic.Int64
}

func (d *dying) count() {
	if d.left.Add(-1) == 0 {
		d.Endpoint.Abort(errDies)
	}
}

func (d *dying) Exchange(ctx context.Context, step transport.Step) error {
	d.count()
	return d.Endpoint.Exchange(ctx, step)
}

func (d *dying) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	d.count()
	d.Endpoint.StartSend(ctx, r, to, m, typeName, data)
}

// Survivors add up their ranks, agree on whether all have got the sum, and shrink otherwise.
func TestSurvivorsGoOnWheneverRanksAreLost(t *testing.T) {
	rounds := map[string]int{"inproc": 200, "shm": 40, "tcp": 40}
	for _, name := range transports {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(rounds[name]) {
				random := rand.New(rand.NewPCG(seed, 1))
				p := 2 + random.IntN(7)
				deaths := make([]int, p)
				for rank := range random.IntN(p) {
					deaths[rank] = 1 + random.IntN(60)
				}
				random.Shuffle(p, func(i, j int) { deaths[i], deaths[j] = deaths[j], deaths[i] })
				survive(t, name, deaths)
				if t.Failed() {
					t.Fatalf("seed %d: ranks die after %v steps and messages", seed, deaths)
				}
			}
		})
	}
}

// survive runs ranks of which some die after so many steps and messages, unless that is 0.
func survive(t *testing.T, name string, deaths []int) {
	var mu sync.Mutex
	var made [][]int // by all survivors that have finished
	onTransport(t, name, len(deaths), func(ctx context.Context, c *chorale.Comm) error {
		ctx, cancel := soon(ctx)
		defer cancel()
		left := new(atomic.Int64)
		left.Store(int64(deaths[c.Rank()]))
		ranks, err := addUp(ctx, chorale.OverEndpoint(c, func(e transport.Endpoint) transport.Endpoint { return &dying{e, left} }))
		if errors.Is(err, errDies) {
			return errDies
		}
		if err == nil && deaths[c.Rank()] == 0 {
			mu.Lock()
			defer mu.Unlock()
			made = append(made, ranks)
		}
		return err
	})
	for _, ranks := range made {
		if !slices.Equal(ranks, made[0]) {
			t.Errorf("survivors have added up the ranks %v and %v", made[0], ranks)
		}
		for rank, after := range deaths {
			if after == 0 && !slices.Contains(ranks, rank) {
				t.Errorf("survivors have added up the ranks %v, but rank %d was not lost", ranks, rank)
			}
		}
	}
}

// addUp adds up 2^rank over the ranks that are left, and returns these.
func addUp(ctx context.Context, world *chorale.Comm) (ranks []int, err error) {
	for c := world; ; {
		for range 5 {
			sum := []uint64{1 << world.Rank()}
			err := chorale.AllReduce(ctx, c, sum, sum, chorale.Sum)
			done := uint64(1)
			if err != nil {
				done = 0
				if err := c.Revoke(); err != nil {
					return nil, err
				}
			}
			if done, err = c.Agree(ctx, done); err != nil {
				return nil, err
			}
			if done == 0 || len(c.Lost()) > 0 {
				break
			}
			ranks = nil
			for rank := range world.Size() {
				if sum[0]>>rank&1 == 1 {
					ranks = append(ranks, rank)
				}
			}
			if len(ranks) != c.Size() {
				return nil, fmt.Errorf("rank %d: the ranks %v were added up, of %d", world.Rank(), ranks, c.Size())
			}
		}
		if len(ranks) == c.Size() && len(c.Lost()) == 0 {
			return ranks, nil
		}
		d, err := c.Shrink(ctx)
		if err != nil {
			return nil, err
		}
		c.Free()
		c = d
	}
}

func TestARankWhoseContextEndsLeavesTheAgreementsForGood(t *testing.T) {
	late := errors.New("too late")
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		ctx, cancel := soon(ctx)
		defer cancel()
		if c.Rank() == 2 {
			short, cancel := context.WithCancelCause(ctx)
			cancel(late)
			_, err := c.Agree(short, 0)
			_, again := c.Agree(ctx, 0)
			_, shrunk := c.Shrink(ctx)
			for _, err := range []error{err, again, shrunk} {
				if !errors.Is(err, late) {
					return fmt.Errorf("got %v, want that the context has ended", err)
				}
			}
			return sumOf(ctx, c, 1, 3) // it is not lost
		}
		for range 2 {
			if value, err := c.Agree(ctx, 5); err != nil || value != 5 {
				return fmt.Errorf("got %d, %v, want 5", value, err)
			}
			if err := same(c, "lost ranks", c.Lost(), []int{2}); err != nil {
				return err
			}
		}
		d, err := c.Shrink(ctx)
		if err != nil {
			return err
		}
		return errors.Join(sumOf(ctx, d, 1, 2), sumOf(ctx, c, 1, 3))
	})
}

func TestAgreeAndShrinkThatMeetAreAMismatch(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) (err error) {
		ctx, cancel := soon(ctx)
		defer cancel()
		if c.Rank() == 0 {
			_, err = c.Agree(ctx, 1)
		} else {
			_, err = c.Shrink(ctx)
		}
		var m *chorale.MismatchError
		if errors.As(err, &m) {
			if m.Peer == c.Rank() || m.Mine.Call == m.Theirs.Call {
				return fmt.Errorf("got %v", err)
			}
			return sumOf(ctx, c, 1, 2)
		}
		if err != nil || !slices.Equal(c.Lost(), []int{1 - c.Rank()}) {
			return fmt.Errorf("got %v, lost %v", err, c.Lost())
		}
		return sumOf(ctx, c, 1, 2)
	})
}

func TestOneAgreementOfACommunicatorAtATime(t *testing.T) {
	onDups(t, 2, func(ctx context.Context, c, d *chorale.Comm) error {
		if c.Rank() == 0 {
			agreed := make(chan error)
			for range 2 {
				go func() {
					_, err := c.Agree(ctx, 1)
					agreed <- err
				}()
			}
			if err := <-agreed; !errors.Is(err, chorale.ErrBusy) { // the other waits for rank 1
				return fmt.Errorf("got %v, want ErrBusy", err)
			}
			_, err := d.Agree(ctx, 1) // another one may
			if err = errors.Join(err, chorale.Send(ctx, c, []int{1}, 1, 0), <-agreed); err != nil {
				return err
			}
		} else {
			_, err := d.Agree(ctx, 1)
			_, received := chorale.Recv(ctx, c, []int{0}, 0, 0)
			_, agreed := c.Agree(ctx, 1)
			return errors.Join(err, received, agreed)
		}
		return nil
	})
}

// Ranks 1 and 2 shrink two communicators at once.
func TestShrinksOfCommunicatorsThatShareRanksGetDifferentNumbers(t *testing.T) {
	onEachTransport(t, 4, func(ctx context.Context, c *chorale.Comm) error {
		ctx, cancel := soon(ctx)
		defer cancel()
		low, err := c.Subset(ctx, []int{0, 1, 2})
		if err != nil {
			return err
		}
		high, err := c.Subset(ctx, []int{1, 2, 3})
		if err != nil {
			return err
		}
		for range 10 {
			made := make([]*chorale.Comm, 2)
			errs := make([]error, 2)
			var both sync.WaitGroup
			for i, d := range []*chorale.Comm{low, high} {
				if d != nil {
					both.Go(func() { made[i], errs[i] = d.Shrink(ctx) })
				}
			}
			both.Wait()
			if err := errors.Join(errs...); err != nil {
				return err
			}
			if made[0] != nil && made[1] != nil && chorale.NumberOf(made[0]) == chorale.NumberOf(made[1]) {
				return fmt.Errorf("both have number %d", chorale.NumberOf(made[0]))
			}
			for _, d := range made {
				if d != nil {
					if err := sumOf(ctx, d, 1, 3); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

func TestTheNumberOfAFailedCommunicatorIsNotUsedAgain(t *testing.T) {
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		ctx, cancel := soon(ctx)
		defer cancel()
		failed := map[int]bool{}
		for i := range 200 {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			if failed[chorale.NumberOf(d)] {
				return fmt.Errorf("round %d: number %d was of a communicator that has failed", i, chorale.NumberOf(d))
			}
			if i%3 == 0 {
				failed[chorale.NumberOf(d)] = true
				if c.Rank() == i%2 {
					if err := d.Revoke(); err != nil {
						return err
					}
				} else if err := chorale.Barrier(ctx, d); !errors.Is(err, chorale.ErrRevoked) {
					return fmt.Errorf("round %d: got %v, want ErrRevoked", i, err)
				}
			}
			d.Free()
		}
		return sumOf(ctx, c, 1, 3)
	})
}

// A Split that ends on one rank may have been complete on others. They wait for the one in
// no communicator that it does not have.
func TestASplitThatFailsOnOneRankHangsNoOther(t *testing.T) {
	for _, name := range transports {
		t.Run(name, func(t *testing.T) {
			for i := range int64(80) {
				splitUntil(t, name, i%8)
			}
		})
	}
}

// splitUntil has the context of rank 1 end in a Split, after so many steps.
func splitUntil(t *testing.T, name string, steps int64) {
	onTransport(t, name, 4, func(ctx context.Context, c *chorale.Comm) error {
		ctx, cancel := soon(ctx)
		defer cancel()
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		splitting := ctx
		if c.Rank() == 1 {
			short, cancel := context.WithCancel(ctx)
			defer cancel()
			splitting = short
			d = chorale.OverEndpoint(d, func(e transport.Endpoint) transport.Endpoint {
				return &counted{Endpoint: e, left: steps, then: cancel}
			})
		}
		split, err := d.Split(splitting, 0, 0)
		if err == nil {
			err = chorale.Barrier(splitting, split)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("after %d steps: got %v", steps, err)
		}
		return sumOf(ctx, c, 1, 4)
	})
}

// counted is an endpoint that calls a function before the step that follows so many.
type counted struct {
	transport.Endpoint
	left int64
	then func()
}

func (d *counted) Exchange(ctx context.Context, step transport.Step) error {
	if d.left--; d.left == -1 {
		d.then()
	}
	return d.Endpoint.Exchange(ctx, step)
}

// A call on a communicator of one rank needs no message, and looks for the revocation itself.
func TestACallSeesARevocationWithItsReason(t *testing.T) {
	onEachTransport(t, 1, func(ctx context.Context, c *chorale.Comm) error {
		for range 200 {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			revoked := make(chan error)
			go func() { revoked <- d.Revoke() }()
			for err = nil; err == nil; {
				err = sumOf(ctx, d, 1, 1)
			}
			if err := errors.Join(fails("allreduce", err, chorale.ErrRevoked, 0), <-revoked); err != nil {
				return err
			}
			d.Free()
		}
		return nil
	})
}
