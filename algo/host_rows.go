package algo

import (
	"sort"
	"strings"
	"sync"

	"github.com/chorale-go/chorale/sched"
)

// hosts says which ranks share a host. Ranks have positions: first come those of host
// 0, in the order of their ranks, then those of host 1, and so on. Hosts are numbered
// in the order of their lowest ranks. So if ranks are placed by block, the position of
// a rank is its number.
type hosts struct {
	starts   []int // the position of the first rank of each host; in the end, p
	order    []int // the rank at each position; nil if ranks are placed by block
	position []int // its inverse
}

// newHosts returns the hosts of ranks. Element r of the list is any number that stands
// for the host of rank r.
func newHosts(list []int) *hosts {
	numbers := renumber(list)
	var sizes []int
	for _, n := range numbers {
		if n == len(sizes) {
			sizes = append(sizes, 0)
		}
		sizes[n]++
	}
	h := hostsOf(sizes)
	next := append([]int(nil), h.starts...)
	order, position := make([]int, len(list)), make([]int, len(list))
	byBlock := true
	for rank, n := range numbers {
		at := next[n]
		next[n]++
		order[at], position[rank] = rank, at
		byBlock = byBlock && at == rank
	}
	if !byBlock {
		h.order, h.position = order, position
	}
	return h
}

// hostsOf returns hosts by block, of the given numbers of ranks.
func hostsOf(sizes []int) *hosts {
	h := &hosts{starts: make([]int, 1, len(sizes)+1)}
	for i, n := range sizes {
		h.starts = append(h.starts, h.starts[i]+n)
	}
	return h
}

// renumber numbers hosts from 0, in the order of their lowest ranks.
func renumber(list []int) []int {
	numbers := make([]int, len(list))
	known := make(map[int]int)
	for rank, host := range list {
		n, ok := known[host]
		if !ok {
			n = len(known)
			known[host] = n
		}
		numbers[rank] = n
	}
	return numbers
}

// evenly returns the sizes of n hosts of p ranks, the larger ones first.
func evenly(p, n int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = p / n
		if i < p%n {
			sizes[i]++
		}
	}
	return sizes
}

// dealt returns the hosts of ranks that go round the hosts that have room.
func dealt(sizes []int) (list []int) {
	open := make([]int, len(sizes))
	for host := range open {
		open[host] = host
	}
	for round := 1; len(open) > 0; round++ {
		list = append(list, open...)
		still := open[:0]
		for _, host := range open {
			if sizes[host] > round {
				still = append(still, host)
			}
		}
		open = still
	}
	return list
}

// layout returns a function that returns the call's hosts. They are computed when the
// first program is made, once for all ranks.
func (c call) layout() func() *hosts {
	v := c.values["hosts"]
	return sync.OnceValue(func() *hosts {
		if strings.HasPrefix(v.text, mappedHosts) {
			return newHosts(expand(v.sizes))
		}
		sizes := expand(v.sizes)
		if v.sizes == nil {
			sizes = evenly(c.p, v.number)
		}
		if strings.HasPrefix(v.text, cyclicHosts) {
			return newHosts(dealt(sizes))
		}
		return hostsOf(sizes)
	})
}

// count returns the number of hosts.
func (h *hosts) count() int { return len(h.starts) - 1 }

// size returns the number of ranks of a host.
func (h *hosts) size(host int) int { return h.starts[host+1] - h.starts[host] }

// rank returns the rank at a position.
func (h *hosts) rank(position int) int {
	if h.order == nil {
		return position
	}
	return h.order[position]
}

// at returns the position of a rank.
func (h *hosts) at(rank int) int {
	if h.order == nil {
		return rank
	}
	return h.position[rank]
}

// of returns the host of a rank, and the rank's position on it.
func (h *hosts) of(rank int) (host, position int) {
	at := h.at(rank)
	host = sort.SearchInts(h.starts, at+1) - 1
	return host, at - h.starts[host]
}

// A sequence is ranks at positions from 0 on.
type sequence interface {
	size() int
	rank(i int) int
}

// A partRow is a sequence whose positions stand for runs of parts of the vector: for the
// rank's own part, and perhaps for those of ranks that it serves. Parts are numbered by
// ranks in In and Out; elsewhere, a row may number them otherwise.
type partRow interface {
	sequence
	parts(lo, hi int) sched.Range // that positions lo ≤ i < hi stand for, as the row numbers them
	own(i int) int                // the part of position i itself, as the row numbers it
	home(i int) int               // the same part, as In and Out number it
}

