package algo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// known lists the algorithms of a collective in a line.
func known(c sched.Collective) string {
	var names []string
	for _, a := range algo.For(c) {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

func TestErrorsSayWhatWasAskedWhatIsWrongAndWhatWouldBeRight(t *testing.T) {
	for _, test := range []struct {
		c              sched.Collective
		spec           string
		p, root, bytes int
		want           string
	}{
		{sched.Bcast, "binomal", 8, 0, 0, `bcast: no algorithm "binomal": want binomial, or another of ` + strings.Replace(known(sched.Bcast), "binomial, ", "", 1)},
		{sched.Bcast, "", 8, 0, 0, `bcast: no algorithm "": want ` + known(sched.Bcast)},
		{sched.Collective(99), "linear", 8, 0, 0, `Collective(99): no algorithm "linear": there is none`},
		{sched.Bcast, "binomial", 0, 0, 0, `bcast "binomial" on 0 ranks: want at least 1 rank`},
		{sched.Bcast, "binomial", 8, 8, 0, `bcast "binomial" on 8 ranks: root 8: want 0 to 7`},
		{sched.Bcast, "binomial", 8, -1, 0, `bcast "binomial" on 8 ranks: root -1: want 0 to 7`},
		{sched.Bcast, "binomial", 8, 0, -1, `bcast "binomial" on 8 ranks: -1 bytes: want 0 or more`},
		{sched.AllReduce, "tree", 8, 1, 0, `allreduce "tree" on 8 ranks: root 1: allreduce has no root, want 0`},
		{sched.Shift, "direct", 8, 8, 0, `shift "direct" on 8 ranks: root 8: want 0 to 7`},
		{sched.Bcast, "binomial,", 8, 0, 0, `bcast "binomial," on 8 ranks: "": want key=value`},
		{sched.Bcast, "binomial,ascending", 8, 0, 0, `bcast "binomial,ascending" on 8 ranks: "ascending": want key=value`},
		{sched.Bcast, "binomial,ordre=ascending", 8, 0, 0, `bcast "binomial,ordre=ascending" on 8 ranks: binomial has no parameter "ordre": want order`},
		{sched.Bcast, "linear,order=ascending", 8, 0, 0, `bcast "linear,order=ascending" on 8 ranks: linear has no parameter "order": want none`},
		{sched.Bcast, "binomial,order=up", 8, 0, 0, `bcast "binomial,order=up" on 8 ranks: order=up: want descending or ascending`},
		{sched.Bcast, "binomial,order=ascending,order=descending", 8, 0, 0, `bcast "binomial,order=ascending,order=descending" on 8 ranks: order is given twice: want it once`},
		{sched.Bcast, "mesh,dims=3x4", 16, 0, 0, `bcast "mesh,dims=3x4" on 16 ranks: dims=3x4: want sizes whose product is 16`},
		{sched.Bcast, "mesh,dims=4294967296x4294967296x4", 4, 0, 0, `bcast "mesh,dims=4294967296x4294967296x4" on 4 ranks: dims=4294967296x4294967296x4: want sizes whose product is 4`},
		{sched.Bcast, "mesh,dims=4x0", 16, 0, 0, `bcast "mesh,dims=4x0" on 16 ranks: dims=4x0: want sizes, as in 4x4 or 2x3x4`},
		{sched.Bcast, "mesh,dims=", 16, 0, 0, `bcast "mesh,dims=" on 16 ranks: dims=: want sizes, as in 4x4 or 2x3x4`},
		{sched.Bcast, "binary-tree,segment=8Q", 8, 0, 0, `bcast "binary-tree,segment=8Q" on 8 ranks: segment=8Q: want bytes, as in 512, 8K or 4M`},
		{sched.Bcast, "binary-tree,segment=9999999999G", 8, 0, 0, `bcast "binary-tree,segment=9999999999G" on 8 ranks: segment=9999999999G: want bytes, as in 512, 8K or 4M`},
		{sched.Bcast, "binary-tree,segment=1", 8, 0, 1 << 20, `bcast "binary-tree,segment=1" on 8 ranks: segment=1: 1048576 pieces of a vector of 1048576 bytes: want at most 65536`},
		{sched.AllReduce, "halving-exchange,stages=4", 15, 0, 0, `allreduce "halving-exchange,stages=4" on 15 ranks: stages=4: want 0 to 3`},
		{sched.AllReduce, "halving-exchange,stages=-1", 15, 0, 0, `allreduce "halving-exchange,stages=-1" on 15 ranks: stages=-1: want a number, 0 or more`},
	} {
		_, err := algo.New(test.c, test.spec, test.p, test.root, test.bytes)
		if err == nil || err.Error() != "algo: "+test.want {
			t.Errorf("got  %v\nwant algo: %s", err, test.want)
		}
	}
}

func TestTheAlgorithmOfAScheduleIsItsCanonicalSpec(t *testing.T) {
	for _, test := range []struct {
		c          sched.Collective
		spec       string
		p, bytes   int
		want       string
		wantBlocks int
	}{
		{sched.Bcast, "binomial", 8, 0, "binomial", 1},
		{sched.Bcast, "binomial,order=descending", 8, 0, "binomial", 1},
		{sched.Bcast, "binomial,order=ascending", 8, 0, "binomial,order=ascending", 1},
		{sched.Bcast, "mesh", 12, 0, "mesh", 1},
		{sched.Bcast, "mesh,dims=3x4", 12, 0, "mesh", 1}, // chosen anyway
		{sched.Bcast, "mesh,dims=04x3", 12, 0, "mesh,dims=4x3", 1},
		{sched.Bcast, "binary-tree,segment=0", 8, 1000, "binary-tree", 1},
		{sched.Bcast, "binary-tree,segment=8192", 8, 8193, "binary-tree,segment=8K", 2},
		{sched.Bcast, "binary-tree,segment=1024K", 8, 1 << 21, "binary-tree,segment=1M", 2},
		{sched.Bcast, "binary-tree,segment=8Ki", 8, 8193, "binary-tree,segment=8K", 2},
		{sched.Bcast, "binary-tree,segment=1025", 8, 1025, "binary-tree,segment=1025", 1},
		{sched.Bcast, "binary-tree,segment=1G", 8, 0, "binary-tree,segment=1G", 1},
		{sched.AllReduce, "halving-exchange", 9, 0, "halving-exchange", 2},
		{sched.Bcast, "hierarchical,hosts=3", 9, 0, "hierarchical", 1}, // chosen anyway
		{sched.Bcast, "hierarchical,hosts=03", 10, 0, "hierarchical", 1},
		{sched.Bcast, "hierarchical,hosts=5+2+2+1", 10, 0, "hierarchical,hosts=5+2x2+1", 1},
		{sched.Bcast, "hierarchical,hosts=10", 10, 0, "hierarchical,hosts=10", 1},
		{sched.Bcast, "hierarchical,hosts=1x10", 10, 0, "hierarchical,hosts=1x10", 1},
		{sched.Bcast, "hierarchical,hosts=map:3x0.0.2x5.4x1", 10, 0, "hierarchical,hosts=map:4x0.2x5.4x1", 1},
		{sched.AllReduce, "hierarchical,group=4", 10, 0, "hierarchical,group=4", 1},
		{sched.AllReduce, "hierarchical,hosts=2x4+2", 10, 0, "hierarchical,hosts=2x4+2", 1},
		{sched.AllReduce, "hierarchical,hosts=3x3+1", 10, 0, "hierarchical", 1},     // groups of 3 anyway
		{sched.AllReduce, "halving-exchange,stages=1", 9, 0, "halving-exchange", 2}, // half of ⌊lg 9⌋
		{sched.AllReduce, "halving-exchange,stages=3", 9, 0, "halving-exchange,stages=3", 8},
	} {
		s, err := algo.New(test.c, test.spec, test.p, 0, test.bytes)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Algorithm != test.want || s.Blocks != test.wantBlocks {
			t.Errorf("%s: got %s in %d blocks, want %s in %d", test.spec, s.Algorithm, s.Blocks, test.want, test.wantBlocks)
		}
		again, err := algo.New(test.c, s.Algorithm, test.p, 0, test.bytes)
		if err != nil || !again.Equal(s) {
			t.Errorf("%s: its canonical form %s makes another schedule (%v)", test.spec, s.Algorithm, err)
		}
	}
}

func TestRestrictionsNameThemselves(t *testing.T) {
	for _, test := range []struct {
		r    algo.Restrictions
		p    int
		name string
		want string
	}{
		{algo.Restrictions{}, 7, "", ""},
		{algo.Restrictions{Commutative: true}, 7, "commutative", ""},
		{algo.Restrictions{PowerOfTwo: true, AllPort: true}, 8, "power of two, all-port", ""},
		{algo.Restrictions{PowerOfTwo: true}, 7, "power of two", "needs a power of two of ranks, want 4 or 8"},
		{algo.Restrictions{EvenRanks: true, Commutative: true, EqualParts: true, EqualBlocks: true}, 7, "even p, commutative, equal parts, equal blocks", "needs an even number of ranks, want 6 or 8"},
	} {
		got := ""
		if err := test.r.Allow(test.p); err != nil {
			got = err.Error()
		}
		if got != test.want || test.r.String() != test.name {
			t.Errorf("%v with %d ranks: %q, want %s: %q", test.r, test.p, got, test.name, test.want)
		}
	}
}

func TestEveryRowOfTheCatalogIsFilledIn(t *testing.T) {
	seen := make(map[string]bool)
	for _, a := range algo.Catalog() {
		name := fmt.Sprintf("%v %s", a.Collective, a.Name)
		if seen[name] {
			t.Errorf("%s stands there twice", name)
		}
		seen[name] = true
		if a.Name == "" || a.Formula == "" || a.Prefer == "" || strings.ContainsAny(a.Name, ", =") {
			t.Errorf("%s lacks something: %+v", name, a)
		}
		for _, p := range a.Params {
			if p.Key == "" || p.Values == "" || p.Doc == "" {
				t.Errorf("%s lacks something: %+v", name, p)
			}
		}
		if found, err := algo.Lookup(a.Collective, a.Name); err != nil || found.Formula != a.Formula {
			t.Errorf("%s is not found: %v", name, err)
		}
	}
	for _, c := range sched.Collectives() {
		for _, a := range algo.For(c) {
			delete(seen, fmt.Sprintf("%v %s", c, a.Name))
		}
	}
	if len(seen) > 0 {
		t.Errorf("no collective has %v", seen)
	}
	if _, err := algo.Lookup(sched.Bcast, "tree"); err == nil {
		t.Error("bcast tree is found, and should not")
	}
}

func TestAStrangerHasNoProgram(t *testing.T) {
	s := newSchedule(t, sched.Bcast, "linear", 4, 0)
	for _, rank := range []int{-1, 4} {
		if program := s.Program(rank); len(program) != 0 {
			t.Errorf("rank %d of 4 does %v", rank, program)
		}
	}
}

// logarithmic are algorithms whose programs are O(lg p) steps long, or shorter.
var logarithmic = []struct {
	c    sched.Collective
	spec string
}{
	{sched.Bcast, "binomial"},
	{sched.Bcast, "binomial,order=ascending"},
	{sched.Bcast, "mesh"},
	{sched.Reduce, "binomial"},
	{sched.Reduce, "tree"},
	{sched.Reduce, "reduce-scatter-gather"},
	{sched.Scatter, "binomial"},
	{sched.AllGather, "recursive-doubling"},
	{sched.ReduceScatter, "recursive-halving"},
	{sched.AllReduce, "butterfly"},
	{sched.AllReduce, "recursive-doubling"},
	{sched.AllReduce, "recursive-halving"},
	{sched.AllReduce, "halving-exchange"},
	{sched.Barrier, "dissemination"},
	{sched.Bcast, "knomial"},
	{sched.Bcast, "chain"},
	{sched.Bcast, "binary-tree"},
	{sched.Bcast, "split-binary"},
	{sched.Bcast, "circulant"},
	{sched.Reduce, "knomial"},
	{sched.Reduce, "chain"},
	{sched.Reduce, "binary-tree"},
	{sched.Reduce, "in-order-binary"},
	{sched.Reduce, "circulant"},
	{sched.AllGather, "circulant"},
	{sched.ReduceScatter, "circulant"},
	{sched.AllReduce, "recursive-multiplying"},
	{sched.AllReduce, "hierarchical"},
	{sched.Bcast, "hierarchical"},
	{sched.Reduce, "hierarchical"},
	{sched.AllGather, "hierarchical"},
	{sched.Scatter, "hierarchical"},
	{sched.Barrier, "hierarchical"},
	{sched.AllReduce, "swing"},
	{sched.AllReduce, "circulant"},
	{sched.Scan, "recursive-doubling"},
	{sched.ExScan, "recursive-doubling"},
	{sched.Barrier, "tree"},
	{sched.Bcast, "rotated"},
	{sched.Reduce, "rotated"},
	{sched.Scatter, "mesh"},
	{sched.Gather, "mesh"},
	{sched.AllGather, "bruck"},
	{sched.ReduceScatter, "recursive-doubling"},
	{sched.ReduceScatter, "butterfly"},
	{sched.Shift, "direct"},
}

const million = 1 << 20

func TestProgramsOfAMillionRanksAreShort(t *testing.T) {
	for _, l := range logarithmic {
		s := newSchedule(t, l.c, l.spec, million, 0)
		for _, rank := range []int{0, 1, million / 3, million / 2, million - 1} {
			if n := len(s.Program(rank)); n > 41 {
				t.Errorf("%s: rank %d has %d steps, want 41 at most", describe(s), rank, n)
			}
		}
	}
}

// Ranks ask for their programs at the same time, and each gets its own.
func TestProgramsMayBeMadeConcurrently(t *testing.T) {
	const p = 64
	s := newSchedule(t, sched.AllReduce, "butterfly", p, 0)
	programs := make(chan [2]sched.Program)
	for rank := range p {
		go func() { programs <- [2]sched.Program{s.Program(rank), s.Program(rank)} }()
	}
	for range p {
		if pair := <-programs; !pair[0].Equal(pair[1]) {
			t.Errorf("one rank's program is %v and then %v", pair[0], pair[1])
		}
	}
}

// BenchmarkProgram makes the programs of a job of a million ranks, one after
// another.
func BenchmarkProgram(b *testing.B) {
	for _, l := range logarithmic {
		b.Run(fmt.Sprintf("%v/%s", l.c, l.spec), func(b *testing.B) {
			s := newSchedule(b, l.c, l.spec, million, 0)
			b.ReportAllocs()
			rank := 0
			for b.Loop() {
				s.Program(rank)
				rank = (rank + 699049) % million // odd, so all ranks have their turn
			}
		})
	}
}
