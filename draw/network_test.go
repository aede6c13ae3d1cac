package draw

import (
	"bytes"
	"io"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A networkCase is a schedule on a network.
type networkCase struct {
	name       string
	collective sched.Collective
	algorithm  string
	p, root    int
	network    string
	placement  topo.Placement
	options    NetworkOptions
	crowded    bool // labels may overlap
}

func (c networkCase) scene(t testing.TB) Scene {
	t.Helper()
	top := mustTopology(t, c.network, c.p)
	part := sim.Part{Schedule: mustSchedule(t, c.collective, c.algorithm, c.p, c.root), Words: 64}
	return simulate(t, c.name, top, c.placement, part)
}

func simulate(t testing.TB, title string, top topo.Topology, placement topo.Placement, parts ...sim.Part) Scene {
	t.Helper()
	r, err := sim.Run(sim.Config{Topology: top, Placement: placement, Model: model.Model{Ts: 10, Tw: 1}, Sync: true, Record: true}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return Scene{Title: title, Parts: parts, Result: r}
}

// matvec is the matrix–vector product on an n×n grid of ranks: the top rank of
// every column broadcasts, then every row reduces to its first rank.
func matvec(t testing.TB, n int) Scene {
	t.Helper()
	var parts []sim.Part
	for c := range n {
		column := sim.Part{Schedule: mustSchedule(t, sched.Bcast, "binomial", n, 0), Words: 1}
		for r := range n {
			column.Ranks = append(column.Ranks, r*n+c)
		}
		parts = append(parts, column)
	}
	for r := range n {
		row := sim.Part{Schedule: mustSchedule(t, sched.Reduce, "binomial", n, 0), Words: 1}
		for c := range n {
			row.Ranks = append(row.Ranks, r*n+c)
		}
		parts = append(parts, row)
	}
	top, err := topo.NewMesh(n, n)
	if err != nil {
		t.Fatal(err)
	}
	return simulate(t, "Matrix–vector product", top, nil, parts...)
}

var panelOptions = NetworkOptions{Panels: true}

var networkCases = []networkCase{
	{"bcast-ring-8", sched.Bcast, "binomial", 8, 0, "ring", nil, NetworkOptions{}, false},
	{"reduce-ring-8", sched.Reduce, "binomial", 8, 0, "ring", nil, NetworkOptions{}, false},
	{"bcast-mesh-16", sched.Bcast, "mesh,dims=4x4", 16, 0, "mesh:4x4", topo.ColumnMajor(4, 4), NetworkOptions{}, false},
	{"bcast-cube-8", sched.Bcast, "binomial", 8, 0, "hypercube", nil, NetworkOptions{}, false},
	{"bcast-tree-8", sched.Bcast, "binomial", 8, 0, "tree", nil, NetworkOptions{}, false},
	{"scatter-cube-8", sched.Scatter, "binomial", 8, 0, "hypercube", nil, NetworkOptions{Blocks: true}, false},
	{"gather-cube-8", sched.Gather, "binomial", 8, 0, "hypercube", nil, NetworkOptions{Blocks: true}, false},
	{"nearest-first", sched.Bcast, "binomial,order=ascending", 8, 0, "linear", nil, panelOptions, false},
	{"nearest-first-one", sched.Bcast, "binomial,order=ascending", 8, 0, "linear", nil, NetworkOptions{}, false},
	{"farthest-first", sched.Bcast, "binomial", 8, 0, "linear", nil, panelOptions, false},
	{"exchange-cube-8", sched.AllReduce, "recursive-doubling", 8, 0, "hypercube", nil, NetworkOptions{}, false},
	{"exchange-cube-8-steps", sched.AllReduce, "recursive-doubling", 8, 0, "hypercube", nil, panelOptions, false},
	{"ring-allgather", sched.AllGather, "ring", 8, 0, "ring", nil, NetworkOptions{}, false},
	{"tree-7-full", sched.Reduce, "tree", 7, 0, "full", nil, NetworkOptions{}, false},
	{"butterfly-7-ring", sched.AllReduce, "butterfly", 7, 0, "ring", nil, NetworkOptions{}, false},
	{"butterfly-5-star", sched.AllReduce, "butterfly", 5, 0, "star", nil, NetworkOptions{}, false},
	{"alltoall-torus", sched.AllToAll, "pairwise", 9, 0, "torus:3x3", nil, NetworkOptions{}, true},
	{"allreduce-tree", sched.AllReduce, "recursive-doubling", 8, 0, "tree", nil, panelOptions, false},
	{"bcast-4cube", sched.Bcast, "binomial", 16, 5, "hypercube", nil, NetworkOptions{}, false},
	{"bcast-5cube", sched.Bcast, "binomial", 32, 0, "hypercube", nil, NetworkOptions{}, false},
	{"allreduce-fattree", sched.AllReduce, "recursive-doubling", 16, 0, "fattree:k=4", nil, panelOptions, false},
	{"bcast-dragonfly", sched.Bcast, "binomial", 12, 0, "dragonfly:2,2,1", nil, NetworkOptions{}, false},
	{"bcast-mesh3", sched.Bcast, "binomial", 27, 0, "mesh:3x3x3", nil, NetworkOptions{}, true},
	{"bcast-graph", sched.Bcast, "binomial", 10, 0, "a graph", nil, NetworkOptions{}, false},
	{"halving-square", sched.AllReduce, "recursive-halving", 4, 0, "hypercube", nil, NetworkOptions{Blocks: true}, false},
	{"alone", sched.Bcast, "binomial", 1, 0, "ring", nil, panelOptions, false},
}

func TestNetworksMatchTheGoldenFiles(t *testing.T) {
	show := func(t *testing.T, name string, s Scene, o NetworkOptions) {
		var b bytes.Buffer
		if err := Network(&b, s, o); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.String())
		golden(t, "network/"+name+".svg", b.Bytes())
	}
	for _, c := range networkCases {
		t.Run(c.name, func(t *testing.T) { show(t, c.name, c.scene(t), c.options) })
	}
	t.Run("matvec", func(t *testing.T) { show(t, "matvec", matvec(t, 4), NetworkOptions{}) })
	t.Run("matvec-steps", func(t *testing.T) { show(t, "matvec-steps", matvec(t, 4), panelOptions) })
}

func BenchmarkNetwork(b *testing.B) {
	for _, c := range []networkCase{
		{"mesh-64", sched.AllReduce, "recursive-doubling", 64, 0, "mesh:8x8", nil, panelOptions, false},
		{"cube-32", sched.AllReduce, "recursive-doubling", 32, 0, "hypercube", nil, NetworkOptions{}, false},
	} {
		s := c.scene(b)
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := Network(io.Discard, s, c.options); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
