package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/chorale-go/chorale/topo"
)

// drawings are the kinds of file, besides lists of links, that a topology may
// be read from.
var drawings = map[string]func(io.Reader) (*drawing, error){
	".dot":     readDOT,
	".gv":      readDOT,
	".graphml": readGraphML,
}

// parseTopology makes the topology that spec names, for p processors.
func parseTopology(spec string, p int) (topo.Topology, error) {
	read := drawings[filepath.Ext(spec)]
	if read == nil {
		return topo.Parse(spec, p)
	}
	file, err := os.Open(spec)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	defer file.Close()
	d, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("topology %s: %w", spec, err)
	}
	g, err := d.graph(spec, p)
	if err != nil {
		return nil, fmt.Errorf("topology %w", err)
	}
	return g, nil
}

// A drawing is a graph as other programs write it. Its nodes have names. Those
// that are marked kind=switch are switches, the others processors. A
// processor's number is its name, if all of them have numbers for names, and
// otherwise its place in the order in which the file has them.
type drawing struct {
	nodes  []string // in the order of the file
	kinds  map[string]string
	edges  []edge
	strict bool // an edge that is there again is the same one
}

// An edge joins two nodes; one that is directed does so one way.
type edge struct {
	from, to string
	directed bool
}

// add makes sure that there is a node of this name.
func (d *drawing) add(node, kind string) {
	if d.kinds == nil {
		d.kinds = make(map[string]string)
	}
	if _, known := d.kinds[node]; !known {
		d.nodes = append(d.nodes, node)
		d.kinds[node] = kind
	}
}

// graph makes the network of it.
func (d *drawing) graph(name string, p int) (*topo.Graph, error) {
	vertices, switches, err := d.vertices(p)
	if err != nil {
		return nil, fmt.Errorf("%s%w", name, err)
	}
	pairs, err := d.links()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	links := make([][2]int, len(pairs))
	for i, pair := range pairs {
		links[i] = [2]int{vertices[pair.from], vertices[pair.to]}
	}
	return topo.NewGraph(name, p, switches, links)
}

// vertices numbers the nodes. Its errors go on from the graph's name.
func (d *drawing) vertices(p int) (vertices map[string]int, switches []string, err error) {
	var processors []string
	numbered := true
	for _, node := range d.nodes {
		switch kind := d.kinds[node]; kind {
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
	vertices = make(map[string]int, len(d.nodes))
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

// links returns an edge for each full-duplex link: one that is not directed, or
// the first of two that lead there and back.
func (d *drawing) links() (links []edge, err error) {
	var (
		seen = make(map[edge]bool, len(d.edges)) // in the direction of the file
		arcs []edge
	)
	for _, e := range d.edges {
		back := edge{e.to, e.from, e.directed}
		switch again := seen[e] || !e.directed && seen[back]; {
		case e.from == e.to:
			return nil, fmt.Errorf("%q is linked to itself: want two nodes", e.from)
		case again && d.strict:
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
