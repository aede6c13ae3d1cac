package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph/formats/dot"
	"gonum.org/v1/gonum/graph/formats/dot/ast"
)

// readDOT reads a graph in the language of Graphviz. The attribute kind=switch makes a
// node a switch; all other attributes are ignored.
func readDOT(r io.Reader) (*graphFile, error) {
	file, err := dot.Parse(r)
	if err != nil {
		return nil, fmt.Errorf("not DOT: %w", err)
	}
	if n := len(file.Graphs); n != 1 {
		return nil, fmt.Errorf("%s: want one", plural(n, "graph"))
	}
	g := file.Graphs[0]
	d := dotReader{graphFile: graphFile{strict: g.Strict}, directed: g.Directed, subgraphs: make(map[string][]string)}
	d.read(g.Stmts, "")
	if d.tooLarge {
		return nil, fmt.Errorf("more than %d edges or mentions of nodes, or subgraphs in %d others: want a smaller graph", maxGraphEdges, maxGraphDepth)
	}
	return &d.graphFile, nil
}

// A dotReader is the state of reading a file.
type dotReader struct {
	graphFile
	directed  bool
	subgraphs map[string][]string // the nodes of the named subgraphs
	depth     int                 // of the subgraph that is read
	mentions  int                 // of nodes so far, each subgraph being one of all of its nodes
	tooLarge  bool                // reading has stopped at a bound
}

// read adds the nodes and edges of statements, and returns the nodes that they name.
// A new node has the given kind, unless a node attribute statement changes the kind
// for the rest of the subgraph.
func (d *dotReader) read(statements []ast.Stmt, kind string) (nodes []string) {
	d.depth++
	defer func() { d.depth-- }()
	for _, statement := range statements {
		if d.tooLarge = d.tooLarge || d.depth > maxGraphDepth; d.tooLarge {
			return nil
		}
		switch s := statement.(type) {
		case *ast.NodeStmt:
			nodes = append(nodes, d.node(s.Node, kind))
			if own, ok := kindOf(s.Attrs); ok {
				d.kinds[unquoted(s.Node.ID)] = own
			}
		case *ast.EdgeStmt:
			from := d.vertex(s.From, kind)
			nodes = append(nodes, from...)
			for e := s.To; e != nil; e = e.To {
				to := d.vertex(e.Vertex, kind)
				d.join(from, to)
				nodes = append(nodes, to...)
				from = to
			}
		case *ast.AttrStmt:
			if all, ok := kindOf(s.Attrs); ok && s.Kind == ast.NodeKind {
				kind = all
			}
		case *ast.Subgraph:
			nodes = append(nodes, d.subgraph(s, kind)...)
		}
	}
	return nodes
}

// vertex returns the nodes at one end of an edge.
func (d *dotReader) vertex(v ast.Vertex, kind string) []string {
	switch v := v.(type) {
	case *ast.Node:
		return []string{d.node(v, kind)}
	case *ast.Subgraph:
		return d.subgraph(v, kind)
	}
	return nil
}

func (d *dotReader) node(n *ast.Node, kind string) string {
	name := unquoted(n.ID)
	d.add(name, kind)
	return name
}

func (d *dotReader) subgraph(s *ast.Subgraph, kind string) []string {
	nodes := append(slices.Clone(d.subgraphs[s.ID]), d.read(s.Stmts, kind)...)
	d.mentions += len(nodes)
	d.tooLarge = d.tooLarge || d.mentions > maxGraphEdges
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if s.ID != "" {
		d.subgraphs[s.ID] = nodes
	}
	return nodes
}

// join links every node of one end with every node of the other.
func (d *dotReader) join(from, to []string) {
	if d.tooLarge = d.tooLarge || len(d.edges)+len(from)*len(to) > maxGraphEdges; d.tooLarge {
		return
	}
	for _, a := range from {
		for _, b := range to {
			d.edges = append(d.edges, edge{a, b, d.directed})
		}
	}
}

func kindOf(attributes []*ast.Attr) (kind string, ok bool) {
	for _, a := range attributes {
		if unquoted(a.Key) == "kind" {
			kind, ok = unquoted(a.Val), true
		}
	}
	return kind, ok
}

// unquoted returns an identifier without its quotes.
func unquoted(id string) string {
	if len(id) >= 2 && id[0] == '"' && id[len(id)-1] == '"' {
		return strings.ReplaceAll(id[1:len(id)-1], `\"`, `"`)
	}
	return id
}
