package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// An element is an element of an SVG document.
type element struct {
	XMLName  xml.Name
	Class    string    `xml:"class,attr"`
	Stroke   string    `xml:"stroke,attr"`
	Title    string    `xml:"title"`
	Desc     string    `xml:"desc"`
	Text     string    `xml:",chardata"`
	Elements []element `xml:",any"`
}

// all returns the elements of a class, at any depth.
func (e element) all(class string) (found []element) {
	if e.Class == class {
		found = append(found, e)
	}
	for _, inner := range e.Elements {
		found = append(found, inner.all(class)...)
	}
	return found
}

// texts returns the contents of all text elements.
func (e element) texts() (all []string) {
	if e.XMLName.Local == "text" {
		all = append(all, e.Text)
	}
	for _, inner := range e.Elements {
		all = append(all, inner.texts()...)
	}
	return all
}

func drawNetwork(t testing.TB, s Scene, o NetworkOptions) element {
	t.Helper()
	var b bytes.Buffer
	if err := Network(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return parseSVG(t, b.Bytes())
}

func parseSVG(t testing.TB, picture []byte) (e element) {
	t.Helper()
	if err := xml.Unmarshal(picture, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEveryMessageIsAnArrowWithTheNumberOfItsStep(t *testing.T) {
	for _, c := range networkCases {
		s := c.scene(t)
		picture := drawNetwork(t, s, c.options)
		steps := map[string][]int{} // by arrow
		var want []string
		for _, m := range s.Result.Log {
			ends := fmt.Sprintf("rank %d to rank %d", m.From, m.To)
			if c.options != (NetworkOptions{}) {
				want = append(want, fmt.Sprintf("%s in step %d", ends, m.Step+1))
			} else if !slices.Contains(steps[ends], m.Step+1) {
				steps[ends] = append(steps[ends], m.Step+1)
			}
		}
		for ends, all := range steps {
			want = append(want, ends+" in step "+formatRanges(all))
		}
		var got []string
		texts := picture.texts()
		for _, arrow := range picture.all("arrow") {
			got = append(got, arrow.Title)
			number := arrow.Title[strings.LastIndex(arrow.Title, " ")+1:]
			i := slices.Index(texts, number)
			if i < 0 {
				t.Fatalf("%s: no text says %s", c.name, number)
			}
			texts = slices.Delete(texts, i, i+1) // each arrow has its own number
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: arrows are\n%q\nwant\n%q", c.name, got, want)
		}
	}
}

func TestNeitherLabelsNorNodesOverlap(t *testing.T) {
	for _, c := range networkCases {
		if c.crowded {
			continue
		}
		f := &networkFigure{scene: c.scene(t)}
		f.layout = newLayout(f.scene.Result.Config.Topology)
		if err := f.addPanels(c.options); err != nil {
			t.Fatal(err)
		}
		for _, p := range f.panels {
			p.arrange(f)
			for i, l := range p.labels {
				for _, other := range p.labels[:i] {
					if l.bounds().overlaps(other.bounds()) {
						t.Errorf("%s %s: %q lies on %q", c.name, p.caption, l.lines, other.lines)
					}
				}
				for v, at := range f.layout.at {
					if l.bounds().distance(at) < f.layout.radiusOf(v) {
						t.Errorf("%s %s: %q lies on %s", c.name, p.caption, l.lines, f.node(v))
					}
				}
				if p.bounds.union(l.bounds()) != p.bounds {
					t.Errorf("%s %s: %q is cut off", c.name, p.caption, l.lines)
				}
			}
			for i, curve := range p.curves {
				for v, at := range f.layout.at {
					for k := range 101 {
						if v != p.pairs[i][0] && v != p.pairs[i][1] && curve.at(float64(k)/100).distance(at) < f.layout.radiusOf(v)+1 {
							t.Errorf("%s %s: the arrow of %v crosses %s", c.name, p.caption, p.pairs[i], f.node(v))
							break
						}
					}
				}
			}
		}
	}
}

// CLAIM G3
func TestTheLinksThatNearestFirstCongestsAreRedAndNamed(t *testing.T) {
	nearest := networkCase{"", sched.Bcast, "binomial,order=ascending", 8, 0, "linear", nil, panelOptions, false}.scene(t)
	picture := drawNetwork(t, nearest, panelOptions)
	var got []string
	for _, link := range picture.all("congested") {
		got = append(got, link.Title)
		if link.Stroke != red {
			t.Errorf("%s is drawn in %q", link.Title, link.Stroke)
		}
	}
	want := []string{
		"link 1→2: 2 messages at once", // step 2
		"link 1→2: 2 messages at once", "link 2→3: 3 messages at once", "link 3→4: 4 messages at once", "link 4→5: 3 messages at once", "link 5→6: 2 messages at once",
	}
	if !slices.Equal(got, want) {
		t.Errorf("congested are\n%q\nwant\n%q", got, want)
	}
	for _, load := range []string{"×2", "×3", "×4"} {
		if !slices.Contains(picture.texts(), load) {
			t.Errorf("no text says %s", load)
		}
	}
	if want := "Step 2: 0→2, 1→3. Link 1→2 is asked to carry 2 messages."; !strings.Contains(picture.Desc, want) {
		t.Errorf("the description %q does not say %q", picture.Desc, want)
	}

	farthest := networkCase{"", sched.Bcast, "binomial", 8, 0, "linear", nil, panelOptions, false}.scene(t)
	if all := drawNetwork(t, farthest, panelOptions).all("congested"); len(all) > 0 {
		t.Errorf("farthest first congests %q", all[0].Title)
	}
}

func TestNodesOfACubeAreNumberedInBinaryAndSwitchesOfATreeAreSquares(t *testing.T) {
	cube := drawNetwork(t, networkCase{"", sched.Bcast, "binomial", 8, 0, "hypercube", nil, NetworkOptions{}, false}.scene(t), NetworkOptions{})
	for v, node := range cube.all("node") {
		if want := []string{fmt.Sprintf("%03b", v), fmt.Sprint(v)}; !slices.Equal(node.texts(), want) {
			t.Errorf("node %d says %q, want %q", v, node.texts(), want)
		}
	}
	tree := drawNetwork(t, networkCase{"", sched.Bcast, "binomial", 8, 0, "tree", nil, NetworkOptions{}, false}.scene(t), NetworkOptions{})
	if n := len(tree.all("switch")); n != 7 || tree.all("switch")[0].XMLName.Local != "rect" {
		t.Errorf("a tree of 8 leaves has %d switches, want 7 squares", n)
	}
}

func TestNodesFollowThePlacement(t *testing.T) {
	placement := topo.Placement{2, 0, 1}
	s := networkCase{"", sched.Bcast, "linear", 3, 0, "linear", placement, NetworkOptions{}, false}.scene(t)
	picture := drawNetwork(t, s, NetworkOptions{})
	var got []string
	for _, node := range picture.all("node") {
		got = append(got, node.texts()...)
	}
	if want := []string{"1", "2", "0"}; !slices.Equal(got, want) {
		t.Errorf("the ranks from left to right are %q, want %q", got, want)
	}
	if want := "Rank on processor: 0 on 2 1 on 0 2 on 1."; !strings.Contains(picture.Desc, want) {
		t.Errorf("the description %q does not say %q", picture.Desc, want)
	}
}

func TestProcessorsWithoutARankAreEmpty(t *testing.T) {
	cube := mustTopology(t, "hypercube", 4)
	s := simulate(t, "", cube, nil, sim.Part{Schedule: mustSchedule(t, sched.Bcast, "binomial", 3, 0), Words: 1})
	var got []string
	for _, node := range drawNetwork(t, s, NetworkOptions{Blocks: true}).all("node")[:4] {
		got = append(got, strings.Join(node.texts(), " "))
	}
	if want := []string{"00 0", "01 1", "10 2", "11"}; !slices.Equal(got, want) {
		t.Errorf("the nodes say %q, want %q", got, want)
	}
}

// CLAIM S1
func TestNodesShowTheirContents(t *testing.T) {
	o := NetworkOptions{Blocks: true}
	picture := drawNetwork(t, networkCase{"", sched.Scatter, "binomial", 8, 0, "hypercube", nil, o, false}.scene(t), o)
	for _, want := range []string{
		"Before step 1: rank 0 holds (0–7).",
		"Before step 2: rank 0 holds (0–3); rank 4 holds (4–7).",
		"Before step 3: rank 0 holds (0,1); rank 2 holds (2,3); rank 4 holds (4,5); rank 6 holds (6,7).",
		"At the end: rank 0 holds (0); rank 1 holds (1); rank 2 holds (2); rank 3 holds (3);",
	} {
		if !strings.Contains(picture.Desc, want) {
			t.Errorf("the description %q does not say %q", picture.Desc, want)
		}
	}
}

// CLAIM V3
func TestNodesGroupBlocksWithEqualContents(t *testing.T) {
	o := NetworkOptions{Blocks: true}
	picture := drawNetwork(t, networkCase{"", sched.AllReduce, "recursive-halving", 4, 0, "hypercube", nil, o, false}.scene(t), o)
	for _, want := range []string{
		"Before step 1: rank 0 holds 0; rank 1 holds 1;",
		"Before step 2: rank 0 holds 0,1: 0+1; rank 1 holds 2,3: 0+1; rank 2 holds 0,1: 2+3; rank 3 holds 2,3: 2+3.",
		"Before step 3: rank 0 holds 0: R; rank 1 holds 2: R; rank 2 holds 1: R; rank 3 holds 3: R.",
		"At the end: rank 0 holds R;",
	} {
		if !strings.Contains(picture.Desc, want) {
			t.Errorf("the description %q does not say %q", picture.Desc, want)
		}
	}
}

func TestUnreadableNetworksAreRefusedWithTheLimit(t *testing.T) {
	big := func(p int, network, algorithm string, c sched.Collective) Scene {
		return networkCase{"", c, algorithm, p, 0, network, nil, NetworkOptions{}, false}.scene(t)
	}
	unrecorded := big(2, "ring", "binomial", sched.Bcast)
	unrecorded.Result.Log = nil
	for _, c := range []struct {
		scene   Scene
		options NetworkOptions
		want    string
	}{
		{big(65, "ring", "binomial", sched.Bcast), NetworkOptions{}, "a picture of ring with 65 processors: want at most 64"},
		{big(64, "hypercube", "binomial", sched.Bcast), NetworkOptions{}, "a picture of a hypercube of 64 processors: want at most 32"},
		{big(32, "full", "pairwise", sched.AllToAll), NetworkOptions{}, "a picture of 992 arrows: want at most 400, as with a panel for each step"},
		{big(64, "full", "direct", sched.AllGather), panelOptions, "a picture of 4032 arrows in one step: want at most 400"},
		{big(64, "ring", "ring", sched.AllGather), panelOptions, "a picture of 63 panels with 4032 arrows and 4032 nodes in all: want at most 2000 of each, as with fewer ranks"},
		{big(16, "full", "rotated", sched.Scatter), NetworkOptions{Blocks: true}, "contents of 64 blocks beside the nodes of a network: want a picture of blocks alone"},
		{matvec(t, 2), NetworkOptions{Blocks: true}, "block contents of 4 schedules beside one network: want a single schedule"},
		{unrecorded, NetworkOptions{}, "a simulation without its log: want one made with Record"},
	} {
		var b bytes.Buffer
		if err := Network(&b, c.scene, c.options); err == nil || err.Error() != c.want || b.Len() > 0 {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestTheSameSceneMakesTheSamePictures(t *testing.T) {
	for _, c := range networkCases {
		var first, second bytes.Buffer
		for _, b := range []*bytes.Buffer{&first, &second} {
			s := c.scene(t)
			if err := Network(b, s, c.options); err != nil {
				t.Fatal(err)
			}
			if err := Blocks(b, s); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two pictures differ", c.name)
		}
	}
}
