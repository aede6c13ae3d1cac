package sim

import (
	"math"
	"slices"
)

// transfers are the messages whose words are under way, where they share
// bandwidth: of links, or of their nodes' memory, out and in. Bandwidth is
// divided max-min fairly: no transfer could have more unless one that has no
// more than it got less.
//
// Resources are numbered as in [network]; the ports stand for the memory of
// their nodes.
type transfers struct {
	*network
	*programTable
	shareLinks bool
	memory     float64 // words per unit of time; 0 for no limit

	active []transfer
	stale  bool // the rates are those of an earlier set
	ended  []int32

	residual []float64 // per resource: bandwidth that is not allocated
	users    []int32   // per resource: transfers whose rate is not fixed
	used     []int32   // the resources that have users
}

type transfer struct {
	message   int32
	words     float64 // still to come
	limit     float64 // the rate of the message alone
	rate      float64
	fixed     bool // whether the rate is final
	resources []int32
}

// end returns when a transfer ends if its rate stays as it is.
func (t *transfer) end(now float64) float64 { return now + t.words/t.rate }

func newTransfers(c Config, n *network, p *programTable) *transfers {
	resources := n.links + 2*p.ranks
	if n.hosts != nil {
		resources += n.hosts.Count() // whose memory is numbered in place of the ports
	}
	memory := c.MemoryBandwidth
	if c.Machine != nil {
		memory = c.Machine.Memory
	}
	return &transfers{
		network: n, programTable: p, shareLinks: c.Share || c.sharesNetwork(), memory: memory,
		residual: make([]float64, resources), users: make([]int32, resources),
	}
}

// add begins the transfer of a message, whose rate alone is given. It reports false if the message arrives
// at once.
func (f *transfers) add(i int32, e ends, limit float64) bool {
	return f.begin(i, slices.Concat(f.linksOf(e), f.memoriesOf(e, f.words(&f.messages[i]))), limit)
}

// begin begins the transfer of a message, which needs some resources. It reports false if that
// takes no time.
func (f *transfers) begin(i int32, resources []int32, limit float64) bool {
	words := f.words(&f.messages[i])
	if words == 0 || math.IsInf(limit, 1) && f.memory == 0 {
		return false
	}
	f.active = append(f.active, transfer{message: i, words: float64(words), limit: limit, resources: resources})
	f.stale = true
	return true
}

// linksOf returns the links that a message shares with others.
func (f *transfers) linksOf(e ends) (links []int32) {
	if !f.shareLinks {
		return nil
	}
	for _, link := range f.route(e.from, e.to) {
		if !math.IsInf(f.linkRate(link), 1) {
			links = append(links, link)
		}
	}
	return links
}

// memoriesOf returns the resources that stand for the memory that a message of some words
// shares with others.
func (f *transfers) memoriesOf(e ends, words int) []int32 {
	switch {
	case f.memory == 0 || f.machine != nil && words < f.machine.MemoryFrom:
		return nil
	case f.machine == nil:
		return []int32{f.sendPort(e.from), f.recvPort(e.to)}
	case f.apart(e):
		return []int32{f.memoryOf(int32(f.host(e.from))), f.memoryOf(int32(f.host(e.to)))}
	}
	return []int32{f.memoryOf(int32(f.host(e.from)))}
}

// memoryOf returns the resource that stands for the memory of all ranks of a host.
func (f *transfers) memoryOf(host int32) int32 { return int32(f.links) + host }

// nextEnd returns when the first transfer ends.
func (f *transfers) nextEnd(now float64) (end float64, any bool) {
	if f.stale {
		f.allocate()
		f.stale = false
	}
	end = math.Inf(1)
	for i := range f.active {
		end = min(end, f.active[i].end(now))
	}
	return end, len(f.active) > 0
}

// advance moves the time on, and returns the messages that arrive by then.
func (f *transfers) advance(now, to float64) []int32 {
	f.ended = f.ended[:0]
	kept := f.active[:0]
	for _, t := range f.active {
		if notAfter(t.end(now), to) {
			f.ended = append(f.ended, t.message)
			continue
		}
		t.words -= t.rate * (to - now)
		kept = append(kept, t)
	}
	f.active = kept
	f.stale = f.stale || len(f.ended) > 0
	slices.Sort(f.ended)
	return f.ended
}

// capacity returns the bandwidth of a resource.
func (f *transfers) capacity(resource int32) float64 {
	if int(resource) < f.links {
		return f.linkRate(resource)
	}
	return f.memory
}

// allocate divides the bandwidth by progressive filling: all rates rise
// together. Whenever a resource is exhausted, the rates of its users are fixed;
// so is the rate of a transfer that has reached its limit.
func (f *transfers) allocate() {
	f.used = f.used[:0]
	for i := range f.active {
		t := &f.active[i]
		t.fixed = false
		for _, r := range t.resources {
			if f.users[r] == 0 {
				f.used = append(f.used, r)
				f.residual[r] = f.capacity(r)
			}
			f.users[r]++
		}
	}
	for open := len(f.active); open > 0; {
		rate := math.Inf(1)
		for _, r := range f.used {
			if f.users[r] > 0 {
				rate = min(rate, f.residual[r]/float64(f.users[r]))
			}
		}
		for i := range f.active {
			if t := &f.active[i]; !t.fixed {
				rate = min(rate, t.limit)
			}
		}
		open -= f.fix(rate)
	}
}

// fix fixes the rates of the transfers that cannot have more than a rate, and
// returns their number.
func (f *transfers) fix(rate float64) (fixed int) {
	const slack = 1 + 1e-12
	var exhausted []int32
	for _, r := range f.used {
		if f.users[r] > 0 && f.residual[r] <= rate*float64(f.users[r])*slack {
			exhausted = append(exhausted, r)
		}
	}
	for i := range f.active {
		t := &f.active[i]
		if t.fixed || t.limit > rate*slack && !slices.ContainsFunc(t.resources, func(r int32) bool { return slices.Contains(exhausted, r) }) {
			continue
		}
		t.rate, t.fixed = rate, true
		fixed++
		for _, r := range t.resources {
			f.residual[r] -= rate
			f.users[r]--
		}
	}
	return fixed
}
