package topo

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func written(t *testing.T, text string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "net.txt")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// petersen is regular, and neither a grid nor a tree.
const petersen = `# the Petersen graph
0 1
1 2
2 3
3 4
4 0   # the outer ring

0 5
1 6
2 7
3 8
4 9
5 7
7 9
9 6
6 8
8 5
`

func TestAGraphIsReadFromAFile(t *testing.T) {
	name := written(t, petersen)
	top := parsed(t, name, 10)
	if top.String() != name || top.Processors() != 10 || top.Switches() != 0 || top.LinkCount() != 15 || top.Diameter() != 2 || top.Ports() != 3 {
		t.Errorf("%v: %d processors, %d links, diameter %d, %d ports", top, top.Processors(), top.LinkCount(), top.Diameter(), top.Ports())
	}
	if _, known := top.Bisection(); known {
		t.Error("the bisection width of a graph is known")
	}
	if lone := parsed(t, written(t, "# nothing\n"), 1); lone.LinkCount() != 0 || lone.Diameter() != 0 {
		t.Error("one processor needs no links")
	}
}

func TestAFileThatIsNoNetworkIsRefusedWithItsLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0 1\n1\n", `:2: found "1", want two vertices, as in 0 1`},
		{"0 1 2\n", `:1: found "0 1 2", want two vertices, as in 0 1`},
		{"0 1\n\n# so\n1 ?\n", `:4: found "?", want a processor from 0 to 3, or a switch's name`},
		{"0 -1\n", `:1: found "-1", want a processor from 0 to 3, or a switch's name`},
		{"0 4\n", `:1: found "4", want a processor from 0 to 3, or a switch's name`},
		{"0 1\n2 2\n", `:2: 2 is linked to itself: want two vertices`},
		{"0 s\ns s\n", `:2: s is linked to itself: want two vertices`},
		{"0 1\n1 2\n1 0\n", `:3: 1 and 0 are linked already, on line 1`},
		{"0 s\n1 t\ns 0\n", `:3: s and 0 are linked already, on line 1`},
		{"", ` has 1 processors: want 4, one for each rank`},
		{"0 1\n1 2\n", ` has 3 processors: want 4, one for each rank`},
		{"0 s\n1 s\ns t\n", ` has 2 processors: want 4, one for each rank`},
		{"0 1\n2 3\n", ` has 2 links: want 3 or more, to connect 4 vertices`},
		{"0 1\n1 3\n3 0\n", `: no path leads from 0 to 2: want a connected graph`},
		{"0 1\n1 2\n2 3\n3 0\ns t\n", `: no path leads from 0 to s: want a connected graph`},
		{"0 1\n" + strings.Repeat("#", 1<<17), `:2: bufio.Scanner: token too long`},
	} {
		name := written(t, c.text)
		_, err := Parse(name, 4)
		if want := "topology " + name + c.want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestLinksThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []struct {
		p        int
		switches []string
		links    [][2]int
		want     string
	}{
		{0, nil, nil, "net of 0 processors: want 1 or more"},
		{2, nil, [][2]int{{0, -1}}, "net: there is no vertex -1: want 0 to 1"},
		{2, []string{"s"}, [][2]int{{0, 3}}, "net: there is no vertex 3: want 0 to 2"},
		{3, nil, [][2]int{{0, 1}}, "net has 1 links: want 2 or more, to connect 3 vertices"},
		{2, nil, [][2]int{{0, 1}, {1, 0}}, "net: 0 and 1 are linked twice"},
		{2, []string{"s"}, [][2]int{{0, 1}, {1, 2}, {2, 1}}, "net: 1 and s are linked twice"},
		{2, nil, [][2]int{{0, 1}, {1, 1}}, "net: 1 is linked to itself: want two vertices"},
		{2, []string{"s", "s"}, nil, `net: a switch "s": want a name of its own that begins with a letter`},
		{2, []string{"7"}, nil, `net: a switch "7": want a name of its own that begins with a letter`},
	} {
		if _, err := NewGraph("net", c.p, c.switches, c.links); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestAGraphMayHaveSwitches(t *testing.T) {
	// Two racks of two, and a processor that others are reached through.
	top := parsed(t, written(t, "0 rack1\n1 rack1\n2 rack2\n3 rack2\nrack1 spine\nrack2 spine\n3 4\n"), 5)
	if top.Processors() != 5 || top.Switches() != 3 || top.LinkCount() != 7 || top.Diameter() != 5 || top.Ports() != 2 {
		t.Errorf("%d processors, %d switches, %d links, diameter %d, %d ports",
			top.Processors(), top.Switches(), top.LinkCount(), top.Diameter(), top.Ports())
	}
	if got, want := names(top, 0, 4), "0→rack1 rack1→spine spine→rack2 rack2→3 3→4"; got != want {
		t.Errorf("from 0 to 4: %s, want %s", got, want)
	}
	if got := top.Name(6); got != "rack2" {
		t.Errorf("vertex 6 is %s, want rack2", got)
	}
}

func TestAGraphRouteTakesTheLowestNeighborOfThoseThatAreNearer(t *testing.T) {
	// A square and a tail: two ways from 0 to 3, and back.
	top, err := NewGraph("square", 5, nil, [][2]int{{3, 2}, {0, 2}, {1, 0}, {3, 1}, {4, 3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{0, 3, "0→1 1→3"}, {3, 0, "3→1 1→0"}, {1, 2, "1→0 0→2"}, {0, 4, "0→1 1→3 3→4"}, {2, 2, ""},
	} {
		if got := names(top, c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

func TestGraphRoutesAreShortestOnRandomGraphs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 40; n += 3 {
		var links [][2]int
		for v := 1; v < n; v++ {
			links = append(links, [2]int{random.IntN(v), v})
		}
		for range n {
			a, b := random.IntN(n), random.IntN(n)
			taken := slices.Contains(links, [2]int{a, b}) || slices.Contains(links, [2]int{b, a})
			if a != b && !taken {
				links = append(links, [2]int{a, b})
			}
		}
		top, err := NewGraph("random", n, nil, links)
		if err != nil {
			t.Fatal(err)
		}
		far := 0
		for from := range n {
			hops := distances(top, from)
			for to := range n {
				route := Route(top, from, to)
				if follow(t, top, from, route) != to || len(route) != hops[to] {
					t.Fatalf("%d processors: the route from %d to %d is %v, the distance %d", n, from, to, route, hops[to])
				}
				far = max(far, hops[to])
			}
		}
		if far != top.Diameter() {
			t.Errorf("%d processors: diameter %d, greatest distance %d", n, top.Diameter(), far)
		}
	}
}

func TestManyGoroutinesAskOneGraph(t *testing.T) {
	top := parsed(t, written(t, petersen), 10)
	want := names(top, 0, 8)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if got := names(top, 0, 8); got != want {
					t.Errorf("from 0 to 8: %s, want %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}
