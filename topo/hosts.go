package topo

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Hosts is a cluster: hosts of several processors each, and a network between them. The
// processors of a host are linked to a switch, which stands for its memory, and every
// host is linked to the network by one link, or by several: to as many networks, as
// clusters with several rails have them. Diameter 4, and with n links per host
// p + n·hosts links. All processors of a host share its links to the network, so the
// bisection width of h equal hosts is n·h/2 if h is even.
//
// A message between hosts goes over the network that the sender's position on its host
// names, by its remainder. So senders at different positions use different networks.
//
// Switches are named host0, host1 and so on, and net; or net0, net1 and so on if there
// are several.
type Hosts struct {
	sizes  []int // the processors of each host
	starts []int // the first processor of each host; in the end, p
	links  int   // of a host to the network
}

// NewHosts returns a cluster of hosts with the given numbers of processors, and of links
// to the network each. One host alone has no network.
func NewHosts(links int, sizes ...int) (*Hosts, error) {
	h := &Hosts{sizes: slices.Clone(sizes), starts: make([]int, 1, len(sizes)+1), links: links}
	p := 0.0
	for _, n := range sizes {
		if n < 1 {
			return nil, fmt.Errorf("hosts of %d processors: want 1 or more on each", n)
		}
		p += float64(n)
		if err := checkLinks("hosts", 2*p); err != nil {
			return nil, err
		}
		h.starts = append(h.starts, h.starts[len(h.starts)-1]+n)
	}
	switch {
	case len(sizes) == 0:
		return nil, fmt.Errorf("hosts: want 1 or more")
	case links < 1:
		return nil, fmt.Errorf("hosts with %d links: want 1 or more", links)
	case len(sizes) == 1:
		h.links = 1
	}
	return h, checkLinks("hosts", 2*(p+float64(len(sizes))*float64(links)))
}

// String returns the text that Parse reads, as in "hosts:4x8" or "hosts:3+2x4,links=2".
func (h *Hosts) String() string {
	var words []string
	for i := 0; i < len(h.sizes); {
		n := i
		for n < len(h.sizes) && h.sizes[n] == h.sizes[i] {
			n++
		}
		word := strconv.Itoa(h.sizes[i])
		if n-i > 1 || n-i == len(h.sizes) {
			word = strconv.Itoa(n-i) + "x" + word
		}
		words = append(words, word)
		i = n
	}
	text := "hosts:" + strings.Join(words, "+")
	if h.links > 1 {
		text += ",links=" + strconv.Itoa(h.links)
	}
	return text
}

// Count returns the number of hosts.
func (h *Hosts) Count() int { return len(h.sizes) }

// Size returns the number of processors of a host.
func (h *Hosts) Size(host int) int { return h.sizes[host] }

// Host returns the host of a processor.
func (h *Hosts) Host(processor int) int { return sort.SearchInts(h.starts, processor+1) - 1 }

// ToNetwork reports whether a directed link is one between a host and the network.
func (h *Hosts) ToNetwork(link int) bool { return link >= 2*h.Processors() }

// Processors returns p.
func (h *Hosts) Processors() int { return h.starts[len(h.sizes)] }

// Switches returns the number of hosts and of networks.
func (h *Hosts) Switches() int { return len(h.sizes) + h.networks() }

// networks returns the number of networks, none of which one host alone has.
func (h *Hosts) networks() int {
	if len(h.sizes) == 1 {
		return 0
	}
	return h.links
}

// LinkCount returns p, and the links of all hosts to the network.
func (h *Hosts) LinkCount() int { return h.Processors() + len(h.sizes)*h.networks() }

// Diameter returns 4; 2 for one host, and 0 for one processor.
func (h *Hosts) Diameter() int {
	switch {
	case len(h.sizes) > 1:
		return 4
	case h.sizes[0] > 1:
		return 2
	}
	return 0
}

// Bisection returns the links of half of the hosts. Of an odd number of hosts, one is
// halved itself. Where a host has more links than processors, these count. For hosts of
// different sizes there is no formula.
func (h *Hosts) Bisection() (width int, known bool) {
	size, count := h.sizes[0], len(h.sizes)
	if slices.Max(h.sizes) != slices.Min(h.sizes) {
		return 0, false
	}
	return count/2*min(h.networks(), size) + count%2*(size/2), true
}

// Ports returns 1.
func (h *Hosts) Ports() int { return 1 }

