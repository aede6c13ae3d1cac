package draw

import (
	"bytes"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

func mustSchedule(t testing.TB, c sched.Collective, algorithm string, p, root int) *sched.Schedule {
	t.Helper()
	s, err := algo.New(c, algorithm, p, root, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBlocksMatchTheGoldenFiles(t *testing.T) {
	show := func(t *testing.T, name string, s Scene) {
		var b bytes.Buffer
		if err := Blocks(&b, s); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.String())
		golden(t, "blocks/"+name+".svg", b.Bytes())
	}
	for _, c := range []networkCase{
		{"scatter-8", sched.Scatter, "binomial", 8, 0, "full", nil, NetworkOptions{}, false},
		{"gather-8", sched.Gather, "binomial", 8, 0, "full", nil, NetworkOptions{}, false},
		{"tree-7", sched.Reduce, "tree", 7, 0, "full", nil, NetworkOptions{}, false},
		{"tree-8", sched.Reduce, "tree", 8, 0, "full", nil, NetworkOptions{}, false},
		{"butterfly-5", sched.AllReduce, "butterfly", 5, 0, "full", nil, NetworkOptions{}, false},
		{"butterfly-6", sched.AllReduce, "butterfly", 6, 0, "full", nil, NetworkOptions{}, false},
		{"butterfly-7", sched.AllReduce, "butterfly", 7, 0, "full", nil, NetworkOptions{}, false},
		{"butterfly-8", sched.AllReduce, "butterfly", 8, 0, "full", nil, NetworkOptions{}, false},
		{"simple-exchange-4", sched.AllReduce, "recursive-doubling", 4, 0, "full", nil, NetworkOptions{}, false},
		{"recursive-halving-4", sched.AllReduce, "recursive-halving", 4, 0, "full", nil, NetworkOptions{}, false},
		{"alltoall-4", sched.AllToAll, "hypercube", 4, 0, "full", nil, NetworkOptions{}, false},
		{"scan-5", sched.Scan, "recursive-doubling", 5, 0, "full", nil, NetworkOptions{}, false},
		{"barrier-5", sched.Barrier, "dissemination", 5, 0, "full", nil, NetworkOptions{}, false},
		{"bcast-1", sched.Bcast, "binomial", 1, 0, "full", nil, NetworkOptions{}, false},
	} {
		t.Run(c.name, func(t *testing.T) { show(t, c.name, c.scene(t)) })
	}
	t.Run("matvec", func(t *testing.T) { show(t, "matvec", matvec(t, 4)) })
}

func TestALegendExplainsDashedBoxesWhereThereAreAny(t *testing.T) {
	for name, want := range map[string]bool{"tree": true, "recursive-doubling": false} {
		c := networkCase{name, sched.AllReduce, name, 4, 0, "full", nil, NetworkOptions{}, false}
		var b bytes.Buffer
		if err := Blocks(&b, c.scene(t)); err != nil {
			t.Fatal(err)
		}
		boxes, explained := bytes.Contains(b.Bytes(), []byte(`stroke-dasharray="3 3"`)), bytes.Contains(b.Bytes(), []byte("no data, or none still needed"))
		if boxes != want || explained != want {
			t.Errorf("%s: dashed boxes %v, in the legend %v: want %v", name, boxes, explained, want)
		}
	}
}
