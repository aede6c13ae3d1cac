package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// queries calls f with calls of every collective, size and kind.
func queries(f func(q chorale.Query)) {
	for _, c := range sched.Collectives() {
		for _, p := range []int{1, 2, 3, 5, 8, 13, 16, 33, 100} {
			for _, bytes := range []int{0, 8, 1000, 64 << 10, 4 << 20} {
				for _, network := range []string{"inproc", "shm", "tcp"} {
					for kind := range 8 {
						f(chorale.Query{
							Collective: c.String(), Ranks: p, Bytes: bytes, Transport: network,
							Ordered: kind&1 > 0 && c.Combines(), Uneven: kind&2 > 0, Processors: kind & 4 / 2,
						})
					}
				}
			}
		}
	}
}

func TestTheSelectionNeverPicksWhatDoesNotFit(t *testing.T) {
	queries(func(q chorale.Query) {
		choice, err := chorale.Choose(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
			return
		}
		c, _ := sched.ParseCollective(q.Collective)
		name, _, _ := strings.Cut(choice.Algorithm, ",")
		a, err := algo.Lookup(c, name)
		switch {
		case err != nil:
			t.Errorf("%+v: %v", q, err)
		case a.Restrictions.Allow(q.Ranks) != nil, q.Ordered && a.Restrictions.Commutative, q.Uneven && a.Restrictions.EqualParts:
			t.Errorf("%+v: %s is restricted: %v", q, choice.Algorithm, a.Restrictions)
		case choice.Why == "":
			t.Errorf("%+v: no word why", q)
		}
	})
}

func TestTheEnvironmentOverridesTheSelection(t *testing.T) {
	for env, want := range map[string]string{
		"":                              "recursive-doubling",
		"allreduce=ring":                "ring",
		"bcast=binomial,allreduce=ring": "ring",
		"allreduce=halving-exchange,stages=2,bcast=chain": "halving-exchange,stages=2",
		"bcast=chain,segment=8K;allreduce=tree":           "tree",
		"butterfly":                                       "butterfly",
		"bcast=linear":                                    "recursive-doubling",
	} {
		t.Setenv("CHORALE_ALGORITHM", env)
		choice, err := chorale.Choose(chorale.Query{Collective: "allreduce", Ranks: 8, Bytes: 8, Transport: "tcp"})
		if err != nil || choice.Algorithm != want {
			t.Errorf("%q: got %q, %v, want %q", env, choice.Algorithm, err, want)
		}
	}
}

func TestTheEnvironmentReachesTheCalls(t *testing.T) {
	t.Setenv("CHORALE_ALGORITHM", "allreduce=ring,bcast=linear")
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		var stats chorale.Stats
		v := []int{1}
		if err := chorale.AllReduce(ctx, c, v, v, chorale.Sum, chorale.WithStats(&stats)); err != nil {
			return err
		}
		if stats.Algorithm != "ring" {
			return fmt.Errorf("ran %s", stats.Algorithm)
		}
		// What the call itself asks for counts more.
		if err := chorale.Bcast(ctx, c, v, 0, chorale.WithAlgorithm("binomial"), chorale.WithStats(&stats)); err != nil {
			return err
		}
		if stats.Algorithm != "binomial" {
			return fmt.Errorf("ran %s", stats.Algorithm)
		}
		return nil
	})
}

func TestAnUnknownNameInTheEnvironmentListsTheKnownOnes(t *testing.T) {
	for _, env := range []string{"fugue", "allreduce=fugue"} {
		t.Setenv("CHORALE_ALGORITHM", env)
		onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
			v := []int{1}
			err := chorale.AllReduce(ctx, c, v, v, chorale.Sum)
			if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "fugue") || !strings.Contains(err.Error(), "recursive-doubling") {
				return fmt.Errorf("got %v", err)
			}
			return nil
		})
	}
}
