package topo

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestAPlacementPutsRanksWhereItsWordsSay(t *testing.T) {
	for _, c := range []struct {
		text, spec string
		p          int
		want       Placement
	}{
		{"identity", "star", 5, Placement{0, 1, 2, 3, 4}},
		{"identity", "ring", 1, Placement{0}},
		{"row-major", "mesh:2x3", 6, Placement{0, 1, 2, 3, 4, 5}},
		{"column-major", "mesh:2x3", 6, Placement{0, 3, 1, 4, 2, 5}},
		{"column-major", "torus:2x2x2", 8, Placement{0, 4, 2, 6, 1, 5, 3, 7}},
		{"column-major", "linear", 3, Placement{0, 1, 2}},
		{"column-major:2x4", "hypercube", 8, Placement{0, 4, 1, 5, 2, 6, 3, 7}},
		{"gray", "hypercube", 8, Placement{0, 1, 3, 2, 6, 7, 5, 4}},
		{"gray:2x4", "hypercube", 8, Placement{0, 1, 3, 2, 4, 5, 7, 6}},
		{"random:7", "full", 8, Placement{4, 1, 3, 7, 5, 0, 2, 6}}, // a seed keeps its meaning
		{"2,0,1", "ring", 3, Placement{2, 0, 1}},
		{"0", "ring", 1, Placement{0}},
	} {
		got, err := ParsePlacement(c.text, parsed(t, c.spec, c.p))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s on %s: %v, %v, want %v", c.text, c.spec, got, err, c.want)
		}
	}
}

func TestEveryPlacementHoldsEveryProcessorOnce(t *testing.T) {
	const p = 32
	top := parsed(t, "hypercube", p)
	for _, text := range []string{"identity", "row-major:4x8", "column-major:4x8", "column-major:2x4x4", "gray", "gray:4x8", "gray:1x32", "random:1", "random:2"} {
		place, err := ParsePlacement(text, top)
		if err != nil {
			t.Fatal(err)
		}
		sorted := slices.Clone(place)
		slices.Sort(sorted)
		if !slices.Equal(sorted, Identity(p)) {
			t.Errorf("%s: %v", text, place)
		}
	}
}

func TestGrayCodeMakesNeighborsOfARingOrTorusAdjacentInAHypercube(t *testing.T) {
	for _, spec := range []string{
		"ring", "torus:1x64", "torus:2x32", "torus:4x16", "torus:8x8", "torus:4x4x4", "torus:2x4x8", "torus:2x2x2x2x2x2",
	} {
		grid := parsed(t, spec, 64).(*Grid)
		host := parsed(t, "hypercube", 64)
		place, err := Gray(grid.Dims()...)
		if err != nil {
			t.Fatal(err)
		}
		for l := range 2 * grid.LinkCount() {
			a, b := grid.Ends(l)
			if hops := len(Route(host, place[a], place[b])); hops != 1 {
				t.Errorf("%s: ranks %d and %d are neighbors, their processors %d and %d are %d links apart", spec, a, b, place[a], place[b], hops)
			}
		}
	}
}

func TestAColumnOfRanksIsAColumnOfTheMesh(t *testing.T) { // CLAIM G6
	place := ColumnMajor(4, 4)
	mesh := parsed(t, "mesh:4x4", 16)
	// A row of the first phase is 0 4 8 12: it lies along one line of the mesh.
	for r := 0; r < 12; r += 4 {
		from, to := place[r], place[r+4]
		if got, want := names(mesh, from, to), fmt.Sprintf("%d→%d", from, from+1); got != want {
			t.Errorf("from rank %d to rank %d: %s, want %s", r, r+4, got, want)
		}
	}
}

func TestSizesOfNoGridMakeNoPlacement(t *testing.T) {
	for _, dims := range [][]int{{0}, {4, 0}, {-2, -2}, {1 << 20, 1 << 20}} {
		gray, err := Gray(dims...)
		if err == nil || len(gray)+len(RowMajor(dims...))+len(ColumnMajor(dims...)) > 0 {
			t.Errorf("%v makes a placement", dims)
		}
	}
	if len(Identity(-1))+len(Random(-1, 1)) > 0 {
		t.Error("-1 processors make a placement")
	}
}

func TestAWrongPlacementIsRefusedWithItsPlaceAndWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct {
		text, spec string
		p, at      int // at: -1 where the words are right but do not fit
		want       string
	}{
		{"", "ring", 4, 0, `placement "", character 1: found nothing more, want ` + placementForms},
		{"grey", "ring", 4, 0, `placement "grey", character 1: found "grey", want ` + placementForms},
		{"identity:4", "ring", 4, 8, `placement "identity:4", character 9: found ":4", want nothing more`},
		{"random", "ring", 4, 6, `placement "random", character 7: found nothing more, want a seed, as in random:1`},
		{"random:x", "ring", 4, 7, `placement "random:x", character 8: found "x", want a seed, as in random:1`},
		{"column-major", "hypercube", 4, 12, `placement "column-major", character 13: found nothing more, want sizes, as in column-major:4x4, since hypercube has none`},
		{"gray:2xx2", "hypercube", 4, 7, `placement "gray:2xx2", character 8: found "x2", want a size, as in gray:4x4`},
		{"gray:2x4", "hypercube", 4, -1, `placement gray:2x4: want sizes whose product is 4`},
		{"gray:9223372036854775807x2", "ring", 4, -1, `placement gray:9223372036854775807x2: want sizes whose product is 4`},
		{"gray:2x3", "ring", 6, -1, `placement gray:2x3: Gray code of 3 processors: want a power of two, such as 2 or 4`},
		{"0,1,x", "ring", 4, 4, `placement "0,1,x", character 5: found "x", want a processor from 0 to 3 for rank 2`},
		{"0,1,4,2", "ring", 4, 4, `placement "0,1,4,2", character 5: found "4,2", want a processor from 0 to 3 for rank 2`},
		{"0,1,0,2", "ring", 4, 4, `placement "0,1,0,2", character 5: found "0,2", want another processor for rank 2, since rank 0 has this one`},
		{"0,1,2", "ring", 4, 5, `placement "0,1,2", character 6: found nothing more, want "," and a processor for rank 3`},
		{"0,1,2,3,4", "ring", 4, 7, `placement "0,1,2,3,4", character 8: found ",4", want no more than 4 processors, one for each rank`},
	} {
		_, err := ParsePlacement(c.text, parsed(t, c.spec, c.p))
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		at := -1
		if syntax := new(SyntaxError); errors.As(err, &syntax) {
			at = syntax.At
		}
		if at != c.at {
			t.Errorf("%q: the error points at %d, want %d", c.text, at, c.at)
		}
	}
}
