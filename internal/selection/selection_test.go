package selection

import (
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// queries calls f with calls of every collective, size and kind.
func queries(f func(q Query)) {
	for _, c := range sched.Collectives() {
		for _, p := range []int{1, 2, 3, 5, 8, 13, 16, 33, 100} {
			for _, bytes := range []int{0, 8, 1000, 64 << 10, 4 << 20} {
				for _, transport := range []string{"inproc", "shm", "tcp"} {
					for kind := range 8 {
						f(Query{
							Collective: c, Ranks: p, Bytes: bytes, Transport: transport,
							Ordered: kind&1 > 0 && c.Combines(), Uneven: kind&2 > 0, Processors: kind & 4 / 2,
						})
					}
				}
			}
		}
	}
}

func TestChoiceMeetsTheRestrictionsOfItsAlgorithm(t *testing.T) {
	queries(func(q Query) {
		choice, err := Choose(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
			return
		}
		name, _, _ := strings.Cut(choice.Algorithm, ",")
		a, err := algo.Lookup(q.Collective, name)
		switch {
		case err != nil:
			t.Errorf("%+v: %v", q, err)
		case a.Restrictions.Allow(q.Ranks) != nil, q.Ordered && a.Restrictions.Commutative, q.Uneven && a.Restrictions.EqualParts:
			t.Errorf("%+v: %s is restricted: %v", q, choice.Algorithm, a.Restrictions)
		case choice.Why == "":
			t.Errorf("%+v: no reason is given", q)
		}
	})
}

// A rule for an algorithm that does not exist would never fit a call, and so go
// unnoticed.
func TestEveryRuleNamesAnAlgorithmOfItsCollective(t *testing.T) {
	check := func(in string, all rules) {
		for c, list := range all {
			for _, r := range list {
				if _, err := algo.Lookup(c, r.algorithm); err != nil {
					t.Errorf("%s, %v: %v", in, c, err)
				}
			}
		}
	}
	check("base", base)
	for name, of := range tables {
		check(name, of.rules)
		check(name+" oversubscribed", of.oversubscribed)
	}
}

func TestEnvironmentOverridesTheTables(t *testing.T) {
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
		choice, err := Choose(Query{Collective: sched.AllReduce, Ranks: 8, Bytes: 8, Transport: "tcp"})
		if err != nil || choice.Algorithm != want {
			t.Errorf("%q: got %q, %v, want %q", env, choice.Algorithm, err, want)
		}
	}
}

func TestTemporalStoresAreForBytesThatFitTheCacheAndAreNotForwarded(t *testing.T) {
	const cache = 1 << 20
	for _, test := range []struct {
		collective   sched.Collective
		ranks, bytes int
		want         bool
	}{
		{sched.AllToAll, 2, 512 << 10, true},
		{sched.AllToAll, 2, 512<<10 + 1, false},
		{sched.AllGather, 8, 128 << 10, true},
		{sched.AllGather, 9, 128 << 10, false},
		{sched.AllReduce, 2, 8, false}, // ranks forward what they receive
		{sched.Bcast, 2, 8, false},
	} {
		if got := temporal(test.collective, test.ranks, test.bytes, cache); got != test.want {
			t.Errorf("%v of %d bytes on %d ranks, cache of %d bytes: got %v, want %v",
				test.collective, test.bytes, test.ranks, cache, got, test.want)
		}
	}
	if n := cacheLen(); n < 64<<10 {
		t.Errorf("a last-level cache of %v bytes", n)
	}
}
