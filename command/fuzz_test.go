package command

import (
	"strings"
	"testing"

	"github.com/chorale-go/chorale/topo"
)

// graphs are seeds for the readers of graphs.
var graphs = []struct{ extension, text string }{
	{".dot", "graph racks { { node [kind=switch] a b } a -- { 0 1 } b -- { 2 3 } a -- b }"},
	{".dot", "digraph { 0 -> 1 -> 0; \"0\" -> 1 }"},
	{".dot", "strict graph { subgraph s { 0 1 2 } subgraph s -- subgraph s }"},
	{".dot", "graph { " + strings.Repeat("{", 200) + "0 -- 1" + strings.Repeat("}", 200) + "}"},
	{".dot", "graph { subgraph a {0 1 2 3 4 5 6 7} subgraph a -- subgraph a -- subgraph a }"},
	{".graphml", `<graphml><key id="k" attr.name="kind" for="node"/><graph edgedefault="undirected"><node id="0"/><node id="1"/><node id="s"><data key="k">switch</data></node><edge source="0" target="s"/><edge source="1" target="s"/></graph></graphml>`},
	{".graphml", `<graphml><graph><node id="0"><graph/></node><hyperedge/></graph></graphml>`},
}

// A graph file that is read is a network whose list of links reads as the same network.
func FuzzGraphFile(f *testing.F) {
	for _, g := range graphs {
		for p := range 5 {
			f.Add(g.extension, g.text, p)
		}
	}
	f.Fuzz(func(t *testing.T, extension, text string, p int) {
		read := graphReaders[extension]
		if read == nil || p < 1 || p > 1<<10 {
			return
		}
		file, err := read(strings.NewReader(text))
		if err != nil {
			return
		}
		if len(file.edges) > maxGraphEdges {
			t.Fatalf("%d edges", len(file.edges))
		}
		g, err := file.graph("graph", p)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error %q is not one line", err)
			}
			return
		}
		var list strings.Builder
		names := map[string]string{}
		name := func(v int) string {
			if v < g.Processors() {
				return g.Name(v)
			}
			if _, known := names[g.Name(v)]; !known { // names in DOT may have spaces
				names[g.Name(v)] = "s" + strings.Repeat("x", len(names))
			}
			return names[g.Name(v)]
		}
		for link := 0; link < 2*g.LinkCount(); link++ {
			if from, to := g.Ends(link); from < to {
				list.WriteString(name(from) + " " + name(to) + "\n")
			}
		}
		if g.Processors() == 1 || g.Switches() > 100 {
			return // a list has no lone processor; and names grow long
		}
		again, err := topo.ReadGraph(strings.NewReader(list.String()), "graph", p)
		if err != nil {
			t.Fatalf("%v, in the list\n%s", err, list.String())
		}
		if again.LinkCount() != g.LinkCount() || again.Switches() != g.Switches() || again.Diameter() != g.Diameter() {
			t.Errorf("%d links, %d switches, diameter %d; as a list %d, %d, %d", g.LinkCount(), g.Switches(), g.Diameter(), again.LinkCount(), again.Switches(), again.Diameter())
		}
	})
}
