package draw

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

func built(t testing.TB, c sched.Collective, algorithm string, p, root int) *sched.Schedule {
	t.Helper()
	s, err := algo.New(c, algorithm, p, root, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// told writes the contents of all ranks, a line per state.
func told(t *testing.T, s *sched.Schedule) string {
	t.Helper()
	states, err := histories(s)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, ranks := range states {
		for r, held := range ranks {
			if r > 0 {
				b.WriteString("  ")
			}
			fmt.Fprint(&b, strings.Join(contents(s, held), "/"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestTell(t *testing.T) {
	for _, c := range []struct {
		c sched.Collective
		a string
		p int
	}{{sched.Scatter, "binomial", 8}, {sched.Gather, "binomial", 8}, {sched.Bcast, "binomial", 5}, {sched.Reduce, "binomial", 8}, {sched.Reduce, "tree", 7},
		{sched.AllReduce, "recursive-doubling", 4}, {sched.AllReduce, "recursive-halving", 4}, {sched.AllReduce, "butterfly", 7}, {sched.AllToAll, "hypercube", 4},
		{sched.Scan, "recursive-doubling", 5}, {sched.Barrier, "dissemination", 5}, {sched.Shift, "ring", 5}, {sched.AllGather, "ring", 4}} {
		t.Logf("%v %s %d\n%s", c.c, c.a, c.p, told(t, built(t, c.c, c.a, c.p, 0)))
	}
}