func (l line) size() int      { return l.n }
func (l line) own(i int) int  { return l.rank(i) }
func (l line) home(i int) int { return l.rank(i) }

// everyone is the row of p ranks.
func everyone(p int) line { return line{0, 1, p} }

// within is the row of the ranks of one host. Parts are numbered by positions.
type within struct {
	*hosts
	host int
}

func (w within) size() int      { return w.hosts.size(w.host) }
func (w within) rank(i int) int { return w.hosts.rank(w.own(i)) }
func (w within) own(i int) int  { return w.starts[w.host] + i }
func (w within) home(i int) int { return w.rank(i) }
func (w within) parts(lo, hi int) sched.Range {
	return sched.Range{Lo: w.own(lo), Hi: w.own(hi)}
}

// leaders is the row of one rank per host: the root, if there is one, for its host, and
// elsewhere the rank at a position, which is the lowest for the first leader. A first
// leader stands for the parts of its host, which are numbered by positions.
type leaders struct {
	*hosts
	number   int // position on the host
	root     int // −1 if there is none
	rootHost int
}

// leadersFor returns the leaders where a rank is the root.
func (h *hosts) leadersFor(root int) leaders {
	host, _ := h.of(root)
	return leaders{h, 0, root, host}
}

// leaders returns the ranks at a position on their hosts: 0 for the lowest.
func (h *hosts) leaders(number int) leaders { return leaders{h, number, -1, -1} }

func (l leaders) size() int { return l.count() }
func (l leaders) rank(i int) int {
	if i == l.rootHost {
		return l.root
	}
	return l.hosts.rank(l.starts[i] + l.number)
}
func (l leaders) own(i int) int  { return l.at(l.rank(i)) }
func (l leaders) home(i int) int { return l.rank(i) }
func (l leaders) parts(lo, hi int) sched.Range {
	return sched.Range{Lo: l.starts[lo], Hi: l.starts[hi]}
}

// inOrder is the row of all ranks, one host after the other.
type inOrder struct{ *hosts }

func (o inOrder) size() int                    { return o.starts[o.count()] }
func (o inOrder) rank(i int) int               { return o.hosts.rank(i) }
func (o inOrder) own(i int) int                { return i }
func (o inOrder) home(i int) int               { return o.rank(i) }
func (o inOrder) parts(lo, hi int) sched.Range { return sched.Range{Lo: lo, Hi: hi} }

// pieces is a row whose positions stand for equal pieces of a vector, of some blocks
// each, from a block on: the first position for the first piece. Those after the last
// piece stand for none.
type pieces struct {
	sequence
	first, count, blocks int
}

func (s pieces) own(i int) int  { return s.parts(i, i).Lo }
func (s pieces) home(i int) int { return s.own(i) }
func (s pieces) parts(lo, hi int) sched.Range {
	return sched.Range{Lo: s.first + min(lo, s.count)*s.blocks, Hi: s.first + min(hi, s.count)*s.blocks}
}

// place returns the host of a rank, its position there, and that of the host's leader:
// the root, or else the lowest rank. A root of −1 is none.
func (h *hosts) place(rank, root int) (host, me, leader int) {
	host, me = h.of(rank)
	if root >= 0 {
		if rootHost, at := h.of(root); rootHost == host {
			leader = at
		}
	}
	return host, me, leader
}

// collect copies all parts, numbered by ranks, to a location, numbered by positions.
func (h *hosts) collect(b *sched.Builder, from sched.Buffer, to location) {
	for at, rank := range h.order {
		b.Copy(from, one(rank), to.buffer, to.at+at, sched.Replace)
	}
}

// sort copies all parts, numbered by positions, to Out, numbered by ranks.
func (h *hosts) sort(b *sched.Builder, from sched.Buffer) {
	for at, rank := range h.order {
		b.Copy(from, one(at), sched.Out, rank, sched.Replace)
	}
}

// shareOut has the first positions of a row send the others the pieces that they stand
// for, which they have in Out. A position named none gets nothing, because it has all.
func shareOut(b *sched.Builder, l pieces, me, none int) {
	n := l.size()
	var others []int
	for i := 1; i < n; i++ {
		if to := (me + i) % n; to != none {
			others = append(others, l.rank(to))
		}
		if from := (me - i + n) % n; from < l.count && me != none {
			b.Recv(l.rank(from), sched.Out, l.parts(from, from+1), sched.Replace)
		}
	}
	if me < l.count && len(others) > 0 {
		b.Send(sched.Out, l.parts(me, me+1), others...)
	}
	b.EndStep()
}
