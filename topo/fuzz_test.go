package topo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/topo"
)

// A text that parses is a network that keeps what the interface promises: every route
// leads from one processor to another over links that exist. Its name parses to the
// same network.
func FuzzTopology(f *testing.F) {
	for _, form := range topo.Forms() {
		for _, p := range []int{1, 2, 16, 40, 512} {
			f.Add(form, p)
		}
	}
	f.Add("mesh:4294967296x4294967296", 16)
	f.Add("torus:1x1x1x1x1x16", 16)
	f.Add("fattree:k=2097152", 1<<40)
	f.Add("dragonfly:9223372036854775807,2,2", 1)
	f.Fuzz(func(t *testing.T, spec string, p int) {
		name, _, _ := strings.Cut(spec, ":")
		if !slices.ContainsFunc(topo.Forms(), func(form string) bool { return form == name || strings.HasPrefix(form, name+":") }) {
			return // a file
		}
		n, err := topo.Parse(spec, p)
		if err != nil {
			oneLine(t, err)
			return
		}
		again, err := topo.Parse(n.String(), p)
		if err != nil || again.String() != n.String() || again.LinkCount() != n.LinkCount() {
			t.Errorf("%v of %d: %v, %v", n, p, again, err)
		}
		travels(t, n)
	})
}

// The same for a list of links.
func FuzzGraph(f *testing.F) {
	f.Add("0 1\n1 2\n2 0\n", 3)
	f.Add("0 rack1 # a switch\n1 rack1\n2 rack2\n3 rack2\nrack1 spine\nrack2 spine\n", 4)
	f.Add("0 0", 1)
	f.Add("", 1)
	f.Add("0 99999999999999999999", 2)
	f.Add("0 a\n1 a\n1 A\nA a\n", 2)
	f.Fuzz(func(t *testing.T, list string, p int) {
		if p > 1<<12 {
			return // the time of a route is linear in the graph
		}
		g, err := topo.ReadGraph(strings.NewReader(list), "graph", p)
		if err != nil {
			oneLine(t, err)
			return
		}
		travels(t, g)
	})
}

// A text that parses puts every rank on a processor of its own.
func FuzzPlacement(f *testing.F) {
	for _, text := range []string{"identity", "row-major", "column-major", "gray", "gray:4x4", "column-major:2x8", "random:7", "2,0,1", "0,0", "gray:9223372036854775807x2"} {
		f.Add(text, 4, 4)
	}
	f.Fuzz(func(t *testing.T, text string, rows, columns int) {
		if min(rows, columns) < 1 || rows > 1<<8 || columns > 1<<8 {
			return
		}
		mesh, err := topo.NewMesh(rows, columns)
		if err != nil {
			t.Fatal(err)
		}
		placement, err := topo.ParsePlacement(text, mesh)
		if err != nil {
			oneLine(t, err)
			return
		}
		taken := make([]bool, mesh.Processors())
		for rank, at := range placement {
			if at < 0 || at >= len(taken) || taken[at] {
				t.Fatalf("%q: rank %d on processor %d of %d", text, rank, at, len(taken))
			}
			taken[at] = true
		}
		if len(placement) != len(taken) {
			t.Fatalf("%q places %d ranks on %d processors", text, len(placement), len(taken))
		}
	})
}

func oneLine(t *testing.T, err error) {
	if text := err.Error(); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the error %q is not one line", text)
	}
}

// travels follows routes between some of the processors.
func travels(t *testing.T, n topo.Topology) {
	p := n.Processors()
	if p > 1<<12 {
		return
	}
	longest := n.Diameter()
	for _, pair := range [][2]int{{0, p - 1}, {p - 1, 0}, {p / 2, p / 3}, {0, 0}} {
		at := pair[0]
		route := n.AppendRoute(nil, pair[0], pair[1])
		for _, link := range route {
			if link < 0 || int(link) >= 2*n.LinkCount() {
				t.Fatalf("%v: %v takes link %d of %d", n, pair, link, 2*n.LinkCount())
			}
			from, to := n.Ends(int(link))
			if from != at || to < 0 || to >= p+n.Switches() {
				t.Fatalf("%v: %v is at %d and takes a link from %d to %d", n, pair, at, from, to)
			}
			at = to
		}
		if at != pair[1] || len(route) > longest {
			t.Fatalf("%v: %v ends at %d after %d links of %d", n, pair, at, len(route), longest)
		}
	}
}
