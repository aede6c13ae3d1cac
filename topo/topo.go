package topo

import (
	"fmt"
	"math"
	"strconv"
)

// A Topology is a network of processors and switches.
//
// The arguments of its methods must be processors, vertices and links that
// exist: a method may panic for any other, or return garbage.
type Topology interface {
	// String returns the text that Parse reads, such as "mesh:4x4"; for a
	// Graph, its name.
	String() string

	// Processors returns the number of processors, at least 1. They are the
	// vertices 0 to Processors−1.
	Processors() int

	// Switches returns the number of vertices that only pass messages on.
	// They are the vertices from Processors on.
	Switches() int

	// LinkCount returns the number of full-duplex links. Directed links have
	// ids from 0 to 2·LinkCount−1.
	LinkCount() int

	// Diameter returns the number of links of the longest route between two
	// processors, or 0 if there is only one.
	Diameter() int

	// Bisection returns the fewest links whose removal separates the
	// processors into two halves, by the formula for this kind of topology,
	// or false if no formula is known. Halves of an odd number of processors
	// differ by one.
	Bisection() (width int, known bool)

	// Ports returns the largest number of links at one processor.
	Ports() int

	// AppendRoute appends to dst the ids of the directed links that a message
	// takes from one processor to another, first to last, and returns the
	// extended slice. There is one route for each ordered pair of processors;
	// it is empty from a processor to itself. AppendRoute allocates nothing
	// if dst has room for Diameter links.
	AppendRoute(dst []int32, from, to int) []int32

	// Ends returns the vertices that a directed link leads from and to.
	Ends(link int) (from, to int)

	// Name returns the name of a vertex in reports: of a processor its number,
	// of a switch a name that begins with a letter.
	Name(vertex int) string
}

// Route returns the ids of the directed links from one processor to another,
// first to last. [Topology.AppendRoute] does the same without allocating.
func Route(t Topology, from, to int) []int {
	links := t.AppendRoute(nil, from, to)
	route := make([]int, len(links))
	for i, l := range links {
		route[i] = int(l)
	}
	return route
}

// LinkName returns the name of a directed link in reports: the names of its two
// ends, as in "1→2".
func LinkName(t Topology, link int) string {
	from, to := t.Ends(link)
	return t.Name(from) + "→" + t.Name(to)
}

// maxDirected is the largest number of directed links, since a route holds 32-bit
// ids.
const maxDirected = math.MaxInt32

// checkProcessors returns an error for a number of processors below 1.
func checkProcessors(name string, p int) error {
	if p < 1 {
		return fmt.Errorf("%s of %d processors: want 1 or more", name, p)
	}
	return nil
}

// checkLinks returns an error for a network with more than maxDirected links. The
// number is a float, because it may be far beyond any integer.
func checkLinks(name string, directed float64) error {
	if directed > maxDirected {
		return fmt.Errorf("%s has %.3g directed links: want at most %d", name, directed, maxDirected)
	}
	return nil
}

// numbered returns the name of a processor.
func numbered(v int) string { return strconv.Itoa(v) }
