package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
)

// placements are the hosts of ranks: by block, round the hosts, uneven, and any.
var placements = map[string][]int{
	"4":                   {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3},
	"4+1+3":               {0, 0, 0, 0, 1, 2, 2, 2},
	"cyclic:3":            {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1},
	"cyclic:2+4":          {0, 1, 0, 1, 1, 1},
	"map:0.2x1.2x0.2.1.2": {0, 1, 1, 0, 0, 2, 1, 2},
}

// A hostEndpoint counts the messages of collectives that leave its host.
type hostEndpoint struct {
	transport.Endpoint
	hosts   []int
	leaving *atomic.Int64
}

func (e hostEndpoint) Exchange(ctx context.Context, step transport.Step) error {
	for _, send := range step.Sends {
		for _, to := range send.To {
			if e.hosts[to] != e.hosts[e.Rank()] {
				e.leaving.Add(1)
			}
		}
	}
	return e.Endpoint.Exchange(ctx, step)
}

// onHosts runs f on ranks that are goroutines, and are taken to be on some hosts. It
// returns how many messages of collectives went between hosts.
func onHosts(t *testing.T, hosts []int, f chorale.Func) int {
	t.Helper()
	job := inproc.New(len(hosts))
	var leaving atomic.Int64
	var ranks sync.WaitGroup
	errs := make([]error, len(hosts))
	for rank := range hosts {
		ranks.Go(func() {
			c := chorale.NewComm(hostEndpoint{job.Endpoint(rank), hosts, &leaving}, chorale.CommConfig{Transport: "inproc", Hosts: hosts})
			defer c.Close()
			if errs[rank] = f(t.Context(), c); errs[rank] != nil {
				chorale.Abort(c, errs[rank])
			}
		})
	}
	ranks.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	return int(leaving.Load())
}

// An affine map is x ↦ A·x + B. Composition does not commute.
type affineMap struct{ A, B int64 }

func then(f, g affineMap) affineMap { return affineMap{f.A * g.A, f.A*g.B + f.B} }

// mapOf returns element i of a rank's vector.
func mapOf(rank, i int) affineMap { return affineMap{int64(1 + rank%3), int64(rank + 10*i)} }

// A hostCall is a collective call, and what it leaves on a rank.
type hostCall struct {
	name string
	call func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error)
}

// hostCalls are the collectives that know hosts, with an operation that does not
// commute where there is one, or with one that does.
func hostCalls(commutes bool) []hostCall {
	op := chorale.Op[affineMap]{Combine: then}
	if commutes {
		op = chorale.Op[affineMap]{Combine: func(a, b affineMap) affineMap { return affineMap{a.A + b.A, a.B + b.B} }, Commutative: true}
	}
	whole := func(p, i int) affineMap {
		all := mapOf(0, i)
		for rank := 1; rank < p; rank++ {
			all = op.Combine(all, mapOf(rank, i))
		}
		return all
	}
	// fill returns the elements lo to hi of a vector.
	fill := func(lo, hi int, f func(i int) affineMap) []affineMap {
		v := make([]affineMap, hi-lo)
		for i := range v {
			v[i] = f(lo + i)
		}
		return v
	}
	mine := func(c *chorale.Comm, lo, hi int) []affineMap {
		return fill(lo, hi, func(i int) affineMap { return mapOf(c.Rank(), i) })
	}
	root := func(c *chorale.Comm) int { return c.Size() * 2 / 3 }
	// parts is the vector of all ranks' parts of n elements, each made by its rank.
	parts := func(c *chorale.Comm, n int) []affineMap {
		return fill(0, n*c.Size(), func(i int) affineMap { return mapOf(i/n, i%n) })
	}
	return []hostCall{
		{"bcast", func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error) {
			got, want = mine(c, 0, n), fill(0, n, func(i int) affineMap { return mapOf(root(c), i) })
			return got, want, chorale.Bcast(ctx, c, got, root(c), o)
		}},
		{"reduce", func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error) {
			if c.Rank() == root(c) {
				got, want = make([]affineMap, n), fill(0, n, func(i int) affineMap { return whole(c.Size(), i) })
			}
			return got, want, chorale.ReduceFunc(ctx, c, got, mine(c, 0, n), op, root(c), o)
		}},
		{"allreduce", func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error) {
			got, want = make([]affineMap, n), fill(0, n, func(i int) affineMap { return whole(c.Size(), i) })
			return got, want, chorale.AllReduceFunc(ctx, c, got, mine(c, 0, n), op, o)
		}},
		{"reduce-scatter", func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error) {
			lo := n * c.Rank()
			got, want = make([]affineMap, n), fill(lo, lo+n, func(i int) affineMap { return whole(c.Size(), i) })
			return got, want, chorale.ReduceScatterFunc(ctx, c, got, mine(c, 0, n*c.Size()), op, o)
		}},
		{"allgather", func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error) {
			got = make([]affineMap, n*c.Size())
			return got, parts(c, n), chorale.AllGather(ctx, c, got, mine(c, 0, n), o)
		}},
		{"gather", func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error) {
			if c.Rank() == root(c) {
				got, want = make([]affineMap, n*c.Size()), parts(c, n)
			}
			return got, want, chorale.Gather(ctx, c, got, mine(c, 0, n), root(c), o)
		}},
		{"scatter", func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error) {
			var src []affineMap
			if c.Rank() == root(c) {
				src = parts(c, n)
			}
			got = make([]affineMap, n)
			return got, mine(c, 0, n), chorale.Scatter(ctx, c, got, src, root(c), o)
		}},
		{"barrier", func(ctx context.Context, c *chorale.Comm, n int, o chorale.Option) (got, want []affineMap, err error) {
			return nil, nil, chorale.Barrier(ctx, c, o)
		}},
	}
}

