package topo

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
)

// A network is one topology of the shared table of cases.
type network struct {
	spec string
	p    int
}

func (n network) String() string { return fmt.Sprintf("%s of %d", n.spec, n.p) }

// networks are small enough to ask for every pair; awkward sizes come first.
var networks = func() (all []network) {
	for _, p := range []int{1, 2, 3, 5, 7, 8, 12, 15, 16, 17, 31, 33} {
		for _, spec := range []string{"linear", "ring", "star", "full"} {
			all = append(all, network{spec, p})
		}
	}
	for d := range 7 {
		all = append(all, network{"hypercube", 1 << d}, network{"tree", 1 << d})
	}
	for _, dims := range []string{"1x1", "1x5", "5x1", "2x2", "2x3", "3x2", "3x3", "4x4", "5x7", "8x2", "1x2x1", "2x2x2", "3x1x4", "3x4x5", "4x4x4", "2x3x2x3"} {
		p := 1
		for word := range strings.SplitSeq(dims, "x") {
			n := 0
			fmt.Sscan(word, &n)
			p *= n
		}
		all = append(all, network{"mesh:" + dims, p}, network{"torus:" + dims, p})
	}
	for _, c := range []struct{ a, p, h int }{
		{1, 1, 1}, {1, 2, 2}, {1, 3, 3}, {1, 1, 5}, {2, 1, 1}, {2, 2, 1}, {3, 1, 1}, {3, 2, 2}, {2, 1, 3}, {4, 2, 2},
	} {
		all = append(all, network{fmt.Sprintf("dragonfly:%d,%d,%d", c.a, c.p, c.h), c.a * c.p * (c.a*c.h + 1)})
	}
	for _, k := range []int{2, 4, 6} {
		all = append(all, network{fmt.Sprintf("fattree:k=%d", k), k * k * k / 4})
	}
	for spec, p := range map[string]int{
		"hosts:1x1": 1, "hosts:1x5": 5, "hosts:5x1": 5, "hosts:2x4": 8, "hosts:3x3": 9, "hosts:4x2": 8, "hosts:3x2": 6, "hosts:4x8": 32,
		"hosts:3+2x4": 11, "hosts:1+7": 8, "hosts:2x4,links=2": 8, "hosts:3x3,links=2": 9, "hosts:2x2,links=3": 4, "hosts:4+2,links=3": 6,
	} {
		all = append(all, network{spec, p})
	}
	return all
}()

