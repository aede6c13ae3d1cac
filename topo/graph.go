package topo

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A Graph is any connected network of processors and switches.
//
// A route is a shortest path. Of several, it is the one that goes, at each
// vertex, to the neighbor with the lowest number. It is found by breadth-first
// search, which takes time in proportion to the graph. The bisection width is
// unknown, because to find it is NP-hard.
//
// Directed links are numbered by the vertex that they leave, then by the one
// that they lead to.
type Graph struct {
	name     string
	switches []string // their names
	first    []int32  // the first link that leaves a vertex, and the number of links
	from, to []int32  // of a link
	searches sync.Pool
}

// NewGraph returns the network of p processors, of switches with the given
// names, and of the given full-duplex links. A link joins two vertices:
// processors are 0 to p−1, and the first switch is p. A switch's name begins
// with a letter. String returns the network's name.
func NewGraph(name string, p int, switches []string, links [][2]int) (*Graph, error) {
	if err := checkProcessors(name, p); err != nil {
		return nil, err
	}
	if err := checkLinks(name, 2*float64(len(links))); err != nil {
		return nil, err
	}
	n := p + len(switches)
	g := &Graph{name: name, switches: slices.Clone(switches), first: make([]int32, n+1)}
	if err := g.add(links); err != nil {
		return nil, fmt.Errorf("%s%w", name, err)
	}
	g.searches.New = func() any { return &search{hops: make([]int32, n)} }
	s := g.search(0, -1)
	defer g.searches.Put(s)
	if v := slices.Index(s.hops, 0); v >= 0 {
		return nil, fmt.Errorf("%s: no path leads from 0 to %s: want a connected graph", name, g.Name(v))
	}
	return g, nil
}

