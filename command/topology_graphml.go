package command

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// graphML is the part of a GraphML file that is read: see
// http://graphml.graphdrawing.org. A node's kind is its data for the key whose name or
// id is kind.
type graphML struct {
	XMLName xml.Name `xml:"graphml"`
	Keys    []struct {
		ID      string `xml:"id,attr"`
		For     string `xml:"for,attr"`
		Name    string `xml:"attr.name,attr"`
		Default string `xml:"default"`
	} `xml:"key"`
	Graphs []struct {
		Default string        `xml:"edgedefault,attr"`
		Nodes   []graphMLNode `xml:"node"`
		Edges   []struct {
			Source   string `xml:"source,attr"`
			Target   string `xml:"target,attr"`
			Directed string `xml:"directed,attr"`
		} `xml:"edge"`
		Hyperedges []struct{} `xml:"hyperedge"`
	} `xml:"graph"`
}

type graphMLNode struct {
	ID   string `xml:"id,attr"`
	Data []struct {
		Key   string `xml:"key,attr"`
		Value string `xml:",chardata"`
	} `xml:"data"`
	Graphs []struct{} `xml:"graph"`
}

func readGraphML(r io.Reader) (*graphFile, error) {
	var file graphML
	if err := xml.NewDecoder(r).Decode(&file); err != nil {
		return nil, fmt.Errorf("not GraphML: %w", err)
	}
	if n := len(file.Graphs); n != 1 {
		return nil, fmt.Errorf("%s: want one", plural(n, "graph"))
	}
	g := &file.Graphs[0]
	if len(g.Hyperedges) > 0 {
		return nil, fmt.Errorf("a hyperedge: want edges, which join two nodes")
	}
	kind, standard := "kind", ""
	for _, k := range file.Keys {
		if k.Name == "kind" && (k.For == "node" || k.For == "all" || k.For == "") {
			kind, standard = k.ID, strings.TrimSpace(k.Default)
		}
	}
	d := &graphFile{}
	for _, n := range g.Nodes {
		if _, twice := d.kinds[n.ID]; twice || n.ID == "" {
			return nil, fmt.Errorf("a node %q: want an id of its own", n.ID)
		}
		if len(n.Graphs) > 0 {
			return nil, fmt.Errorf("a graph inside node %q: want one level of nodes", n.ID)
		}
		d.add(n.ID, n.kind(kind, standard))
	}
	for _, e := range g.Edges {
		for _, end := range []string{e.Source, e.Target} {
			if _, ok := d.kinds[end]; !ok {
				return nil, fmt.Errorf("an edge of %q: there is no such node", end)
			}
		}
		directed := e.Directed == "true" || e.Directed == "" && g.Default == "directed"
		d.edges = append(d.edges, edge{e.Source, e.Target, directed})
	}
	return d, nil
}

func (n *graphMLNode) kind(key, standard string) string {
	for _, data := range n.Data {
		if data.Key == key {
			return strings.TrimSpace(data.Value)
		}
	}
	return standard
}
