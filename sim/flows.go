package sim

import (
	"math"
	"slices"
)

// flows are the messages whose words are under way where they slow each other
// down. What they share is the bandwidth of links, or of their nodes' memory
// out and in; each is a channel. Bandwidth is divided max-min fairly: nobody
// could have more but at the cost of somebody who has no more.
type flows struct {
	*network
	*score
	share  bool
	memory float64 // words per unit of time; 0 for no limit

	active []flow
	stale  bool // the rates are those of earlier flows
	gone   []int32

	left  []float64 // per channel: what is not given out
	users []int32   // per channel: flows whose rate is not settled
	used  []int32   // the channels that have users
}

type flow struct {
	message  int32
	words    float64 // still to come
	limit    float64 // the rate of the message alone
	rate     float64
	settled  bool
	channels []int32
}

// end returns when a flow ends if it goes on as it does now.
func (w *flow) end(now float64) float64 { return now + w.words/w.rate }

func newFlows(c Config, n *network, s *score) *flows {
	channels := n.links + 2*s.ranks
	return &flows{
		network: n, score: s, share: c.Share, memory: c.MemoryBandwidth,
		left: make([]float64, channels), users: make([]int32, channels),
	}
}

// add lets a message flow, unless it arrives at once.
func (f *flows) add(i int32) bool {
	m := &f.messages[i]
	route := f.route(m.from, m.to)
	limit := 1 / f.perWord(len(route))
	words := f.words(m)
	if words == 0 || math.IsInf(limit, 1) && f.memory == 0 {
		return false
	}
	w := flow{message: i, words: float64(words), limit: limit}
	if f.share && f.model.Tw > 0 {
		w.channels = append(w.channels, route...)
	}
	if f.memory > 0 {
		w.channels = append(w.channels, f.wayOut(m.from), f.wayIn(m.to))
	}
	f.active = append(f.active, w)
	f.stale = true
	return true
}

// first returns when the first flow ends.
func (f *flows) first(now float64) (end float64, any bool) {
	if f.stale {
		f.settle()
		f.stale = false
	}
	end = math.Inf(1)
	for i := range f.active {
		end = min(end, f.active[i].end(now))
	}
	return end, len(f.active) > 0
}

// advance lets time pass, and returns the messages that arrive by then.
func (f *flows) advance(now, to float64) []int32 {
	f.gone = f.gone[:0]
	kept := f.active[:0]
	for _, w := range f.active {
		if by(w.end(now), to) {
			f.gone = append(f.gone, w.message)
			continue
		}
		w.words -= w.rate * (to - now)
		kept = append(kept, w)
	}
	f.active = kept
	f.stale = f.stale || len(f.gone) > 0
	slices.Sort(f.gone)
	return f.gone
}

// capacity returns what a channel has to give.
func (f *flows) capacity(channel int32) float64 {
	if int(channel) < f.links {
		return 1 / f.model.Tw
	}
	return f.memory
}

// settle divides the bandwidth. All rates rise together; whenever a channel is
// exhausted, or a message flows as fast as it can, those concerned are settled.
func (f *flows) settle() {
	f.used = f.used[:0]
	for i := range f.active {
		w := &f.active[i]
		w.settled = false
		for _, c := range w.channels {
			if f.users[c] == 0 {
				f.used = append(f.used, c)
				f.left[c] = f.capacity(c)
			}
			f.users[c]++
		}
	}
	for open := len(f.active); open > 0; {
		rate := math.Inf(1)
		for _, c := range f.used {
			if f.users[c] > 0 {
				rate = min(rate, f.left[c]/float64(f.users[c]))
			}
		}
		for i := range f.active {
			if w := &f.active[i]; !w.settled {
				rate = min(rate, w.limit)
			}
		}
		open -= f.give(rate)
	}
}

// give settles the flows that cannot have more than a rate, and returns how
// many they are.
func (f *flows) give(rate float64) (settled int) {
	const slack = 1 + 1e-12
	tight := func(c int32) bool { return f.left[c] <= rate*float64(f.users[c])*slack }
	var full []int32
	for _, c := range f.used {
		if f.users[c] > 0 && tight(c) {
			full = append(full, c)
		}
	}
	for i := range f.active {
		w := &f.active[i]
		if w.settled || w.limit > rate*slack && !slices.ContainsFunc(w.channels, func(c int32) bool { return slices.Contains(full, c) }) {
			continue
		}
		w.rate, w.settled = rate, true
		settled++
		for _, c := range w.channels {
			f.left[c] -= rate
			f.users[c]--
		}
	}
	return settled
}