// Full-duplex links are numbered by their lower ends: first those of the processors, then
// those of each host. Upwards comes first.

// AppendRoute appends the way over the host that both share, or over two hosts and a
// network.
func (h *Hosts) AppendRoute(dst []int32, from, to int) []int32 {
	if from == to {
		return dst
	}
	dst = append(dst, int32(2*from))
	if a, b := h.Host(from), h.Host(to); a != b {
		network := (from - h.starts[a]) % h.links
		p := h.Processors()
		dst = append(dst, int32(2*(p+a*h.links+network)), int32(2*(p+b*h.links+network)+1))
	}
	return append(dst, int32(2*to+1))
}

// Ends returns the two vertices that a directed link joins.
func (h *Hosts) Ends(link int) (from, to int) {
	p := h.Processors()
	if i := link / 2; i < p {
		from, to = i, p+h.Host(i)
	} else {
		from, to = p+(i-p)/h.links, p+len(h.sizes)+(i-p)%h.links
	}
	if link%2 == 1 {
		from, to = to, from
	}
	return from, to
}

// Name returns a processor's number, or the name of a switch.
func (h *Hosts) Name(v int) string {
	p := h.Processors()
	switch network := v - p - len(h.sizes); {
	case v < p:
		return numbered(v)
	case network < 0:
		return "host" + strconv.Itoa(v-p)
	case h.links == 1:
		return "net"
	default:
		return "net" + strconv.Itoa(network)
	}
}

const hostsForm = "hosts:4x8"

// parseHosts reads hosts from the offset at on: 4x8 is four of eight processors,
// 3+2x4 one of three and two of four, and 4 alone is four that p processors share evenly,
// the larger ones first. What follows ",links=" is the number of links of each.
func parseHosts(spec string, at, p int) (Topology, error) {
	text, number, given := strings.Cut(spec[at:], ",")
	links := 1
	if given {
		var err error
		value, ok := strings.CutPrefix(number, "links=")
		if links, err = parseSize(value); err != nil || !ok {
			return nil, &SyntaxError{"topology", spec, at + len(text) + 1, "links of each host, as in " + hostsForm + ",links=2"}
		}
	}
	if n, err := parseSize(text); err == nil {
		if n > p {
			return nil, fmt.Errorf("%s of %d processors: want %d hosts or fewer", spec, p, p)
		}
		if err := checkLinks(spec, 2*(float64(p)+float64(n)*float64(links))); err != nil {
			return nil, err
		}
		sizes := slices.Repeat([]int{p / n}, n)
		for i := range p % n {
			sizes[i]++
		}
		return made(NewHosts(links, sizes...))
	}
	runs, total, err := hostRuns(spec, at, text)
	switch {
	case err != nil:
		return nil, err
	case total != p:
		return nil, misfit(spec, total, p)
	}
	var sizes []int
	for _, r := range runs {
		sizes = append(sizes, slices.Repeat([]int{r.size}, r.count)...)
	}
	return made(NewHosts(links, sizes...))
}

// A hostRun is several hosts of one size.
type hostRun struct{ count, size int }

// hostRuns reads runs of hosts, as in 3+2x4, which spec has from the offset at on, and
// returns their number of processors, too.
func hostRuns(spec string, at int, text string) (runs []hostRun, total int, err error) {
	for word := range strings.SplitSeq(text, "+") {
		times, size, repeated := strings.Cut(word, "x")
		if !repeated {
			times, size = "1", word
		}
		count, err := parseSize(times)
		if err != nil {
			return nil, 0, &SyntaxError{"topology", spec, at, "hosts, as in " + hostsForm}
		}
		n, err := parseSize(size)
		if err != nil {
			want := "a size"
			if size != "" {
				want = "1 rank or more on each host"
			}
			return nil, 0, &SyntaxError{"topology", spec, at + len(word) - len(size), want + ", as in " + hostsForm}
		}
		if err := checkLinks(spec, 2*(float64(total)+float64(count)*float64(n))); err != nil {
			return nil, 0, err
		}
		runs, total = append(runs, hostRun{count, n}), total+count*n
		at += len(word) + 1
	}
	return runs, total, nil
}

// parseSize reads a positive number.
func parseSize(word string) (int, error) {
	n, err := strconv.Atoi(word)
	if err == nil && (n < 1 || word[0] == '+') {
		err = strconv.ErrRange
	}
	return n, err
}
