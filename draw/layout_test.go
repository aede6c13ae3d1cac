package draw

import (
	"testing"

	"github.com/chorale-go/chorale/topo"
)

// The graph of the tests: that of Petersen, and two switches.
var (
	switches = []string{"east", "west"}
	links    = [][2]int{{0, 10}, {10, 11}, {11, 9}}
)

func init() {
	for i := range 5 {
		links = append(links, [2]int{i, (i + 1) % 5}, [2]int{i, i + 5}, [2]int{i + 5, (i+2)%5 + 5})
	}
}

func parsed(t testing.TB, spec string, p int) topo.Topology {
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

// networks are those of every test of layouts; awkward ones come first.
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
	{"a graph", 10},
}

func TestEveryLinkIsOneWireBetweenItsEnds(t *testing.T) {
	for _, n := range networks {
		top := parsed(t, n.spec, n.p)
		l := layout(top)
		if len(l.at) != top.Processors()+top.Switches() || len(l.wires) != top.LinkCount() {
			t.Errorf("%v of %d: %d places and %d wires", top, n.p, len(l.at), len(l.wires))
		}
		for _, w := range l.wires {
			for i, link := range []int{w.there, w.back} {
				a, b := top.Ends(link)
				if i == 1 {
					a, b = b, a
				}
				if a != w.a || b != w.b || w.curve[0] != l.at[a] || w.curve[3] != l.at[b] {
					t.Errorf("%v of %d: the wire of link %s is not between its ends", top, n.p, topo.LinkName(top, link))
				}
			}
		}
	}
}

func TestNoTwoNodesOverlapAndNoWireCrossesANodeThatIsNotItsEnd(t *testing.T) {
	for _, n := range networks {
		top := parsed(t, n.spec, n.p)
		l := layout(top)
		for v, p := range l.at {
			if p.x < l.size(v) || p.y < l.size(v) || p.x > l.width-l.size(v) || p.y > l.height-l.size(v) {
				t.Errorf("%v of %d: %s is outside", top, n.p, top.Name(v))
			}
			for u, q := range l.at[:v] {
				if p.distance(q) < l.size(v)+l.size(u)+2 {
					t.Errorf("%v of %d: %s lies on %s", top, n.p, top.Name(v), top.Name(u))
				}
			}
			for _, w := range l.wires {
				for i := range 201 {
					if at := w.curve.at(float64(i) / 200); v != w.a && v != w.b && at.distance(p) < l.size(v)+2 {
						t.Errorf("%v of %d: the wire %s runs over %s", top, n.p, topo.LinkName(top, w.there), top.Name(v))
						break
					}
				}
			}
		}
	}
}

func TestTheCubeIsThatOfTheTextbook(t *testing.T) {
	l := layout(parsed(t, "hypercube", 8))
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
