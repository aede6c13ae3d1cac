package selection

import (
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// naive is BuiltIn as its definition reads: of all rules, from the most general one on, the
// last one that fits counts, and its algorithm is made to see whether it does.
func naive(q Query) (c Choice) {
	for _, s := range sections(q) {
		for _, r := range s.rules[q.Collective] {
			if q.Ranks < r.minRanks || q.Bytes < r.minBytes {
				continue
			}
			bytes := q.Bytes
			spec := WithHosts(q.Collective, r.algorithm, q.Hosts)
			made, err := algo.New(q.Collective, spec, q.Ranks, 0, bytes)
			if err != nil || q.Ordered && made.Commutative || q.Uneven && !(made.Uneven || made.EqualBlocks || !made.Partitioned()) {
				continue
			}
			c = Choice{Algorithm: spec, rule: r, of: s.scope, ordered: q.Ordered, uneven: q.Uneven}
		}
	}
	return c
}

func TestTheBuiltInChoiceIsTheLastRuleThatFits(t *testing.T) {
	calls := 0
	compare := func(q Query) {
		calls++
		if got, err := BuiltIn(q); err != nil || got != naive(q) {
			t.Errorf("%+v: got %+v, %v, want %+v", q, got, err, naive(q))
		}
	}
	queries(compare)
	for _, c := range sched.Collectives() {
		for _, transport := range []string{"inproc", "shm", "tcp"} {
			for _, ranks := range goldenRanks {
				for _, bytes := range goldenBytes {
					for kind := range 16 {
						compare(Query{
							Collective: c, Ranks: ranks, Bytes: bytes, Transport: transport, Processors: ranks - kind&1,
							Ordered: kind&2 > 0 && c.Combines(), Uneven: kind&4 > 0, Function: kind&8 > 0 && c.Combines(),
						})
					}
				}
			}
		}
	}
	t.Logf("%d calls", calls)
}