func parsed(t *testing.T, spec string, p int) Topology {
	t.Helper()
	top, err := Parse(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// onEach runs a claim on every network of the table.
func onEach(t *testing.T, claim func(t *testing.T, top Topology)) {
	for _, n := range networks {
		t.Run(n.String(), func(t *testing.T) { claim(t, parsed(t, n.spec, n.p)) })
	}
}

func TestEveryLinkHasAnotherInTheOtherDirectionAndNoSecond(t *testing.T) {
	onEach(t, func(t *testing.T, top Topology) {
		seen := map[[2]int]int{}
		for l := range 2 * top.LinkCount() {
			from, to := top.Ends(l)
			if n := top.Processors() + top.Switches(); from < 0 || to < 0 || from >= n || to >= n || from == to {
				t.Fatalf("link %d leads from %d to %d of %d vertices", l, from, to, n)
			}
			if first, ok := seen[[2]int{from, to}]; ok {
				t.Fatalf("links %d and %d both lead from %d to %d", first, l, from, to)
			}
			seen[[2]int{from, to}] = l
		}
		for ends := range seen {
			if _, ok := seen[[2]int{ends[1], ends[0]}]; !ok {
				t.Errorf("a link leads from %d to %d and none back", ends[0], ends[1])
			}
		}
	})
}

func TestARouteIsAPathAndNoneIsShorter(t *testing.T) {
	onEach(t, func(t *testing.T, top Topology) {
		for from := range top.Processors() {
			hops := distances(top, from) // dragonflies have a claim of their own
			for to := range top.Processors() {
				route := Route(top, from, to)
				if end := follow(t, top, from, route); end != to {
					t.Fatalf("the route from %d to %d ends at %d", from, to, end)
				}
				if _, ok := top.(*Dragonfly); !ok && len(route) != hops[to] {
					t.Fatalf("the route from %d to %d has %d links, the shortest path %d", from, to, len(route), hops[to])
				}
			}
		}
	})
}

// follow walks a route, which must be connected.
func follow(t *testing.T, top Topology, at int, route []int) int {
	t.Helper()
	for i, l := range route {
		from, to := top.Ends(l)
		if from != at {
			t.Fatalf("hop %d of %v starts at %d, not at %d", i, route, from, at)
		}
		at = to
	}
	return at
}

// distances is the slow and plain way to know how far everything is.
func distances(top Topology, from int) []int {
	next := neighbors(top)
	hops := make([]int, len(next))
	for i := range hops {
		hops[i] = -1
	}
	hops[from] = 0
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, v := range next[queue[0]] {
			if hops[v] < 0 {
				hops[v] = hops[queue[0]] + 1
				queue = append(queue, v)
			}
		}
	}
	return hops
}

// A part is a topology without the links at some vertices.
type part struct {
	Topology
	keep func(v int) bool
}

func neighbors(top Topology) [][]int {
	next := make([][]int, top.Processors()+top.Switches())
	for l := range 2 * top.LinkCount() {
		from, to := top.Ends(l)
		if p, ok := top.(*part); ok && !(p.keep(from) && p.keep(to)) {
			continue
		}
		next[from] = append(next[from], to)
	}
	return next
}

func TestTheDiameterIsTheGreatestDistanceBetweenProcessors(t *testing.T) {
	onEach(t, func(t *testing.T, top Topology) {
		far := 0
		for from := range top.Processors() {
			for _, h := range distances(top, from)[:top.Processors()] {
				far = max(far, h)
			}
		}
		if far != top.Diameter() {
			t.Errorf("diameter %d, greatest distance %d", top.Diameter(), far)
		}
	})
}

func TestPortsAreTheMostLinksOfAProcessor(t *testing.T) {
	onEach(t, func(t *testing.T, top Topology) {
		most := 0
		for _, next := range neighbors(top)[:top.Processors()] {
			most = max(most, len(next))
		}
		if most != top.Ports() {
			t.Errorf("%d ports, a processor with %d links", top.Ports(), most)
		}
	})
}

func TestNoCutIntoHalvesIsNarrowerThanTheBisectionWidth(t *testing.T) {
	onEach(t, func(t *testing.T, top Topology) {
		width, known := top.Bisection()
		n := top.Processors() + top.Switches()
		if !known || n > 18 {
			t.Skip("too many halves to try")
		}
		masks := make([]uint, n)
		for v, next := range neighbors(top) {
			for _, w := range next {
				masks[v] |= 1 << w
			}
		}
		least := top.LinkCount()
		processors := uint(1)<<top.Processors() - 1
		for half := range uint(1) << n {
			if bits.OnesCount(half&processors) != top.Processors()/2 {
				continue
			}
			cut := 0
			for v := range n {
				if half>>v&1 == 1 {
					cut += bits.OnesCount(masks[v] &^ half)
				}
			}
			least = min(least, cut)
		}
		if least != width {
			t.Errorf("bisection width %d, narrowest cut %d", width, least)
		}
	})
}

func TestFiguresAreThoseOfTheTextbook(t *testing.T) {
	type row struct {
		spec                           string
		p                              int
		diameter, bisection, links, of int // of: ports
	}
	var rows []row
	for _, p := range []int{3, 4, 5, 16, 17, 64, 1000} {
		rows = append(rows,
			row{"linear", p, p - 1, 1, p - 1, 2},
			row{"ring", p, p / 2, 2, p, 2},
			row{"star", p, 2, p / 2, p, 1},
			row{"full", p, 1, p / 2 * (p - p/2), p * (p - 1) / 2, p - 1})
		if p%2 == 0 && rows[len(rows)-1].bisection != p*p/4 {
			t.Fatalf("the rows of this test are wrong")
		}
	}
	for _, s := range []int{4, 6, 8, 32} { // even sides: the textbook's √p
		p := s * s
		rows = append(rows,
			row{fmt.Sprintf("mesh:%dx%d", s, s), p, 2 * (s - 1), s, 2 * (p - s), 4},
			row{fmt.Sprintf("torus:%dx%d", s, s), p, 2 * (s / 2), 2 * s, 2 * p, 4},
			row{fmt.Sprintf("mesh:%dx%dx%d", s, s, s), s * p, 3 * (s - 1), p, 3 * (s*p - p), 6},
			row{fmt.Sprintf("torus:%dx%dx%d", s, s, s), s * p, 3 * (s / 2), 2 * p, 3 * s * p, 6})
	}
	for _, k := range []int{4, 8, 16, 48} {
		rows = append(rows, row{fmt.Sprintf("fattree:k=%d", k), k * k * k / 4, 6, k * k * k / 8, 3 * k * k * k / 4, 1})
	}
	for _, h := range []int{1, 3, 5, 16} { // balanced, a = 2p = 2h, as the paper has it
		a, p, g := 2*h, h, 2*h*h+1
		rows = append(rows, row{fmt.Sprintf("dragonfly:%d,%d,%d", a, p, h), a * p * g, 5, g / 2 * ((g + 1) / 2), a*p*g + g*a*(a-1)/2 + g*(g-1)/2, 1})
	}
	for _, h := range []int{2, 4, 8, 64} {
		rows = append(rows,
			row{fmt.Sprintf("hosts:%dx16", h), 16 * h, 4, h / 2, 17 * h, 1},
			row{fmt.Sprintf("hosts:%dx16,links=4", h), 16 * h, 4, 2 * h, 20 * h, 1})
	}
	for d := 1; d <= 20; d++ {
		p := 1 << d
		n := 2*p - 1 // the tree's vertices
		rows = append(rows,
			row{"hypercube", p, d, p / 2, p * d / 2, d},
			row{"tree", p, 2 * (bits.Len(uint(n+1)/2) - 1), 1, n - 1, 1})
	}
	for _, r := range rows {
		top := parsed(t, r.spec, r.p)
		width, _ := top.Bisection()
		got := row{r.spec, top.Processors(), top.Diameter(), width, top.LinkCount(), top.Ports()}
		if got != r {
			t.Errorf("got  %+v\nwant %+v", got, r)
		}
	}
}

func TestARouteIntoARoomySliceAllocatesNothing(t *testing.T) {
	for _, n := range []network{
		{"linear", 100}, {"ring", 100}, {"mesh:10x10", 100}, {"torus:5x5x4", 100},
		{"hypercube", 1 << 20}, {"tree", 1 << 20}, {"star", 100}, {"full", 100},
		{"fattree:k=16", 1024}, {"dragonfly:4,2,2", 72}, {"hosts:10x10,links=2", 100},
	} {
		top := parsed(t, n.spec, n.p)
		dst := make([]int32, 0, top.Diameter())
		from := 0
		allocs := testing.AllocsPerRun(100, func() {
			dst = top.AppendRoute(dst[:0], from%n.p, (7*from+3)%n.p)
			from++
		})
		if allocs != 0 {
			t.Errorf("%v: %v allocations", n, allocs)
		}
	}
}

func TestRoutesGoWhereTheyAreSaidToGo(t *testing.T) {
	for _, c := range []struct {
		spec     string
		p        int
		from, to int
		want     string
	}{
		{"linear", 8, 5, 3, "5→4 4→3"},
		{"ring", 8, 1, 7, "1→0 0→7"},
		{"ring", 8, 6, 2, "6→7 7→0 0→1 1→2"}, // as far either way: up
		{"ring", 8, 2, 6, "2→3 3→4 4→5 5→6"},
		{"ring", 2, 1, 0, "1→0"},
		{"mesh:4x4", 16, 0, 10, "0→1 1→2 2→6 6→10"}, // along the row, then the column
		{"mesh:4x4", 16, 10, 0, "10→9 9→8 8→4 4→0"},
		{"torus:4x4", 16, 0, 15, "0→3 3→15"},
		{"mesh:2x2x2", 8, 0, 7, "0→1 1→3 3→7"},
		{"hypercube", 8, 0, 7, "0→1 1→3 3→7"}, // the lowest bit first
		{"hypercube", 8, 5, 2, "5→4 4→6 6→2"},
		{"tree", 8, 2, 3, "2→s2-3 s2-3→3"},
		{"tree", 8, 0, 5, "0→s0-1 s0-1→s0-3 s0-3→s0-7 s0-7→s4-7 s4-7→s4-5 s4-5→5"},
		{"fattree:k=4", 16, 0, 1, "0→edge0.0 edge0.0→1"},
		{"fattree:k=4", 16, 0, 3, "0→edge0.0 edge0.0→agg0.1 agg0.1→edge0.1 edge0.1→3"},
		{"fattree:k=4", 16, 0, 6, "0→edge0.0 edge0.0→agg0.0 agg0.0→core1 core1→agg1.0 agg1.0→edge1.1 edge1.1→6"},
		{"dragonfly:2,1,1", 6, 0, 5, "0→r0.0 r0.0→r0.1 r0.1→r2.0 r2.0→r2.1 r2.1→5"},
		{"dragonfly:2,1,1", 6, 0, 3, "0→r0.0 r0.0→r1.1 r1.1→3"},
		{"star", 5, 4, 0, "4→s s→0"},
		{"hosts:2x4", 8, 0, 3, "0→host0 host0→3"},
		{"hosts:2x4", 8, 3, 4, "3→host0 host0→net net→host1 host1→4"},
		{"hosts:3+5", 8, 7, 2, "7→host1 host1→net net→host0 host0→2"},
		{"hosts:2x4,links=2", 8, 1, 4, "1→host0 host0→net1 net1→host1 host1→4"}, // the sender's position names the network
		{"hosts:2x4,links=2", 8, 6, 1, "6→host1 host1→net0 net0→host0 host0→1"},
		{"full", 5, 4, 0, "4→0"},
		{"full", 5, 3, 3, ""},
	} {
		if got := names(parsed(t, c.spec, c.p), c.from, c.to); got != c.want {
			t.Errorf("%s of %d, from %d to %d: %s, want %s", c.spec, c.p, c.from, c.to, got, c.want)
		}
	}
}

func names(top Topology, from, to int) string {
	var words []string
	for _, l := range Route(top, from, to) {
		words = append(words, LinkName(top, l))
	}
	return strings.Join(words, " ")
}

func TestADragonflyRouteIsTheShortestThatChangesGroupsAtMostOnce(t *testing.T) {
	onEach(t, func(t *testing.T, top Topology) {
		d, ok := top.(*Dragonfly)
		if !ok {
			t.Skip("no dragonfly")
		}
		group := func(v int) int {
			if v < d.n {
				v = d.n + v/d.p
			}
			return (v - d.n) / d.a
		}
		// The same network without the groups that a route must not visit.
		for from := range d.n {
			for to := range d.n {
				allowed := &part{Topology: d, keep: func(v int) bool { return group(v) == group(from) || group(v) == group(to) }}
				if got, want := len(Route(d, from, to)), distances(allowed, from)[to]; got != want {
					t.Fatalf("the route from %d to %d has %d links, the shortest %d", from, to, got, want)
				}
			}
		}
	})
}

func TestAHypercubeIsTheMeshOfTwosWithTheSameRoutes(t *testing.T) { // CLAIM G7
	cube := parsed(t, "hypercube", 16)
	for _, spec := range []string{"mesh:2x2x2x2", "torus:2x2x2x2"} {
		mesh := parsed(t, spec, 16)
		for from := range 16 {
			for to := range 16 {
				if a, b := names(cube, from, to), names(mesh, from, to); a != b {
					t.Fatalf("from %d to %d: hypercube %s, %s %s", from, to, a, spec, b)
				}
			}
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	for _, n := range []network{
		{"full", 32768}, {"hypercube", 1 << 20}, {"tree", 1 << 20}, {"torus:32x32", 1024}, {"mesh:16x16x16", 4096},
	} {
		top, err := Parse(n.spec, n.p)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(n.String(), func(b *testing.B) {
			dst := make([]int32, 0, top.Diameter())
			hops, at := 0, 0
			for b.Loop() {
				to := (at*5 + 1) & (n.p - 1)
				dst = top.AppendRoute(dst[:0], at, to)
				hops += len(dst)
				at = to
			}
			b.ReportMetric(float64(hops)/float64(b.N), "hops")
		})
	}
}