// ordered are the placements by block, which keep the order of the ranks.
func ordered(text string) bool { return !strings.Contains(text, ":") }

func TestCollectivesOnSeveralHostsAreRightAndInTwoLevels(t *testing.T) {
	for text, hosts := range placements {
		for _, commutes := range []bool{false, true} {
			for _, call := range hostCalls(commutes) {
				for _, n := range []int{0, 1, 3, 2000} { // whole, in pieces of different lengths, and by what is for long vectors
					onHosts(t, hosts, func(ctx context.Context, c *chorale.Comm) error {
						var stats chorale.Stats
						got, want, err := call.call(ctx, c, n, chorale.WithStats(&stats))
						if err != nil {
							return err
						}
						if err := same(c, fmt.Sprintf("%s of %d on hosts %s by %s", call.name, n, text, stats.Algorithm), got, want); err != nil {
							return err
						}
						combines := strings.Contains(call.name, "reduce")
						short := strings.TrimSuffix(stats.Algorithm, ",between=recursive-doubling") // of an allgather, which may as well be by ring
						levels := short == inLevels(t, call.name, text, c.Size())
						if want := ordered(text) || commutes || !combines; n < 2000 && want != levels {
							return fmt.Errorf("%s of %d on hosts %s, commutes %v: ran %s", call.name, n, text, commutes, stats.Algorithm)
						}
						return nil
					})
				}
			}
		}
	}
}

