package topo

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Graph is any connected network of processors without switches.
//
// A route is a shortest path; of several it takes, at each processor, the
// neighbour with the lowest number. It is found by breadth-first search, so it
// takes time in proportion to the graph. Nothing is known of the bisection
// width: to find it is NP-hard.
//
// Directed links are numbered by the processor that they leave, then by the
// one that they lead to.
type Graph struct {
	name     string
	first    []int32 // the first link that leaves a processor, and the number of links
	from, to []int32 // of a link
	searches sync.Pool
}

// NewGraph returns the network of p processors with the given full-duplex
// links. Its name is what String returns.
func NewGraph(name string, p int, links [][2]int) (*Graph, error) {
	if err := checkProcessors(name, p); err != nil {
		return nil, err
	}
	if err := checkLinks(name, 2*float64(len(links))); err != nil {
		return nil, err
	}
	directed := make([][2]int, 0, 2*len(links))
	last := 0
	for _, l := range links {
		if err := checkEnds(l[0], l[1], p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		directed = append(directed, l, [2]int{l[1], l[0]})
		last = max(last, l[0], l[1])
	}
	switch {
	case last+1 < p:
		return nil, fmt.Errorf("%s has %d processors: want %d, one for each rank", name, last+1, p)
	case len(links) < p-1:
		return nil, fmt.Errorf("%s has %d links: want %d or more, to connect %d processors", name, len(links), p-1, p)
	}
	slices.SortFunc(directed, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	g := &Graph{name: name, first: make([]int32, p+1)}
	for i, l := range directed {
		if i > 0 && l == directed[i-1] {
			return nil, fmt.Errorf("%s: %d and %d are linked twice", name, l[0], l[1])
		}
		g.first[l[0]+1]++
		g.from = append(g.from, int32(l[0]))
		g.to = append(g.to, int32(l[1]))
	}
	for v := range p {
		g.first[v+1] += g.first[v]
	}
	g.searches.New = func() any { return &search{hops: make([]int32, p)} }
	s := g.search(0, -1)
	defer g.searches.Put(s)
	if v := slices.Index(s.hops, 0); v >= 0 {
		return nil, fmt.Errorf("%s: no path leads from 0 to %d: want a connected graph", name, v)
	}
	return g, nil
}

// checkEnds refuses a link that cannot be.
func checkEnds(a, b, p int) error {
	for _, v := range []int{a, b} {
		if v < 0 || v >= p {
			return fmt.Errorf("there is no processor %d: want 0 to %d", v, p-1)
		}
	}
	if a == b {
		return fmt.Errorf("%d is linked to itself: want two processors", a)
	}
	return nil
}

// ReadGraph reads a graph of p processors as a list of its links: two
// processors on a line, numbered from 0. What follows a # is a comment. Errors
// begin with the name and the line.
func ReadGraph(r io.Reader, name string, p int) (*Graph, error) {
	if err := checkProcessors(name, p); err != nil {
		return nil, err
	}
	var links [][2]int
	line := map[[2]int]int{} // where a link stands
	in := bufio.NewScanner(r)
	n := 1
	for ; in.Scan(); n++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		l, err := parseLink(words, p)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		key := [2]int{min(l[0], l[1]), max(l[0], l[1])}
		if before, ok := line[key]; ok {
			return nil, fmt.Errorf("%s:%d: %d and %d are linked already, on line %d", name, n, l[0], l[1], before)
		}
		line[key] = n
		links = append(links, l)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n, err)
	}
	return NewGraph(name, p, links)
}

func parseLink(words []string, p int) (l [2]int, err error) {
	if len(words) != 2 {
		return l, fmt.Errorf("found %q, want two processors, as in 0 1", strings.Join(words, " "))
	}
	for i, word := range words {
		v, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return l, fmt.Errorf("found %q, want a processor from 0 to %d", word, p-1)
		}
		l[i] = int(v)
	}
	return l, checkEnds(l[0], l[1], p)
}

func (g *Graph) String() string         { return g.name }
func (g *Graph) Processors() int        { return len(g.first) - 1 }
func (g *Graph) Switches() int          { return 0 }
func (g *Graph) LinkCount() int         { return len(g.to) / 2 }
func (g *Graph) Bisection() (int, bool) { return 0, false }
func (g *Graph) Name(v int) string      { return numbered(v) }

func (g *Graph) Ends(link int) (from, to int) { return int(g.from[link]), int(g.to[link]) }

func (g *Graph) Ports() int {
	ports := 0
	for v := range g.Processors() {
		ports = max(ports, int(g.first[v+1]-g.first[v]))
	}
	return ports
}

// Diameter searches from every processor: O(p · links).
func (g *Graph) Diameter() int {
	far := int32(0)
	for v := range g.Processors() {
		s := g.search(v, -1)
		far = max(far, slices.Max(s.hops)-1)
		g.searches.Put(s)
	}
	return int(far)
}

func (g *Graph) AppendRoute(dst []int32, from, to int) []int32 {
	s := g.search(to, from)
	defer g.searches.Put(s)
	for from != to {
		link := g.first[from]
		for s.hops[g.to[link]] != s.hops[from]-1 {
			link++ // the first that is nearer is the lowest
		}
		dst = append(dst, link)
		from = int(g.to[link])
	}
	return dst
}

// A search knows how far processors are from where it started.
type search struct {
	hops  []int32 // one more than the links between; 0 where it has not been
	queue []int32
}

// search goes out from a processor until it meets the other, or to the end if
// that is -1. All processors nearer than the other are then known. The caller
// puts the search back.
func (g *Graph) search(start, stop int) *search {
	s := g.searches.Get().(*search)
	clear(s.hops)
	s.hops[start] = 1
	s.queue = append(s.queue[:0], int32(start))
	for i := 0; i < len(s.queue); i++ {
		v := s.queue[i]
		if int(v) == stop {
			break
		}
		for _, w := range g.to[g.first[v]:g.first[v+1]] {
			if s.hops[w] == 0 {
				s.hops[w] = s.hops[v] + 1
				s.queue = append(s.queue, w)
			}
		}
	}
	return s
}
