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
				for _, transport := range []string{"inproc", "shm", "tcp", "mpi"} {
					for kind := range 8 {
						for _, hosts := range []string{"", "2", "cyclic:2"} {
							if p < 3 {
								hosts = ""
							}
							f(Query{
								Collective: c, Ranks: p, Bytes: bytes, Transport: transport, Hosts: hosts,
								Ordered: kind&1 > 0 && c.Combines(), Uneven: kind&2 > 0, Processors: kind & 4 / 2,
							})
						}
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
		r, err := algo.Restricted(q.Collective, choice.Algorithm, q.Ranks)
		switch {
		case err != nil:
			t.Errorf("%+v: %v", q, err)
		case q.Ordered && r.Commutative, q.Uneven && r.EqualParts:
			t.Errorf("%+v: %s is restricted: %v", q, choice.Algorithm, r)
		case choice.Why() == "":
			t.Errorf("%+v: no reason is given", q)
		}
	})
}

// In a ring, every rank sends in every step, and each step goes between hosts.
func TestShortPartsDoNotGoRoundARingOfHosts(t *testing.T) {
	for _, hosts := range []string{"2", "4"} {
		choice, err := Choose(Query{Collective: sched.AllGather, Ranks: 8, Bytes: 8, Transport: "tcp", Hosts: hosts})
		if want := "hierarchical,between=recursive-doubling,hosts=" + hosts; err != nil || choice.Algorithm != want {
			t.Errorf("got %q, %v, want %q", choice.Algorithm, err, want)
		}
	}
}

// If ranks go round the hosts, every link of a chain goes between hosts.
func TestALongVectorGoesAlongTheHostsOnlyByBlock(t *testing.T) {
	for hosts, chain := range map[string]bool{"8": true, "3+2x14+1": true, "cyclic:8": false} {
		choice, err := Choose(Query{Collective: sched.Bcast, Ranks: 32, Bytes: 64 << 20, Transport: "tcp", Hosts: hosts})
		if err != nil || (choice.Algorithm == "chain") != chain {
			t.Errorf("hosts %s: %s, %v", hosts, choice.Algorithm, err)
		}
	}
}

// A rule for an algorithm that does not exist would never fit a call, and so go
// unnoticed.
func TestEveryRuleNamesAnAlgorithmOfItsCollective(t *testing.T) {
	check := func(in string, all rules) {
		for c, list := range all {
			for _, r := range list {
				if _, err := algo.Restricted(c, r.algorithm, 8); err != nil {
					t.Errorf("%s, %v: %v", in, c, err)
				}
			}
		}
	}
	check("base", base)
	check("functions", function)
	check("hosts", hosts)
	check("hosts by block", hostsByBlock)
	for name, of := range tables {
		check(name, of.rules)
		check(name+" oversubscribed", of.oversubscribed)
	}
}

func TestRanksThatShareHostsAreServedInTwoLevels(t *testing.T) {
	for _, c := range []sched.Collective{
		sched.Bcast, sched.Reduce, sched.Scatter, sched.Gather, sched.AllGather, sched.ReduceScatter, sched.AllReduce, sched.Barrier,
	} {
		parted := (&sched.Schedule{Collective: c}).Partitioned()
		for _, hosts := range []string{"2", "3+5", "cyclic:2", "map:0.3x1.4x0"} {
			for kind := range 4 {
				q := Query{Collective: c, Ranks: 8, Bytes: 100, Transport: "tcp", Hosts: hosts, Ordered: kind&1 > 0 && c.Combines(), Uneven: kind&2 > 0 && parted}
				choice, err := Choose(q)
				if err != nil {
					t.Fatal(err)
				}
				inOrder := !strings.Contains(hosts, ":") || !q.Ordered && !q.Uneven
				two := strings.HasPrefix(choice.Algorithm, "hierarchical,") && strings.HasSuffix(choice.Algorithm, ",hosts="+hosts)
				if two != inOrder {
					t.Errorf("%+v: %s, because: %s", q, choice.Algorithm, choice.Why())
				}
				if strings.Contains(choice.Why(), "(a rule for ranks that share hosts)") != inOrder {
					t.Errorf("%+v: the reason is %q", q, choice.Why())
				}
			}
		}
	}
}

func TestAnAlgorithmIsToldTheHostsUnlessItSaysOfThem(t *testing.T) {
	for _, test := range []struct {
		c                 sched.Collective
		spec, hosts, want string
	}{
		{sched.Bcast, "hierarchical", "2+3", "hierarchical,hosts=2+3"},
		{sched.Bcast, "hierarchical,between=binomial", "2", "hierarchical,between=binomial,hosts=2"},
		{sched.Bcast, "hierarchical,hosts=3", "2", "hierarchical,hosts=3"},
		{sched.AllReduce, "hierarchical,group=3", "2", "hierarchical,group=3"},
		{sched.Bcast, "hierarchical", "", "hierarchical"},
		{sched.Bcast, "binomial", "2", "binomial"},
		{sched.Bcast, "choir", "2", "choir"},
		{sched.Bcast, "", "2", ""},
	} {
		if got := WithHosts(test.c, test.spec, test.hosts); got != test.want {
			t.Errorf("%v %q on %q: got %q, want %q", test.c, test.spec, test.hosts, got, test.want)
		}
	}
	t.Setenv("CHORALE_ALGORITHM", "bcast=hierarchical")
	choice, err := Choose(Query{Collective: sched.Bcast, Ranks: 8, Hosts: "cyclic:2"})
	if err != nil || choice.Algorithm != "hierarchical,hosts=cyclic:2" {
		t.Errorf("from the environment: got %q, %v", choice.Algorithm, err)
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

func TestTwoRanksShareTheCallsOfAFunctionOfTheCallers(t *testing.T) {
	for _, transport := range []string{"inproc", "shm", "tcp"} {
		q := Query{Collective: sched.AllReduce, Ranks: 2, Bytes: 1 << 20, Transport: transport, Function: true}
		if c, err := Choose(q); err != nil || c.Algorithm != "recursive-halving" {
			t.Errorf("%s: %s, %v", transport, c.Algorithm, err)
		}
		q.Function = false
		if c, err := Choose(q); err != nil || c.Algorithm != "recursive-doubling" {
			t.Errorf("%s, a kernel: %s, %v", transport, c.Algorithm, err)
		}
	}
}
