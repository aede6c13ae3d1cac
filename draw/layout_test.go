package draw

import (
	"testing"

	"github.com/chorale-go/chorale/topo"
)

// The graph of the tests: the Petersen graph with two switches.
var (
	switches = []string{"east", "west"}
	links    = [][2]int{{0, 10}, {10, 11}, {11, 9}}
)

func init() {
	for i := range 5 {
		links = append(links, [2]int{i, (i + 1) % 5}, [2]int{i, i + 5}, [2]int{i + 5, (i+2)%5 + 5})
	}
}

func mustTopology(t testing.TB, spec string, p int) topo.Topology {
	t.Helper()
	if spec == "a graph" {
		g, err := topo.NewGraph(spec, p, switches, links)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	top, err := topo.Parse(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// networks are the cases of all layout tests, awkward sizes first.
var networks = []struct {
	spec string
	p    int
}{
	{"linear", 1}, {"ring", 1}, {"ring", 2}, {"ring", 3}, {"full", 1}, {"star", 1}, {"tree", 1}, {"hypercube", 1}, {"mesh:1x1", 1},
	{"linear", 5}, {"linear", 8}, {"ring", 7}, {"ring", 8}, {"ring", 17}, {"ring", 64}, {"full", 2}, {"full", 5}, {"full", 16},
	{"star", 7}, {"star", 16}, {"tree", 2}, {"tree", 8}, {"tree", 16}, {"tree", 64},
	{"mesh:1x5", 5}, {"mesh:5x1", 5}, {"mesh:4x4", 16}, {"mesh:3x5", 15}, {"mesh:8x8", 64}, {"mesh:2x2x2", 8}, {"mesh:3x3x3", 27}, {"mesh:4x4x4", 64}, {"mesh:2x3x2x3", 36},
	{"torus:4x4", 16}, {"torus:3x5", 15}, {"torus:2x4", 8}, {"torus:3x3x3", 27}, {"torus:8x8", 64}, {"torus:2x2x2x2", 16},
	{"hypercube", 2}, {"hypercube", 4}, {"hypercube", 8}, {"hypercube", 16}, {"hypercube", 32},
	{"fattree:k=2", 2}, {"fattree:k=4", 16}, {"fattree:k=6", 54}, {"dragonfly:1,1,1", 2}, {"dragonfly:2,2,1", 12}, {"dragonfly:3,1,2", 21}, {"dragonfly:4,2,1", 40},
	{"hosts:1x1", 1}, {"hosts:2x4", 8}, {"hosts:3+2x4", 11}, {"hosts:4x8,links=2", 32}, {"hosts:8x1", 8},
	{"a graph", 10},
}

func TestEveryLinkIsOneEdgeBetweenItsEnds(t *testing.T) {
	for _, n := range networks {
		top := mustTopology(t, n.spec, n.p)
		l := newLayout(top)
		if len(l.at) != top.Processors()+top.Switches() || len(l.edges) != top.LinkCount() {
			t.Errorf("%v of %d: %d vertices and %d edges", top, n.p, len(l.at), len(l.edges))
		}
		for _, e := range l.edges {
			for i, link := range []int{e.forward, e.backward} {
				a, b := top.Ends(link)
				if i == 1 {
					a, b = b, a
				}
				if a != e.a || b != e.b || e.curve[0] != l.at[a] || e.curve[3] != l.at[b] {
					t.Errorf("%v of %d: the edge of link %s is not between its ends", top, n.p, topo.LinkName(top, link))
				}
			}
		}
	}
}

func TestNodesDoNotOverlapAndEdgesCrossNoOtherNode(t *testing.T) {
	for _, n := range networks {
		top := mustTopology(t, n.spec, n.p)
		l := newLayout(top)
		for v, p := range l.at {
			if p.x < l.radiusOf(v) || p.y < l.radiusOf(v) || p.x > l.width-l.radiusOf(v) || p.y > l.height-l.radiusOf(v) {
				t.Errorf("%v of %d: %s is outside", top, n.p, top.Name(v))
			}
			for u, q := range l.at[:v] {
				if p.distance(q) < l.radiusOf(v)+l.radiusOf(u)+2 {
					t.Errorf("%v of %d: %s lies on %s", top, n.p, top.Name(v), top.Name(u))
				}
			}
			for _, e := range l.edges {
				for i := range 201 {
					if at := e.curve.at(float64(i) / 200); v != e.a && v != e.b && at.distance(p) < l.radiusOf(v)+2 {
						t.Errorf("%v of %d: the edge %s crosses %s", top, n.p, topo.LinkName(top, e.forward), top.Name(v))
						break
					}
				}
			}
		}
	}
}

func TestTheCubeIsThatOfTheTextbook(t *testing.T) {
	l := newLayout(mustTopology(t, "hypercube", 8))
	for v, p := range l.at {
		if v&1 == 0 && l.at[v|1].x <= p.x {
			t.Errorf("%d is not right of %d", v|1, v)
		}
		if v&2 == 0 && l.at[v|2].y >= p.y {
			t.Errorf("%d is not above %d", v|2, v)
		}
		if q := l.at[v|4]; v&4 == 0 && (q.x <= p.x || q.y >= p.y) {
			t.Errorf("%d is not behind %d", v|4, v)
		}
	}
}
