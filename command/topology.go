package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/topo"
)

// graphReaders are the readers of graph files, by their extension. Package topo reads
// lists of links.
var graphReaders = map[string]func(io.Reader) (*graphFile, error){
	".dot":     readDOT,
	".gv":      readDOT,
	".graphml": readGraphML,
}

// parseTopology returns the topology of spec for p processors.
func parseTopology(spec string, p int) (topo.Topology, error) {
	read := graphReaders[filepath.Ext(spec)]
	if read == nil {
		t, err := topo.Parse(spec, p)
		if algo.IsFile(spec) && !exists(spec) {
			return nil, fmt.Errorf("topology: there is no file %s", spec)
		}
		return t, withNearest(err)
	}
	file, err := os.Open(spec)
	switch {
	case os.IsNotExist(err):
		return nil, fmt.Errorf("topology: there is no file %s", spec)
	case err != nil:
		return nil, fmt.Errorf("topology: %w", err)
	}
	defer file.Close()
	d, err := read(io.LimitReader(file, maxGraphFile))
	if info, unknown := file.Stat(); unknown == nil && info.Size() > maxGraphFile {
		return nil, fmt.Errorf("topology %s: more than %d bytes: want a smaller file", spec, maxGraphFile)
	}
	if err != nil {
		return nil, fmt.Errorf("topology %s: %w", spec, err)
	}
	g, err := d.graph(spec, p)
	if err != nil {
		return nil, fmt.Errorf("topology %w", err)
	}
	return g, nil
}

// withNearest adds the nearest known name to an error about an unknown one.
func withNearest(err error) error {
	var syntax *topo.SyntaxError
	if errors.As(err, &syntax) {
		name, _, _ := strings.Cut(syntax.Text, ":")
		if near := (&sched.UnknownError{Name: name, Known: syntax.Known()}).Nearest(); near != "" {
			syntax.Want = near + ", " + syntax.Want
		}
	}
	return err
}

// The bounds of a graph file. Few bytes of DOT can mean many edges: {a b c} -- {d e f}
// are nine.
const (
	maxGraphFile  = 16 << 20 // bytes
	maxGraphEdges = 1 << 20  // and mentions of nodes
	maxGraphDepth = 100      // of subgraphs within subgraphs
)

// A graphFile is a graph as other programs write it. Its nodes have names. A node
// with kind=switch is a switch, any other a processor. If the names of all
// processors are numbers, these number them; otherwise the order of the file does.
type graphFile struct {
	nodes  []string // in the order of the file
	kinds  map[string]string
	edges  []edge
	strict bool // a repeated edge is the same edge
}

// An edge joins two nodes, in one direction if it is directed.
type edge struct {
	from, to string
	directed bool
}

// add adds a node, unless it is known.
func (g *graphFile) add(node, kind string) {
	if g.kinds == nil {
		g.kinds = make(map[string]string)
	}
	if _, known := g.kinds[node]; !known {
		g.nodes = append(g.nodes, node)
		g.kinds[node] = kind
	}
}

// graph returns the network.
func (g *graphFile) graph(name string, p int) (*topo.Graph, error) {
	vertices, switches, err := g.vertices(p)
	if err != nil {
		return nil, fmt.Errorf("%s%w", name, err)
	}
	pairs, err := g.links()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	links := make([][2]int, len(pairs))
	for i, pair := range pairs {
		links[i] = [2]int{vertices[pair.from], vertices[pair.to]}
	}
	return topo.NewGraph(name, p, switches, links)
}

// vertices numbers the nodes. Its errors continue the graph's name.
func (g *graphFile) vertices(p int) (vertices map[string]int, switches []string, err error) {
	var processors []string
	numbered := true
	for _, node := range g.nodes {
		switch kind := g.kinds[node]; kind {
		case "switch":
			switches = append(switches, node)
		case "":
			processors = append(processors, node)
			n, err := strconv.Atoi(node)
			numbered = numbered && err == nil && strconv.Itoa(n) == node
		default:
			return nil, nil, fmt.Errorf(": node %q has kind=%s: want kind=switch or none", node, kind)
		}
	}
	if len(processors) != p {
		return nil, nil, fmt.Errorf(" has %d processors: want %d, one for each rank", len(processors), p)
	}
	vertices = make(map[string]int, len(g.nodes))
	for i, node := range processors {
		if numbered {
			i, _ = strconv.Atoi(node)
		}
		if i < 0 || i >= p {
			return nil, nil, fmt.Errorf(": there is no processor %d: want 0 to %d", i, p-1)
		}
		vertices[node] = i
	}
	for i, node := range switches {
		vertices[node] = p + i
	}
	return vertices, switches, nil
}

// links returns an edge for each full-duplex link: an undirected edge, or the first of
// two opposite directed ones.
func (g *graphFile) links() (links []edge, err error) {
	var (
		seen = make(map[edge]bool, len(g.edges)) // in the direction of the file
		arcs []edge
	)
	for _, e := range g.edges {
		back := edge{e.to, e.from, e.directed}
		switch again := seen[e] || !e.directed && seen[back]; {
		case e.from == e.to:
			return nil, fmt.Errorf("%q is linked to itself: want two nodes", e.from)
		case again && g.strict:
			continue
		case again:
			return nil, fmt.Errorf("%q and %q are linked twice", e.from, e.to)
		case e.directed && seen[back]:
		case e.directed:
			arcs = append(arcs, e)
			links = append(links, e)
		default:
			links = append(links, e)
		}
		seen[e] = true
	}
	for _, e := range arcs {
		if !seen[edge{e.to, e.from, true}] {
			return nil, fmt.Errorf("%q leads to %q and not back, and links are full duplex: want both, or an undirected graph", e.from, e.to)
		}
	}
	return links, nil
}