// inLevels is what statistics call the algorithm for p ranks on hosts.
func inLevels(t *testing.T, collective, hosts string, p int) string {
	s, err := chorale.Schedule(collective, "hierarchical,hosts="+hosts, p, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s.Algorithm
}

// One message to or from each of the other hosts is all there is.
func TestCollectivesOfOneRootSendOneMessagePerHost(t *testing.T) {
	for text, hosts := range placements {
		h := slices.Max(hosts) + 1
		for _, call := range hostCalls(true) {
			want := h - 1
			switch call.name {
			case "allreduce", "reduce-scatter", "allgather", "barrier":
				continue
			}
			got := onHosts(t, hosts, func(ctx context.Context, c *chorale.Comm) error {
				_, _, err := call.call(ctx, c, 1, chorale.Option{})
				return err
			})
			if got != want {
				t.Errorf("%s on hosts %s: %d messages between hosts, want %d", call.name, text, got, want)
			}
		}
	}
}

func TestSplitHostGivesTheRanksOfOneHostInOrder(t *testing.T) {
	for text, hosts := range placements {
		onHosts(t, hosts, func(ctx context.Context, c *chorale.Comm) error {
			host, err := c.SplitHost(ctx)
			if err != nil {
				return err
			}
			defer host.Free()
			var want []int64
			for rank, h := range hosts {
				if h == hosts[c.Rank()] {
					want = append(want, int64(rank))
				}
			}
			got := make([]int64, host.Size())
			var stats chorale.Stats
			if err := chorale.AllGather(ctx, host, got, []int64{int64(c.Rank())}, chorale.WithStats(&stats)); err != nil {
				return err
			}
			if strings.HasPrefix(stats.Algorithm, "hierarchical") {
				return fmt.Errorf("on one host: ran %s", stats.Algorithm)
			}
			return same(c, "the ranks of a host of "+text, got, want)
		})
	}
}

func TestRanksShareOneHostIfNothingElseIsKnown(t *testing.T) {
	onRanks(t, 5, func(ctx context.Context, c *chorale.Comm) error {
		host, err := c.SplitHost(ctx)
		if err != nil {
			return err
		}
		if host.Size() != 5 || host.Rank() != c.Rank() {
			return fmt.Errorf("rank %d of %d, want %d of 5", host.Rank(), host.Size(), c.Rank())
		}
		return nil
	})
	if _, err := (*chorale.Comm)(nil).SplitHost(t.Context()); !errors.Is(err, chorale.ErrArgument) {
		t.Errorf("of no communicator: %v, want ErrArgument", err)
	}
}

// A communicator of some ranks, in an order of their own, has their hosts.
func TestCommunicatorsOfSomeRanksKnowTheirHosts(t *testing.T) {
	for _, test := range []struct {
		ranks []int
		want  string
	}{
		{[]int{0, 1, 4, 5}, inLevels(t, "barrier", "2", 4)},
		{[]int{4, 0, 5, 1, 6}, "hierarchical,hosts=cyclic:2"},
		{[]int{8, 9, 0}, inLevels(t, "barrier", "2", 3)},
		{[]int{0, 4, 8}, "dissemination"}, // all alone
		{[]int{1, 2, 3}, "dissemination"}, // all on one host
	} {
		onHosts(t, placements["4"], func(ctx context.Context, c *chorale.Comm) error {
			sub, err := c.Subset(ctx, test.ranks)
			if sub == nil || err != nil {
				return err
			}
			var stats chorale.Stats
			if err := chorale.StartBarrier(ctx, sub, chorale.WithStats(&stats)).Wait(); err != nil {
				return err
			}
			if stats.Algorithm != test.want {
				return fmt.Errorf("a barrier of ranks %v ran %s, want %s", test.ranks, stats.Algorithm, test.want)
			}
			return nil
		})
	}
}

func TestAnAlgorithmThatIsNamedIsToldTheHosts(t *testing.T) {
	hosts := placements["cyclic:3"]
	onHosts(t, hosts, func(ctx context.Context, c *chorale.Comm) error {
		v := []int64{1}
		for _, named := range [][2]string{
			{"hierarchical", "hierarchical,hosts=cyclic:3"},
			{"hierarchical,hosts=2", "hierarchical,hosts=2"},
			{"binomial", "binomial"},
		} {
			var stats chorale.Stats
			spec, want := named[0], named[1]
			if err := chorale.Bcast(ctx, c, v, 0, chorale.WithAlgorithm(spec), chorale.WithStats(&stats)); err != nil {
				return err
			}
			if stats.Algorithm != want {
				return fmt.Errorf("%s: ran %s, want %s", spec, stats.Algorithm, want)
			}
		}
		// Out of rank order, which the operation needs.
		m := []affineMap{mapOf(c.Rank(), 0)}
		err := chorale.AllReduceFunc(ctx, c, m, m, chorale.Op[affineMap]{Combine: then}, chorale.WithAlgorithm("hierarchical"))
		if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "combines out of rank order") {
			return fmt.Errorf("got %v", err)
		}
		// In parts of different lengths, which are no run of a host's.
		counts := make([]int, c.Size())
		counts[1] = 1
		got := make([]int64, 1)
		var stats chorale.Stats
		if err := chorale.AllGatherV(ctx, c, got, []int64{7}[:counts[c.Rank()]], counts, chorale.WithStats(&stats)); err != nil {
			return err
		}
		if got[0] != 7 || strings.HasPrefix(stats.Algorithm, "hierarchical") {
			return fmt.Errorf("AllGatherV: got %v by %s", got, stats.Algorithm)
		}
		return nil
	})
}

func TestOversubscribedRanksAreThoseOfOneHost(t *testing.T) {
	hosts := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for processors, want := range map[int]string{0: "dissemination", 1: "dissemination"} {
		if got := barrierOn(t, hosts, processors); got != want {
			t.Errorf("%d processors, each rank alone: %s, want %s", processors, got, want)
		}
	}
	if got := barrierOn(t, make([]int, 8), 1); got != "linear" {
		t.Errorf("8 ranks of one host on one processor: %s, want linear", got)
	}
}

// barrierOn returns the algorithm of a barrier.
func barrierOn(t *testing.T, hosts []int, processors int) string {
	job := inproc.New(len(hosts))
	var ranks sync.WaitGroup
	stats := make([]chorale.Stats, len(hosts))
	for rank := range hosts {
		ranks.Go(func() {
			c := chorale.NewComm(job.Endpoint(rank), chorale.CommConfig{Transport: "tcp", Processors: processors, Hosts: hosts})
			defer c.Close()
			if err := chorale.Barrier(t.Context(), c, chorale.WithStats(&stats[rank])); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
	return stats[0].Algorithm
}

func TestHostsOfAnotherNumberOfRanksAreAnError(t *testing.T) {
	job := inproc.New(1)
	c := chorale.NewComm(job.Endpoint(0), chorale.CommConfig{Hosts: []int{0, 1}})
	defer c.Close()
	err := chorale.Barrier(t.Context(), c)
	if want := "CommConfig.Hosts has 2 numbers: want 1, one per rank"; !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := c.SplitHost(t.Context()); !errors.Is(err, chorale.ErrArgument) {
		t.Errorf("SplitHost: got %v, want ErrArgument", err)
	}
}