// add puts links into an empty graph. The text of its errors follows the
// graph's name.
func (g *Graph) add(links [][2]int) error {
	n := g.vertices()
	names := make(map[string]bool, len(g.switches))
	for _, s := range g.switches {
		if !isSwitch(s) || names[s] {
			return fmt.Errorf(": a switch %q: want a name of its own that begins with a letter", s)
		}
		names[s] = true
	}
	directed := make([][2]int, 0, 2*len(links))
	for _, l := range links {
		for _, v := range l {
			if v < 0 || v >= n {
				return fmt.Errorf(": there is no vertex %d: want 0 to %d", v, n-1)
			}
		}
		if l[0] == l[1] {
			return fmt.Errorf(": %s is linked to itself: want two vertices", g.Name(l[0]))
		}
		directed = append(directed, l, [2]int{l[1], l[0]})
	}
	if len(links) < n-1 {
		return fmt.Errorf(" has %d links: want %d or more, to connect %d vertices", len(links), n-1, n)
	}
	slices.SortFunc(directed, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for i, l := range directed {
		if i > 0 && l == directed[i-1] {
			return fmt.Errorf(": %s and %s are linked twice", g.Name(l[0]), g.Name(l[1]))
		}
		g.first[l[0]+1]++
		g.from = append(g.from, int32(l[0]))
		g.to = append(g.to, int32(l[1]))
	}
	for v := range n {
		g.first[v+1] += g.first[v]
	}
	return nil
}

// isSwitch reports whether a word is the name of a switch, and not the number
// of a processor.
func isSwitch(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsLetter(r)
}

// ReadGraph reads a graph of p processors as a list of its links: two vertices
// on a line. A number is a processor, from 0 on; a word that begins with a
// letter is the name of a switch. A # begins a comment. A list of more than 2^22
// links is refused. An error begins with the name and the line.
func ReadGraph(r io.Reader, name string, p int) (*Graph, error) {
	if err := checkProcessors(name, p); err != nil {
		return nil, err
	}
	list := listing{p: p, processors: 1, vertices: map[string]int{}, line: map[[2]int]int{}}
	in := bufio.NewScanner(r)
	n := 1
	for ; in.Scan(); n++ {
		if len(list.links) > maxListed {
			return nil, fmt.Errorf("%s:%d: more than %d links: want fewer", name, n, maxListed)
		}
		text, _, _ := strings.Cut(in.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := list.add(words, n); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n, err)
	}
	if list.processors < p {
		return nil, fmt.Errorf("%s has %d processors: want %d, one for each rank", name, list.processors, p)
	}
	return NewGraph(name, p, list.switches, list.links)
}

// maxListed bounds the links of a list.
const maxListed = 1 << 22

// A listing is the links read so far.
type listing struct {
	p          int // how many processors there should be
	processors int // how many there are, by the highest
	switches   []string
	vertices   map[string]int // of the switches
	links      [][2]int
	line       map[[2]int]int // where a link stands
}

// add reads line n.
func (s *listing) add(words []string, n int) error {
	if len(words) != 2 {
		return fmt.Errorf("found %q, want two vertices, as in 0 1", strings.Join(words, " "))
	}
	var l [2]int
	for i, word := range words {
		var err error
		if l[i], err = s.vertex(word); err != nil {
			return err
		}
	}
	if l[0] == l[1] {
		return fmt.Errorf("%s is linked to itself: want two vertices", words[0])
	}
	key := [2]int{min(l[0], l[1]), max(l[0], l[1])}
	if before, ok := s.line[key]; ok {
		return fmt.Errorf("%s and %s are linked already, on line %d", words[0], words[1], before)
	}
	s.line[key] = n
	s.links = append(s.links, l)
	return nil
}

// vertex returns the number of a vertex.
func (s *listing) vertex(word string) (int, error) {
	if isSwitch(word) {
		v, known := s.vertices[word]
		if !known {
			v = s.p + len(s.switches)
			s.vertices[word] = v
			s.switches = append(s.switches, word)
		}
		return v, nil
	}
	v, err := strconv.ParseUint(word, 10, 31)
	if err != nil || int(v) >= s.p {
		return 0, fmt.Errorf("found %q, want a processor from 0 to %d, or a switch's name", word, s.p-1)
	}
	s.processors = max(s.processors, int(v)+1)
	return int(v), nil
}

// String returns the name that the graph was made with.
func (g *Graph) String() string { return g.name }

// Processors returns p.
func (g *Graph) Processors() int { return g.vertices() - len(g.switches) }

// Switches returns the number of switches.
func (g *Graph) Switches() int { return len(g.switches) }

// LinkCount returns the number of full-duplex links.
func (g *Graph) LinkCount() int { return len(g.to) / 2 }

// Bisection returns false: to find the width is NP-hard.
func (g *Graph) Bisection() (int, bool) { return 0, false }

func (g *Graph) vertices() int { return len(g.first) - 1 }

// Name returns a processor's number or a switch's name.
func (g *Graph) Name(v int) string {
	if p := g.Processors(); v >= p {
		return g.switches[v-p]
	}
	return numbered(v)
}

// Ends returns the two vertices that a directed link joins.
func (g *Graph) Ends(link int) (from, to int) { return int(g.from[link]), int(g.to[link]) }

// Ports returns the largest number of links at one processor, in time
// proportional to p.
func (g *Graph) Ports() int {
	ports := 0
	for v := range g.Processors() {
		ports = max(ports, int(g.first[v+1]-g.first[v]))
	}
	return ports
}

// Diameter returns the longest shortest path between processors. It searches
// from every processor, in O(p · links) time.
func (g *Graph) Diameter() int {
	far := int32(0)
	for v := range g.Processors() {
		s := g.search(v, -1)
		far = max(far, slices.Max(s.hops[:g.Processors()])-1)
		g.searches.Put(s)
	}
	return int(far)
}

// AppendRoute appends a shortest path; see [Graph] for which. It takes time in
// proportion to the graph.
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

// A search is the distances of vertices from where it started.
type search struct {
	hops  []int32 // one more than the links between; 0 for vertices not visited
	queue []int32
}

// search goes out from a vertex until it meets another, or to the end if the
// other is -1. It then knows all vertices that are nearer. The caller puts the
// search back.
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
