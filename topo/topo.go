// Package topo holds the networks that a schedule can be laid upon: which
// links they have, and which of them a message takes.
//
// [Parse] reads a topology from words such as "mesh:4x4"; [ParsePlacement]
// says which rank sits on which of its processors. A topology is an immutable
// value and may be used by many goroutines at once.
//
// Its vertices are processors, numbered from 0, and after them switches, on
// which no rank sits. Every link is full duplex and counts as one in the
// textbook's figures. Its two directions are told apart wherever messages
// travel: they have ids of their own, from 0 to 2·LinkCount−1.
//
// The figures are those of Grama, Gupta, Karypis and Kumar, Introduction to
// Parallel Computing, 2nd ed., table 2.1, unless a type says otherwise.
package topo

import (
	"fmt"
	"math"
	"strconv"
)

// A Topology is a network of processors and switches.
//
// Processors, vertices and links that do not exist are the caller's mistake,
// like an index outside a slice.
type Topology interface {
	// String returns the words that Parse reads.
	String() string

	// Processors returns the number of places for ranks.
	Processors() int

	// Switches returns the number of vertices that only pass messages on.
	// They are numbered from Processors on.
	Switches() int

	// LinkCount returns the number of full-duplex links.
	LinkCount() int

	// Diameter returns the number of links of the longest route.
	Diameter() int

	// Bisection returns the fewest links whose removal parts the processors
	// into halves, by the formula for its kind, or false where there is none.
	// Halves of an odd number differ by one.
	Bisection() (width int, known bool)

	// Ports returns the largest number of links at one processor.
	Ports() int

	// AppendRoute appends the ids of the directed links that a message takes,
	// first to last. There is one route for each pair of processors, and none
	// of its links when a processor sends to itself. It allocates nothing if
	// dst has room for Diameter links.
	AppendRoute(dst []int32, from, to int) []int32

	// Ends returns the vertices that a directed link leads from and to.
	Ends(link int) (from, to int)

	// Name returns what a report calls a vertex: a processor by its number.
	Name(vertex int) string
}

// Route returns the ids of the directed links from one processor to another.
// Who asks often uses AppendRoute.
func Route(t Topology, from, to int) []int {
	links := t.AppendRoute(nil, from, to)
	route := make([]int, len(links))
	for i, l := range links {
		route[i] = int(l)
	}
	return route
}

// LinkName returns what a report calls a directed link, such as "1→2".
func LinkName(t Topology, link int) string {
	from, to := t.Ends(link)
	return t.Name(from) + "→" + t.Name(to)
}

// maxDirected is how many directed links a topology may have, since a route
// holds 32-bit ids.
const maxDirected = math.MaxInt32

// checkProcessors refuses a number of processors that no network has.
func checkProcessors(name string, p int) error {
	if p < 1 {
		return fmt.Errorf("%s of %d processors: want 1 or more", name, p)
	}
	return nil
}

// checkLinks refuses a network whose links ids cannot tell apart. The number
// is a float, because it may be far beyond any integer.
func checkLinks(name string, directed float64) error {
	if directed > maxDirected {
		return fmt.Errorf("%s has %.3g directed links: want at most %d", name, directed, maxDirected)
	}
	return nil
}

// numbered is the name of a processor.
func numbered(v int) string { return strconv.Itoa(v) }
